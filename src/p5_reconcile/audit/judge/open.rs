//! The open requests: which of them are decided, which are on their way, parked or overdue.

use super::case::SaleCase;
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerState;
use crate::domain::outcome::Outcome;
use crate::orders::rows::outcomes::RequestOutcome;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};
use crate::p5_reconcile::audit::redis_side::{CountedShard, OpenRecord};
use crate::p5_reconcile::audit::result::OpenRequest;
use crate::p5_reconcile::rows::books::Series;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The open requests of a sale, sorted.
#[derive(Debug, Default)]
pub(super) struct SortedRequests {
    /// The undecided ones of each series, also of a shard whose counters are lost: its ledger knows them, and no sum of
    /// Redis counts their units.
    pub undecided: BTreeMap<Series, UndecidedOfSeries>,
    /// Units of the present epoch that are on their way.
    pub in_flight: i64,
    /// Units that are parked.
    pub parked: i64,
    /// Units that are older than the window.
    pub leaked: i64,
    /// Age of the oldest undecided one, milliseconds.
    pub oldest_ms: i64,
    /// Requests older than the window, parked ones too.
    pub overdue: Vec<OpenRequest>,
    /// Requests that are decided under another number than their record's.
    pub void: Vec<OpenRequest>,
    /// Decided requests whose ledger record does not say so, by shard.
    pub unmarked: HashMap<u16, Vec<(RequestId, Outcome)>>,
}

/// The undecided requests of a series.
#[derive(Debug, Default)]
pub(super) struct UndecidedOfSeries {
    pub numbers: BTreeSet<u64>,
    pub units: i64,
}

/// Sorts the open requests: by number and in the snapshot, so that units are counted once; by id and later, so that a
/// request that was on its way while this audit read is no false alarm.
pub(super) fn sort(case: &SaleCase<'_>, found: &mut FoundSoFar) -> SortedRequests {
    let mut sorted = SortedRequests::default();
    for (shard, open) in case.redis.open() {
        let units = i64::from(open.record.quantity.get());
        let of = Series { epoch: open.record.epoch, shard };
        let lacking = case.snapshot.lacks(of, open.record.number);
        if lacking {
            let of_series = sorted.undecided.entry(of).or_default();
            of_series.numbers.insert(open.record.number);
            of_series.units += units;
        }
        let decided = case.database.decided.as_ref().and_then(|decided| decided.get(&open.request_id));
        let overdue = decided.is_none() && case.is_late(shard, open);
        if lacking && case.current(of).is_some() {
            let parked = case.elsewhere.parked.ids.contains(&open.request_id);
            let term = match (parked, overdue) {
                (true, _) if decided.is_none() => &mut sorted.parked,
                (_, true) => &mut sorted.leaked,
                (_, false) => &mut sorted.in_flight,
            };
            *term += units;
        }
        match decided {
            Some(decided) => sorted.note_decided(case, (shard, open), (decided, lacking), found),
            None => {
                sorted.oldest_ms = sorted.oldest_ms.max(case.age_ms(shard, open));
                if overdue {
                    sorted.overdue.push(case.request(shard, open));
                }
            }
        }
    }
    sorted
}

impl SortedRequests {
    /// Notes that the ledger record of a decided request has to be marked, that its number is void, or finds a decision
    /// that is not about what the ledger accepted. `lacking`: its number has no outcome.
    fn note_decided(
        &mut self,
        case: &SaleCase<'_>,
        (shard, open): (u16, &OpenRecord),
        (decided, lacking): (&RequestOutcome, bool),
        found: &mut FoundSoFar,
    ) {
        let OpenRecord { request_id, record } = open;
        let number = record.number;
        let accepted = record.order_message(*request_id, &case.terms.sale.sale_id, shard);
        if record.state == LedgerState::Queued {
            self.unmarked.entry(shard).or_default().push((*request_id, decided.outcome));
        }
        if decided.has_number_of(&accepted) || !decided.is_of(&accepted) {
            if decided.number.is_some() && decided.payload_hash != accepted.payload_hash() {
                let units = record.quantity.get();
                let detail = format!(
                    "shard {shard}: the ledger accepted {units} units as number {number}, the database decided something else under this id"
                );
                found.add(FindingKind::LedgerDamaged, Some(*request_id), detail);
            }
            return;
        }
        if !lacking {
            return;
        }
        // P5 closes it in the same round. A reader in between, or without P5, learns of it when it is late.
        if case.is_late(shard, open) {
            let detail = format!(
                "shard {shard}: redis accepted the request again as number {number}, and it is decided under another number; the reconciler closes this one"
            );
            found.add(FindingKind::LedgerDamaged, Some(*request_id), detail);
        }
        self.void.push(case.request(shard, open));
    }
}

/// The findings of the leaks, with where each request was found.
pub(super) fn report_leaks(case: &SaleCase<'_>, overdue: &[OpenRequest], found: &mut FoundSoFar) {
    let unseen = match case.elsewhere.parked.unseen_count {
        None => "; the MQ DLQ could not be read".to_owned(),
        Some(0) => String::new(),
        Some(unseen) => format!("; {unseen} messages of the MQ DLQ were not read"),
    };
    for open in overdue.iter().filter(|open| !open.parked) {
        let (age_s, number) = (open.age_ms / 1000, open.record.number);
        let location = case.elsewhere.locations.as_ref().map_or("", |locations| locations.of(open.request_id));
        let was = if open.record.state == LedgerState::Queued { "" } else { "settled once, " };
        let detail =
            format!("{was}accepted {age_s} s ago as number {number} (shard {}), {location}{unseen}", open.shard);
        found.add(FindingKind::Leak, Some(open.request_id), detail);
    }
}

/// Old records whose numbers have their outcome, or are void, by shard: they may be trimmed.
pub(super) fn old_records(case: &SaleCase<'_>) -> HashMap<u16, Vec<RequestId>> {
    let of_shard = |(shard, counted): (u16, &CountedShard)| {
        let settled = counted.scan.old.iter().filter(|(_, record)| {
            let of = Series { epoch: record.epoch, shard };
            let decided = case.snapshot.series.get(&of).is_some_and(|counted| !counted.lacks(record.number));
            // Of two requests with the same number the loser has no number of its own.
            decided || record.number == 0 || case.snapshot.void.has(of, record.number)
        });
        (shard, settled.map(|(id, _)| *id).collect())
    };
    case.redis.counted().map(of_shard).collect()
}
