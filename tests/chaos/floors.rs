//! Floors of a run: a system that refuses everybody breaks no promise, and faults that hit nothing prove nothing.
//!
//! Input: how long the faults lasted, what the checker counted, what became of each fault. Output: what there was too little of. A tenth
//! of what a run comes to on an idle machine is asked for, so that a busy one is not to blame. Each kind of fault has a floor of its
//! own: the nemesis tries again what missed, so a kind that stays below it cannot hit any more.

use crate::checker::Figures;
use crate::nemesis::{Kind, Record};
use crate::operators::DUTIES;
use std::collections::BTreeMap;

/// Faults that hit, of those that were planned: one of this number. A process that is down cannot be frozen, and few runs miss a fifth.
const HIT_ONE_OF: usize = 2;
/// Every kind hits once, and once more for each time of this length.
const HIT_EVERY_MS: u64 = 120_000;
/// Requests accepted per second of faults; a run comes to about forty.
const ACCEPTED_PER_S: u64 = 4;
/// Events that the shop gets by webhook, per second; a run comes to more than sixty.
const RECEIVED_PER_S: u64 = 4;
/// How something is counted.
type Count = fn(&Figures) -> u64;
/// What the database has at the end: one in this number of seconds of faults, and how to count it.
const SEEN: [(&str, u64, Count); 4] = [
    ("orders are paid", 2, |figures| of_state(figures, "PAID")),
    ("orders are cancelled", 15, |figures| of_state(figures, "CANCELLED")),
    ("orders are expired", 10, |figures| of_state(figures, "EXPIRED")),
    ("payments have to go back", 10, |figures| refunds(figures)),
];
/// Acts of each kind that operators finish: the first one, and one in this number of seconds.
const ACT_EVERY_S: u64 = 60;
/// Orders of each sale: one in this number of seconds.
const SALE_EVERY_S: u64 = 5;

fn of_state(figures: &Figures, state: &str) -> u64 {
    figures.orders_by_state.get(state).copied().unwrap_or(0)
}

fn refunds(figures: &Figures) -> u64 {
    figures.payments.iter().filter(|(state, _)| state.starts_with("REFUND_NEEDED")).map(|(_, count)| count).sum()
}

/// How often each kind of fault has to hit in a run of this length.
pub fn hits(length_ms: u64) -> usize {
    1 + usize::try_from(length_ms / HIT_EVERY_MS).expect("a run ends")
}

/// What there was too little of. `sales`: those that the crowd buys in. `hits`: how often each kind had to hit.
pub fn shortfalls(
    length_ms: u64,
    sales: &[String],
    hits: &BTreeMap<Kind, usize>,
    faults: &[Record],
    figures: &Figures,
) -> Vec<String> {
    let seconds = length_ms / 1_000;
    let mut short = traffic(seconds, sales, figures);
    let injected = faults.iter().filter(|record| record.injected).count();
    if injected * HIT_ONE_OF < faults.len() || faults.is_empty() {
        short.push(format!("{injected} of {} faults hit", faults.len()));
    }
    for (kind, wanted) in hits {
        let of_kind = || faults.iter().filter(|record| record.fault.kind == *kind);
        let hit = of_kind().filter(|record| record.injected).count();
        if hit < *wanted {
            short.push(format!("{}: {hit} of {} hit, at least {wanted} have to", kind.name(), of_kind().count()));
        }
    }
    short
}

fn traffic(seconds: u64, sales: &[String], figures: &Figures) -> Vec<String> {
    let accepted = ("requests are accepted".to_owned(), figures.accepted, ACCEPTED_PER_S * seconds);
    let received = ("events are received by webhook".to_owned(), figures.received_events, RECEIVED_PER_S * seconds);
    let seen = SEEN.iter().map(|(what, every_s, count)| ((*what).to_owned(), count(figures), seconds / every_s));
    let of_sales = sales.iter().map(|sale| {
        let orders = figures.orders_by_sale.get(sale).copied().unwrap_or(0);
        (format!("orders are in {sale}"), orders, seconds / SALE_EVERY_S)
    });
    let of_operators = DUTIES.iter().map(|duty| {
        let done = figures.acts.get(*duty).copied().unwrap_or(0);
        (format!("acts {duty} are done"), done, 1 + seconds / ACT_EVERY_S)
    });
    let all = [accepted, received].into_iter().chain(seen).chain(of_sales).chain(of_operators);
    all.filter(|(_, count, wanted)| count < wanted)
        .map(|(what, count, wanted)| format!("{count} {what}, at least {wanted} are wanted"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::plan;
    use seckill::roles::Role;

    const SECONDS: u64 = 30;

    /// Faults of a run of half a minute, all of which hit.
    fn all_hit() -> Vec<Record> {
        let counts = [(Role::Api, 2), (Role::Relay, 2), (Role::Consumer, 2), (Role::Reconcile, 1)];
        let record = |fault| Record { fault, injected: true, note: None, began_ms: 0, healed_ms: 0, recovery_ms: None };
        plan(7, SECONDS * 1_000, counts).into_iter().map(record).collect()
    }

    fn enough() -> Figures {
        let counts = |of: &[(&str, u64)]| of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Figures {
            accepted: 120,
            received_events: 120,
            orders_by_state: counts(&[("PAID", 15), ("CANCELLED", 2), ("EXPIRED", 3)]),
            payments: counts(&[("APPLIED", 15), ("REFUND_NEEDED EXPIRED", 1), ("REFUND_NEEDED OTHER_AMOUNT", 2)]),
            orders_by_sale: counts(&[("one", 6), ("any", 6)]),
            acts: DUTIES.iter().map(|duty| ((*duty).to_owned(), 1)).collect(),
            ..Figures::default()
        }
    }

    fn short_of(faults: &[Record], figures: &Figures) -> Vec<String> {
        let kinds = faults.iter().map(|record| (record.fault.kind, 1)).collect();
        shortfalls(SECONDS * 1_000, &["one".to_owned(), "any".to_owned()], &kinds, faults, figures)
    }

    #[test]
    fn a_run_that_sold_nothing_or_hit_nothing_is_too_little() {
        let faults = all_hit();
        assert!(faults.len() > 30, "{}", faults.len());
        assert_eq!(short_of(&faults, &enough()), Vec::<String>::new());
        assert_eq!(
            short_of(&faults, &Figures { accepted: 119, ..enough() }).len(),
            1,
            "a system that refuses everybody"
        );
        let mut missed = faults;
        missed.iter_mut().for_each(|record| record.injected = false);
        assert!(short_of(&missed, &enough())[0].contains("faults hit"), "{:?}", short_of(&missed, &enough()));
        assert_eq!(short_of(&[], &enough()).len(), 1, "no fault was planned");
    }

    #[test]
    fn a_kind_that_never_hits_is_too_little_also_when_it_was_not_planned() {
        let faults = all_hit();
        let often = faults[0].fault.kind;
        let mut blind = faults.clone();
        blind.iter_mut().filter(|record| record.fault.kind == often).for_each(|record| record.injected = false);
        assert_eq!(short_of(&blind, &enough()).len(), 1, "{}", often.name());
        let without: Vec<Record> = faults.into_iter().filter(|record| record.fault.kind != often).collect();
        let short = shortfalls(SECONDS * 1_000, &[], &BTreeMap::from([(often, 1)]), &without, &enough());
        assert_eq!(short, [format!("{}: 0 of 0 hit, at least 1 have to", often.name())]);
        assert_eq!((hits(30_000), hits(600_000)), (1, 6));
    }

    #[test]
    fn payments_cancellations_operators_and_every_sale_have_floors() {
        let (faults, figures) = (all_hit(), enough());
        let without = |spoil: fn(&mut Figures)| {
            let mut figures = figures.clone();
            spoil(&mut figures);
            short_of(&faults, &figures)
        };
        for short in [
            without(|figures| assert!(figures.orders_by_state.remove("PAID").is_some())),
            without(|figures| assert!(figures.orders_by_state.remove("CANCELLED").is_some())),
            without(|figures| assert!(figures.orders_by_state.remove("EXPIRED").is_some())),
            without(|figures| figures.payments.retain(|state, _| state == "APPLIED")),
            without(|figures| assert!(figures.orders_by_sale.remove("any").is_some())),
            without(|figures| assert!(figures.acts.remove("audit").is_some())),
            without(|figures| figures.received_events = 0),
        ] {
            assert_eq!(short.len(), 1, "{short:?}");
        }
    }
}
