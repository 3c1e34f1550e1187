//! Full outboxes, without HTTP: purchases through the product's own script while no relay runs. On the same entries are
//! measured in turn what they take in Redis, how fast the relay empties the outboxes (again and again, until it was measured for long
//! enough), how fast the consumer empties the queue, and what is left in Redis once everything is settled and trimmed.

use super::bar::Bar;
use super::baseline::redis_info;
use super::environment::Environment;
use super::purchases::purchase_by;
use super::relay::{self, Relayed};
use super::sizes::{Sizes, Spinner};
use super::{aof_rewrite, landing, memory};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::domain::shard::home_shard;
use std::collections::BTreeMap;

/// Purchases in one script call.
const GROUP: usize = 256;
/// More stock than entries, so that none is refused.
const STOCK: i64 = 10_000_000;
/// Entries that warm a phase up: connections, topology, prepared statements.
const WARM_UP: u64 = 500;

/// More numbers than a benchmark makes; a power of two, so that an odd factor gives each number another one.
const NAMES: u64 = 1 << 27;
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which of the measurements on these entries are wanted; what must come before them is done anyway.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wants {
    pub relay: bool,
    pub landing: bool,
    pub memory: bool,
}

/// Measures on a full outbox. Nothing may be under way, and only the api role may run.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    wants: Wants,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let mut bars = Vec::new();
    let sale = environment.sale("filled", STOCK, Some(1)).await?;
    let mut relayer = relay::relayer(environment);
    fill(environment, &sale, WARM_UP).await?;
    relay::empty(environment, &mut relayer, sizes).await?;
    landing::empty(environment, landing::landers(environment), WARM_UP, sizes).await?;
    if wants.memory {
        // What is settled is to be the measured entries alone.
        memory::trim(environment, &sale).await?;
    }

    spinner.say("filling the outbox");
    let before = redis_info::used_memory_bytes(&environment.servers.redis).await?;
    fill(environment, &sale, sizes.entries).await?;
    let full = redis_info::used_memory_bytes(&environment.servers.redis).await?;
    if wants.memory {
        bars.push(memory::in_flight(before, full, sizes.entries));
    }
    spinner.say("relay");
    let mut relayed = Relayed::round(environment, &mut relayer, sizes).await?;
    while wants.relay && relayed.took < sizes.relaying {
        fill(environment, &sale, sizes.entries).await?;
        relayed = relayed.and(Relayed::round(environment, &mut relayer, sizes).await?);
    }
    drop(relayer);
    if wants.relay {
        bars.push(relay::compared(environment, &relayed, sizes).await?);
    }
    // The rounds have written as much as Redis may write before it rewrites its file by itself, beside what is measured.
    aof_rewrite::rewritten(environment, spinner).await?;
    spinner.say("landing");
    let queued = Sizes { entries: relayed.entries, ..sizes.clone() };
    bars.extend(landing::measure(environment, &sale, &queued, wants.landing).await?);
    if wants.memory {
        spinner.say("trimming");
        bars.push(memory::settled(environment, &sale, before, queued.entries).await?);
    }
    Ok(bars)
}

/// In which order buyers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuyerOrder {
    /// By their names: each row of an index by buyer comes behind the last one.
    InOrder,
    /// In no order of their names, as in a shop.
    Scattered,
}

impl BuyerOrder {
    /// The buyer of a number below [`NAMES`]; each has another one.
    const fn name_of(self, number: u64) -> u64 {
        match self {
            Self::InOrder => number,
            Self::Scattered => number.wrapping_mul(SCATTER) % NAMES,
        }
    }
}

/// Accepts `count` purchases of one unit by as many buyers.
pub(super) async fn fill(environment: &mut Environment, sale: &SaleId, count: u64) -> Result<(), Failure> {
    fill_with(environment, sale, count, BuyerOrder::InOrder).await
}

/// The same with buyers in this order.
pub(super) async fn fill_with(
    environment: &mut Environment,
    sale: &SaleId,
    count: u64,
    buyers: BuyerOrder,
) -> Result<(), Failure> {
    let (shards, first) = (environment.settings.redis.shards, environment.numbers(count));
    let mut by_shard: BTreeMap<u16, Vec<Purchase>> = BTreeMap::new();
    for number in first..first + count {
        let purchase = purchase_by(sale, number, buyers.name_of(number))?;
        by_shard.entry(home_shard(&purchase.user_id, shards)).or_default().push(purchase);
    }
    for (shard, purchases) in &by_shard {
        for group in purchases.chunks(GROUP) {
            environment.go_on()?;
            let group: Vec<&Purchase> = group.iter().collect();
            let decided = environment.servers.redis.stock.reserve(sale, *shard, 1, &group).await?.reserved;
            if let Some(refused) = decided.iter().find(|one| **one != Reserved::Accepted) {
                return Err(Failure::Failed(format!("filling the outbox: a purchase was answered {refused:?}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_buyers_are_all_different() {
        let names: std::collections::BTreeSet<u64> = (1..=10_000).map(|no| BuyerOrder::Scattered.name_of(no)).collect();
        assert_eq!((names.len(), names.last() < Some(&NAMES)), (10_000, true));
        assert_ne!(BuyerOrder::Scattered.name_of(1) + 1, BuyerOrder::Scattered.name_of(2));
    }
}
