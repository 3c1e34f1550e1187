//! What a kill -9 of the application leaves of the answers that its buyers got. The servers live on; what their loss costs is not
//! the subject here.
//!
//! Input: a `victim` that sells; where orders have events, a second one that publishes them, killed once in the middle and
//! once with the first. Output: who got a yes and has no order (or no event) once everything that can still be persisted is
//! persisted, who has two, and units that left the stock and belong to no buyer. A crash kills the victims too (the kernel does).

use super::StockStrategy;
use super::messages::{EventDispatcher, EventOutcome};
use super::taker::{key, stock_up, stores};
use super::victim::{PUBLISHED, READY, TOLD, UNITS, VictimPart};
use crate::baseline::{mysql_units, redis as redis_strategies};
use crate::environment::Environment;
use seckill::cli::Failure;
use seckill::dev::Child;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// How often that is counted.
const CHECK_EVERY: Duration = Duration::from_millis(1);

/// A sale whose application was killed.
pub(super) struct Killed {
    pub strategy: StockStrategy,
    sale: SaleId,
    /// Numbers of the buyers who got a yes.
    told: BTreeSet<u64>,
    /// What was killed, by name.
    killed: Vec<&'static str>,
}

/// What is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Losses {
    /// The processes that were killed.
    pub killed: Vec<&'static str>,
    /// Buyers who got a yes.
    pub told: usize,
    /// Orders in the database.
    pub orders: usize,
    /// Buyers who got a yes and have no order, or whose order has no event where it should have one.
    pub lost: usize,
    /// Orders beyond the first of a buyer.
    pub doubled: i64,
    /// Orders without a unit.
    pub oversold: i64,
    /// Units that left the stock without an order; below 0: orders without a unit.
    pub stranded: i64,
    /// Where orders have events.
    pub events: Option<EventOutcome>,
}

/// The processes that play the application of one sale.
struct VictimStarter<'a> {
    name: &'a str,
    sale: &'a SaleId,
    first: u64,
}

impl VictimStarter<'_> {
    async fn start(&self, environment: &Environment, part: VictimPart) -> Result<Child, Failure> {
        let (name, first) = (self.name, self.first.to_string());
        let none = || Failure::Failed("strategies need servers and roles of their own".to_owned());
        let part = part.name();
        let words = ["buyers", "--strategy", name, "--sale", self.sale.as_str(), "--first", &first, "--part", part];
        // A log of its own for each victim: it has the answers that were given. Both dispatchers of a sale share one.
        environment
            .role_processes()
            .ok_or_else(none)?
            .child(&format!("{name}-{first}-{part}"), &words.map(str::to_owned))
            .await
    }

    /// What publishes the events, at work.
    async fn dispatcher(&self, environment: &Environment, patience: Duration) -> Result<Child, Failure> {
        let mut dispatcher = self.start(environment, VictimPart::Dispatcher).await?;
        wait_for(environment, &mut dispatcher, patience, |child| Ok(log(child)?.contains(READY))).await?;
        Ok(dispatcher)
    }
}

/// Starts the application of one strategy, and kills it while it sells. What publishes events is killed before, and again with
/// it; of ours, relay and consumer are killed right after it, with the sale's orders on their way.
pub(super) async fn one(
    environment: &mut Environment,
    (name, strategy): (&str, StockStrategy),
    patience: Duration,
) -> Result<Killed, Failure> {
    let sale = stock_up(environment, strategy, UNITS).await?;
    let starter = VictimStarter { name, sale: &sale, first: environment.numbers(UNITS) };
    let told = |count| move |child: &Child| Ok(buyers_answered(child)?.len() >= count);
    let mut killed = vec![VictimPart::Buyers.name()];
    let buyers = if strategy.scheme().is_some() {
        let mut dispatcher = starter.dispatcher(environment, patience).await?;
        let mut buyers = starter.start(environment, VictimPart::Buyers).await?;
        wait_for(environment, &mut buyers, patience, told(TOLD / 2)).await?;
        wait_for(environment, &mut dispatcher, patience, |child| Ok(log(child)?.contains(PUBLISHED))).await?;
        kill(&mut dispatcher).await?;
        dispatcher = starter.start(environment, VictimPart::Dispatcher).await?;
        wait_for(environment, &mut buyers, patience, told(TOLD)).await?;
        kill(&mut buyers).await?;
        kill(&mut dispatcher).await?;
        killed.push(VictimPart::Dispatcher.name());
        buyers
    } else {
        if let StockStrategy::Ours(_) = strategy {
            environment.all_roles().await?;
        }
        let mut buyers = starter.start(environment, VictimPart::Buyers).await?;
        wait_for(environment, &mut buyers, patience, told(TOLD)).await?;
        kill(&mut buyers).await?;
        buyers
    };
    if let StockStrategy::Ours(_) = strategy {
        for role in [Role::Relay, Role::Consumer] {
            environment.kill_role(role).await?;
            killed.push(role.name());
        }
        environment.api_only().await?;
    }
    // It is dead and reaped: nothing is written any more.
    let told = buyers_answered(&buyers)?;
    Ok(Killed { strategy, sale, told, killed })
}

async fn wait_for(
    environment: &Environment,
    child: &mut Child,
    patience: Duration,
    is_there: impl Fn(&Child) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let until = Instant::now() + patience;
    while !is_there(child)? {
        environment.go_on()?;
        if !child.is_alive() || Instant::now() > until {
            let (name, tail) = (child.name(), child.log_tail());
            return Err(Failure::Failed(format!("{name} did not get as far as its kill: {tail}")));
        }
        environment.stop.sleep(CHECK_EVERY).await;
    }
    Ok(())
}

async fn kill(child: &mut Child) -> Result<(), Failure> {
    if child.kill().await?.signal() == Some(libc::SIGKILL) {
        return Ok(());
    }
    let (name, tail) = (child.name(), child.log_tail());
    Err(Failure::Failed(format!("{name}: ended by itself before it was killed: {tail}")))
}

fn log(child: &Child) -> Result<String, Failure> {
    Ok(std::fs::read_to_string(child.log())?)
}

fn buyers_answered(child: &Child) -> Result<BTreeSet<u64>, Failure> {
    Ok(answered_in(&log(child)?))
}

/// Numbers of whole lines `yes <number>`; a buyer who did not get the whole line got no answer.
fn answered_in(log: &str) -> BTreeSet<u64> {
    let number = |line: &str| line.strip_prefix("yes ")?.strip_suffix('\n')?.parse().ok();
    log.split_inclusive('\n').filter_map(number).collect()
}

impl Killed {
    /// Counts, when everything that could be persisted is persisted, and removes what the field's strategies have in Redis and in
    /// the broker.
    pub async fn count(&self, environment: &Environment, patience: Duration) -> Result<Losses, Failure> {
        let (redis, db) = (&environment.servers.redis, &environment.servers.db);
        let units = i64::try_from(UNITS).unwrap_or(i64::MAX);
        let taken = match self.strategy {
            StockStrategy::Redis(strategy) => {
                let key = key(&self.sale);
                let left = redis_strategies::left(redis, strategy, &key).await?;
                redis_strategies::forget(redis, strategy, &key).await?;
                units - left
            }
            StockStrategy::SkipLocked => mysql_units::taken(db, &self.sale).await?,
            StockStrategy::Versioned => units - mysql_units::version_left(db, &self.sale).await?,
            StockStrategy::Guarded | StockStrategy::Messages(_) => environment.landed_and_sold(&self.sale).await?.0,
            StockStrategy::Ours(_) => environment.landed_and_sold(&self.sale).await?.1,
        };
        let orders: BTreeSet<u64> = mysql_units::ordered(db, &self.sale).await?.into_iter().collect();
        let events = match self.strategy.scheme() {
            Some(scheme) => {
                let stores = stores(environment, &self.sale);
                EventDispatcher::start(scheme, stores.clone()).await?.drain(patience).await?;
                Some((stores.take_events(patience).await?, stores.check_backs(scheme).await?))
            }
            None => None,
        };
        let doubled = mysql_units::doubled(db, &self.sale).await?;
        let mut losses = Losses { killed: self.killed.clone(), doubled, ..Losses::of(&self.told, &orders, taken) };
        if let Some((events, check_backs)) = events {
            let has_both = |buyer: &&u64| orders.contains(buyer) && events.contains_key(buyer);
            losses.lost = self.told.len() - self.told.iter().filter(has_both).count();
            losses.events = Some(EventOutcome::of(&orders, &events, check_backs));
        }
        Ok(losses)
    }
}

impl Losses {
    fn of(told: &BTreeSet<u64>, orders: &BTreeSet<u64>, taken: i64) -> Self {
        let stranded = taken - i64::try_from(orders.len()).unwrap_or(i64::MAX);
        let lost = told.difference(orders).count();
        let oversold = (-stranded).max(0);
        let (told, orders, killed) = (told.len(), orders.len(), Vec::new());
        Self { killed, told, orders, lost, doubled: 0, oversold, stranded, events: None }
    }

    /// What must not be.
    pub fn wrong(&self) -> u64 {
        self.lost as u64 + self.stranded.unsigned_abs() + self.doubled.unsigned_abs()
    }
}

impl Display for Losses {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { told, lost, doubled, stranded, events, .. } = self;
        write!(f, "kill -9: of {told} told yes lost {lost}, doubled {doubled}, units stranded {stranded}")?;
        let Some(EventOutcome { missing, without_order, twice, .. }) = events else { return Ok(()) };
        write!(f, ", events missing {missing}, without an order {without_order}, published twice {twice}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_lost_is_known_by_number_and_not_by_a_difference_of_counts() {
        let losses = Losses::of(&[1, 2, 3].into(), &[3, 4, 5].into(), 5);
        assert_eq!((losses.told, losses.orders, losses.lost, losses.stranded, losses.oversold), (3, 3, 2, 2, 0));
        assert_eq!((losses.wrong(), Losses::of(&[1].into(), &[1, 2].into(), 2).wrong()), (4, 0));
        let without_unit = Losses::of(&[1].into(), &[1, 2].into(), 1);
        assert_eq!((without_unit.wrong(), without_unit.oversold), (1, 1), "an order without a unit");
    }

    #[test]
    fn a_line_that_was_cut_is_no_answer() {
        assert_eq!(answered_in("yes 7\nerror: no\nyes x\nyes 8\nyes 9"), [7, 8].into());
        assert!(answered_in("").is_empty());
    }
}
