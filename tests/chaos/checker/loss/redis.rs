//! Redis' side of a sale: are its keys there, and does it know at least what the database knows?

use super::{Case, SaleState, Trouble};

/// What a sale that was warmed always has on each shard.
const KEYS: [&str; 5] = ["meta", "stock", "buyers", "ledger", "grants"];

pub(super) fn check(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let Some(row) = case.end.sales.get(sale) else { return };
    if !["warmed", "paused"].contains(&row.status.as_str()) {
        return;
    }
    for (shard, missing) in missing(case, sale) {
        state.add(Trouble::Keys, format!("shard {shard} has no {}", missing.join(", ")));
    }
    for meta in case.end.input.meta.iter().filter(|meta| meta.sale == sale) {
        let field = |name: &str| meta.fields.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (epoch, number, shard) = (field("epoch"), field("number"), meta.shard);
        if epoch != row.epoch {
            state.add(Trouble::Behind, format!("shard {shard}: epoch {epoch}, the database says {}", row.epoch));
            continue;
        }
        let records = case.end.input.ledger.iter().filter(|record| record.sale == sale && record.shard == shard);
        let known = records.filter(|record| record.epoch == epoch).count() as u64 + field("trimmed_count");
        if known != number {
            state.add(Trouble::Ledger, format!("shard {shard}: {number} accepted, records and trimmed are {known}"));
        }
        let outcomes = case.end.outcomes.values();
        let of_series = outcomes.filter(|o| o.sale_id == sale && o.shard == shard && o.epoch == epoch);
        let highest = of_series.filter_map(|outcome| outcome.number).max().unwrap_or(0);
        if number < highest {
            state.add(Trouble::Behind, format!("shard {shard}: number {number}, the database has decided {highest}"));
        }
    }
}

/// Whether Redis has accepted anything of the sale.
pub(super) fn has_accepted(case: &Case<'_>, sale: &str) -> bool {
    let metas = case.end.input.meta.iter().filter(|meta| meta.sale == sale);
    metas.filter_map(|meta| meta.fields.get("number")?.parse::<u64>().ok()).any(|number| number > 0)
}

/// Whether every shard that the sale ever had has all its keys, of this epoch.
pub(super) fn is_whole(case: &Case<'_>, sale: &str, epoch: u64) -> bool {
    let mut metas = case.end.input.meta.iter().filter(|meta| meta.sale == sale);
    let of_epoch = |text: &String| text.parse() == Ok(epoch);
    missing(case, sale).is_empty() && metas.all(|meta| meta.fields.get("epoch").is_some_and(of_epoch))
}

/// Keys that are missing, by shard; the shards are those it had before the strike.
fn missing(case: &Case<'_>, sale: &str) -> Vec<(u16, Vec<&'static str>)> {
    let shards: std::collections::BTreeSet<u16> =
        case.before.keys.iter().filter(|key| key.sale == sale).map(|key| key.shard).collect();
    let there = |shard: u16, name: &str| {
        case.end.input.keys.iter().any(|key| key.sale == sale && key.shard == shard && key.name == name)
    };
    let missing =
        shards.into_iter().map(|shard| (shard, KEYS.into_iter().filter(|name| !there(shard, name)).collect()));
    missing.filter(|(_, missing): &(u16, Vec<&str>)| !missing.is_empty()).collect()
}
