//! `memory`: what a request costs Redis while it is in flight and after it is settled and trimmed, and how much memory the
//! roles have resident at most.

use super::bar::Bar;
use super::baseline::redis_info;
use super::cpu::resident_peak_mib;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd;
use crate::loadgen;
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::{Window, audit_sale, mark_outcomes, trim_all};
use seckill::roles::Role;
use serde_json::json;
use std::collections::BTreeMap;

/// Most bytes in Redis for a request in flight.
const BAR_BYTES: f64 = 160.0;
/// Most bytes that a settled request may leave.
const BAR_SETTLED_BYTES: f64 = 80.0;
/// Most memory of a role, MiB.
const BAR_MIB: f64 = 100.0;

/// Bytes each of `entries` added, from before they were there to now; negative when memory went down meanwhile.
#[expect(clippy::cast_precision_loss, reason = "bytes of one machine; 53 bits are enough")]
pub(super) fn bytes_each(before: u64, after: u64, entries: u64) -> f64 {
    (after as f64 - before as f64) / entries.max(1) as f64
}

/// A request that is accepted and not yet relayed: outbox entry, ledger record, buyer.
pub(super) fn in_flight(before: u64, full: u64, entries: u64) -> Bar {
    let note = format!("Redis, {entries} requests accepted and none relayed: outbox, ledger, buyers");
    let more = json!({ "before_bytes": before, "full_bytes": full, "entries": entries });
    Bar::of("memory", bytes_each(before, full, entries), "B/request").at_most(BAR_BYTES).note(note).more(more)
}

/// The same requests after they landed and P5 has trimmed the ledger, without waiting for the retention.
pub(super) async fn settled(
    environment: &Environment,
    sale: &SaleId,
    before: u64,
    entries: u64,
) -> Result<Bar, Failure> {
    let settled = redis_info::used_memory_bytes(&environment.servers.redis).await?;
    let trimmed = trim(environment, sale).await?;
    let after = redis_info::used_memory_bytes(&environment.servers.redis).await?;
    let note = format!(
        "Redis, the same requests landed and {trimmed} ledger records trimmed: buyers; {:.0} B before trimming",
        bytes_each(before, settled, entries)
    );
    let more = json!({ "before_bytes": before, "settled_bytes": settled, "trimmed_bytes": after, "trimmed": trimmed });
    let settled = Bar::of("memory_settled", bytes_each(before, after, entries), "B/request");
    Ok(settled.at_most(BAR_SETTLED_BYTES).note(note).more(more))
}

/// Trims every settled record of a sale as P5 does after the retention; returns how many went.
pub(super) async fn trim(environment: &Environment, sale: &SaleId) -> Result<i64, Failure> {
    let context = environment.servers.reconcile_context(&environment.settings);
    let none = || Failure::Failed(format!("sale {sale} is gone from the database"));
    let row = environment.servers.rows.sales.get(sale).await?.ok_or_else(none)?;
    // What P4 could not mark is marked first, as P5 does it.
    mark_outcomes(&environment.servers.redis.ledger, &audit_sale(&context, &row, Window::Now).await?).await?;
    Ok(trim_all(&context, &row, 0, false).await?)
}

/// The most memory each role had resident since it started; makes a full load first unless there was one.
pub(super) async fn resident(
    environment: &mut Environment,
    sizes: &Sizes,
    is_loaded: bool,
    spinner: &Spinner,
) -> Result<Bar, Failure> {
    if !is_loaded {
        let sale = environment.sale("resident", steady_crowd::ENOUGH, steady_crowd::LIMIT).await?;
        loadgen::run(steady_crowd::crowd(environment, sizes, &sale, spinner)).await?;
        environment.drained(&sale, sizes.patience, &|_landed, _sold| {}).await?;
    }
    let roles = Role::ALL.map(Role::name);
    let peaks: BTreeMap<String, f64> = environment
        .pids()
        .into_iter()
        .filter(|(name, _)| roles.contains(&name.as_str()))
        .filter_map(|(name, pid)| Some((name, resident_peak_mib(pid)?)))
        .collect();
    if peaks.is_empty() {
        return Err(Failure::Failed("this system does not say how much memory a process has (no /proc)".to_owned()));
    }
    let words: Vec<String> = peaks.iter().map(|(name, mib)| format!("{name} {mib:.0}")).collect();
    let most = peaks.values().copied().fold(0.0, f64::max);
    let note = format!("largest resident memory of a role: {}", words.join(", "));
    Ok(Bar::of("memory_role", most, "MiB").at_most(BAR_MIB).note(note).more(json!({ "peak_mib": peaks })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_for_each_request() {
        assert_eq!(bytes_each(1_000, 61_000, 100), 600.0);
        assert_eq!(bytes_each(1_000, 900, 100), -1.0);
        assert_eq!(in_flight(0, 16_000, 100).holds, Some(true));
        assert_eq!(in_flight(0, 16_100, 100).holds, Some(false));
    }
}
