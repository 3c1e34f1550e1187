//! What a kill -9 of the application leaves of what its buyers were told. The servers live on; what their loss costs is not
//! the subject here.
//!
//! Input: a `victim` that sells. Output: who was told yes and has no order once everything that can still land has landed,
//! and units that left the stock and belong to nobody. A crash kills the victim too (the kernel does).

use super::Strategy;
use super::taker::{key, stock_up};
use crate::baseline::mysql_units;
use crate::baseline::redis as ways;
use crate::ground::Ground;
use seckill::cli::Failure;
use seckill::dev::Child;
use seckill::domain::ids::SaleId;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// Units of the sale, and buyers: far more than are told before the kill, so that it comes while everybody buys.
pub(super) const UNITS: u64 = 20_000;
/// The kill comes as soon as so many have been told.
const TOLD: usize = 300;
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// A sale whose application was killed.
pub(super) struct Killed {
    pub strategy: Strategy,
    sale: SaleId,
    /// Numbers of the buyers who were told yes.
    told: BTreeSet<u64>,
}

/// What is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Losses {
    /// Buyers who were told yes.
    pub told: usize,
    /// Orders in the database.
    pub orders: usize,
    /// Buyers who were told yes and have no order.
    pub lost: usize,
    /// Units that left the stock without an order; below 0: orders without a unit.
    pub stranded: i64,
}

/// Starts the application of one strategy, and kills it while it sells.
pub(super) async fn one(
    ground: &mut Ground,
    (name, strategy): (&str, Strategy),
    patience: Duration,
) -> Result<Killed, Failure> {
    let sale = stock_up(ground, strategy, UNITS).await?;
    let first = ground.numbers(UNITS).to_string();
    let words = ["bench-buyers", "--strategy", name, "--sale", sale.as_str(), "--first", &first].map(str::to_owned);
    let none = || Failure::Failed("strategies need servers and roles of their own".to_owned());
    // A log of its own for each victim: what is in it is what was told.
    let mut victim = ground.crew().ok_or_else(none)?.child(&format!("{name}-{first}"), &words).await?;
    let until = Instant::now() + patience;
    while heard(&victim)?.len() < TOLD {
        ground.go_on()?;
        if !victim.is_alive() || Instant::now() > until {
            return Err(Failure::Failed(format!("{name}: {TOLD} buyers were not told: {}", victim.log_tail())));
        }
        ground.stop.sleep(LOOK).await;
    }
    let ended = victim.kill().await?;
    if ended.signal() != Some(libc::SIGKILL) {
        return Err(Failure::Failed(format!("{name}: ended by itself before it was killed: {}", victim.log_tail())));
    }
    // It is dead and reaped: nothing is written any more.
    Ok(Killed { strategy, sale, told: heard(&victim)? })
}

fn heard(victim: &Child) -> Result<BTreeSet<u64>, Failure> {
    Ok(told_in(&std::fs::read_to_string(victim.log())?))
}

/// Numbers of whole lines `yes <number>`; who was not told to the end was not told.
fn told_in(log: &str) -> BTreeSet<u64> {
    let number = |line: &str| line.strip_prefix("yes ")?.strip_suffix('\n')?.parse().ok();
    log.split_inclusive('\n').filter_map(number).collect()
}

impl Killed {
    /// Counts, when everything that could land has landed, and removes what the field's ways have in Redis.
    pub async fn count(&self, ground: &Ground) -> Result<Losses, Failure> {
        let (redis, db) = (&ground.servers.redis, &ground.servers.db);
        let taken = match self.strategy {
            Strategy::Redis(way) => {
                let key = key(&self.sale);
                let left = ways::left(redis, way, &key).await?;
                ways::forget(redis, way, &key).await?;
                i64::try_from(UNITS).unwrap_or(i64::MAX) - left
            }
            Strategy::SkipLocked => mysql_units::taken(db, &self.sale).await?,
            Strategy::Guarded => ground.landed_and_sold(&self.sale).await?.0,
            Strategy::Ours(_) => ground.landed_and_sold(&self.sale).await?.1,
        };
        let orders = mysql_units::ordered(db, &self.sale).await?;
        Ok(Losses::of(&self.told, &orders.into_iter().collect(), taken))
    }
}

impl Losses {
    fn of(told: &BTreeSet<u64>, orders: &BTreeSet<u64>, taken: i64) -> Self {
        let stranded = taken - i64::try_from(orders.len()).unwrap_or(i64::MAX);
        Self { told: told.len(), orders: orders.len(), lost: told.difference(orders).count(), stranded }
    }

    /// What must not be.
    pub fn wrong(&self) -> u64 {
        self.lost as u64 + self.stranded.unsigned_abs()
    }
}

impl Display for Losses {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { told, lost, stranded, .. } = self;
        write!(f, "kill -9: of {told} told yes lost {lost}, units stranded {stranded}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_lost_is_told_by_number_and_not_by_a_difference_of_counts() {
        let losses = Losses::of(&[1, 2, 3].into(), &[3, 4, 5].into(), 5);
        assert_eq!(losses, Losses { told: 3, orders: 3, lost: 2, stranded: 2 });
        assert_eq!((losses.wrong(), Losses::of(&[1].into(), &[1, 2].into(), 2).wrong()), (4, 0));
        assert_eq!(Losses::of(&[1].into(), &[1, 2].into(), 1).wrong(), 1, "an order without a unit");
    }

    #[test]
    fn a_line_that_was_cut_is_no_answer() {
        assert_eq!(told_in("yes 7\nerror: no\nyes x\nyes 8\nyes 9"), [7, 8].into());
        assert!(told_in("").is_empty());
    }
}
