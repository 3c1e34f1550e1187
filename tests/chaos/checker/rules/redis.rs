//! C8, sums, grants and marks: what left the buckets is what was accepted, Redis was given what the database grants, and the ledger
//! knows every outcome.
//!
//! Redis counts per epoch: a rebuild begins again with what the database can vouch for as its grant, and loads the older
//! records with their own epoch. So each sum is over the current epoch's requests. Trimmed records are in the counters.

use super::super::Found;
use super::super::index::Index;
use super::super::read::{Meta, Units};
use std::collections::BTreeMap;

/// One sale in Redis, over all shards.
#[derive(Default)]
struct Bucket {
    epoch: u64,
    taken: i64,
    trimmed: i64,
    frozen: bool,
}

/// Checks sums, grants and marks.
pub fn check(index: &Index<'_>, found: &mut Found) {
    for (sale, bucket) in buckets(index, found) {
        if bucket.frozen {
            continue;
        }
        let (taken, epoch) = (bucket.taken, bucket.epoch);
        let in_ledger = index.input.ledger.iter().filter(|record| record.sale == sale && record.epoch == epoch);
        let remembered = in_ledger.map(|record| record.quantity).sum::<i64>() + bucket.trimmed;
        if taken != remembered {
            found.add(
                "C8",
                format!("sale {sale}: {taken} units left redis in epoch {epoch}, its ledger has {remembered}"),
            );
        }
        let outcomes = index.input.outcomes.iter().filter(|o| o.sale_id == sale && o.epoch == epoch);
        let decided: i64 = outcomes.filter_map(|outcome| index.units(&outcome.request_id)).sum();
        let open = index.undecided.values().filter(|open| open.sale == sale && open.epoch == epoch);
        let open: i64 = open.map(|request| request.quantity).sum();
        if taken != decided + open {
            found.add(
                "C8",
                format!(
                    "sale {sale}: {taken} units left redis in epoch {epoch}, {decided} are decided and {open} open"
                ),
            );
        }
        grants(index, (sale, epoch), found);
    }
    marks(index, found);
}

/// Each grant of the epoch by its name. The sums above do not show one that only Redis has: what it gave is in the buckets, too.
fn grants(index: &Index<'_>, (sale, epoch): (&str, u64), found: &mut Found) {
    let mut given: BTreeMap<&str, i64> = BTreeMap::new();
    for grant in index.input.redis_grants.iter().filter(|grant| grant.sale == sale) {
        *given.entry(&grant.id).or_default() += grant.units.parse::<i64>().unwrap_or(0);
    }
    for grant in index.input.grants.iter().filter(|grant| grant.sale_id == sale && grant.epoch == epoch) {
        let units = given.remove(grant.grant_id.as_str()).unwrap_or(0);
        let is_right = if grant.applied_at.is_some() { units == grant.quantity } else { units <= grant.quantity };
        if !is_right {
            let (id, quantity) = (&grant.grant_id, grant.quantity);
            found.add("C8", format!("sale {sale}: redis was given {units} units of grant {id}, it has {quantity}"));
        }
    }
    // Grants of an epoch before stay with no units.
    for (id, units) in given.into_iter().filter(|(_, units)| *units != 0) {
        found.add(
            "C8",
            format!("sale {sale}: redis was given {units} units of grant {id}, the database has no such grant"),
        );
    }
}

/// Sales that have keys; a closed sale's may be gone.
fn buckets<'a>(index: &Index<'a>, found: &mut Found) -> BTreeMap<&'a str, Bucket> {
    let mut buckets: BTreeMap<&str, Bucket> = BTreeMap::new();
    for meta in &index.input.meta {
        let bucket = buckets.entry(&meta.sale).or_default();
        bucket.epoch = bucket.epoch.max(number(meta, "epoch").unsigned_abs());
        bucket.trimmed += number(meta, "trimmed_ordered") + number(meta, "trimmed_failed");
        bucket.frozen |= meta.fields.get("state").is_none_or(|state| state == "frozen");
        let stock = index.input.stock.iter().find(|stock| stock.sale == meta.sale && stock.shard == meta.shard);
        match stock.and_then(|stock| stock.value.parse::<i64>().ok()) {
            Some(stock) => bucket.taken -= stock,
            None => found.add("C8", format!("sale {}: shard {} has no readable stock in redis", meta.sale, meta.shard)),
        }
    }
    for (units, sign) in [(&index.input.redis_grants, 1), (&index.input.transfers, -1)] {
        for Units { sale, units, id, .. } in units {
            match (buckets.get_mut(sale.as_str()), units.parse::<i64>()) {
                (Some(bucket), Ok(units)) => bucket.taken += sign * units,
                (_, _) => {
                    found.add("C8", format!("sale {sale}: unreadable units or no meta for {id} in redis: {units}"));
                }
            }
        }
    }
    buckets
}

fn number(meta: &Meta, field: &str) -> i64 {
    meta.fields.get(field).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn marks(index: &Index<'_>, found: &mut Found) {
    for record in &index.input.ledger {
        let rid = record.rid.as_str();
        if let Some(text) = &record.unreadable {
            found.add("C8", format!("request {rid}: unreadable ledger record {text:?}"));
            continue;
        }
        let outcome = index.outcomes.get(rid);
        let kind = outcome.map_or("none", |outcome| outcome.kind.as_str());
        let wanted = match record.state.as_str() {
            "Q" => "none",
            "C" => "ORDER",
            "F" => "FAILED",
            other => other,
        };
        // Without an outcome a C or F is a promise nothing stands behind; C3 reports a missing outcome.
        if kind != wanted {
            found.add("C8", format!("request {rid}: its ledger mark is {}, its outcome is {kind}", record.state));
        }
        let reason = outcome.and_then(|outcome| outcome.reason.as_deref());
        if record.state == "F" && kind == "FAILED" && reason != Some(record.reason.as_str()) {
            found.add("C8", format!("request {rid}: its ledger says {}, its outcome {reason:?}", record.reason));
        }
        let order = index.orders.get(rid);
        if let Some(order) = order.filter(|order| order.user_id != record.user || order.quantity != record.quantity) {
            found.add(
                "C8",
                format!(
                    "request {rid}: accepted {} for {}, ordered {} for {}",
                    record.quantity, record.user, order.quantity, order.user_id
                ),
            );
        }
    }
}
