//! The sides of a scene, read at one moment or at several: what an audit reads first stays as it was then.

use super::scene::{AuditScene, NOW_MS};
use super::servers::{SceneOutcome, SceneShard};
use crate::domain::outcome::{FailReason, Outcome};
use crate::domain::sale::SaleStatus;
use crate::orders::rows::outcomes::RequestOutcome;
use crate::p5_reconcile::audit::database_side::{
    DatabaseBefore, DatabaseSide, OwnedUnitsSide, SaleSnapshot, SeriesCounted, VoidNumbers, wanted,
};
use crate::p5_reconcile::audit::elsewhere::{Elsewhere, ParkedRequests, RequestLocations};
use crate::p5_reconcile::audit::judge::{AuditTerms, JudgedSale, Judgement, OpenQuestion, judge};
use crate::p5_reconcile::audit::reading::AuditSides;
use crate::p5_reconcile::audit::redis_side::{
    CountedShard, GrantsInRedis, KnownGaps, LedgerScan, LostShard, OpenRecord, RedisSide, ShardSide, Unreadable,
};
use crate::p5_reconcile::rows::books::{Books, GrantsSum, JournalSum, KnownSeries, OrdersCount, Series, Tally};
use crate::store::redis::{Meta, ShardCount};
use std::collections::{BTreeMap, BTreeSet};

impl AuditScene {
    /// The audit reads the database's numbers and marks now.
    pub(super) fn read_before(&mut self) -> DatabaseBefore {
        let now = self.before_now();
        self.read.before.get_or_insert(now).clone()
    }

    /// The audit reads Redis now.
    pub(super) fn read_redis(&mut self) -> RedisSide {
        self.read_before();
        let now = self.redis_now();
        self.read.redis.get_or_insert(now).clone()
    }

    /// The audit reads the dead-letter queues now.
    pub(super) fn read_parked(&mut self) -> ParkedRequests {
        let redis = self.read_redis();
        let now = match redis.open().next() {
            None => ParkedRequests::default(),
            Some(_) => ParkedRequests { ids: self.parked.clone(), unseen_count: self.unseen_count },
        };
        self.read.parked.get_or_insert(now).clone()
    }

    /// The audit reads the books now.
    pub(super) fn read_books(&mut self) -> Option<SaleSnapshot> {
        self.read_parked();
        let now = self.snapshot_now();
        self.read.snapshot.get_or_insert(now).clone()
    }

    /// Reads what was not read yet, and judges; the scene answers the questions. `None`: everything has to be read
    /// again.
    pub(super) fn judged(&mut self) -> Option<(JudgedSale, Vec<OpenQuestion>)> {
        let snapshot = self.read_books();
        let owned = OwnedUnitsSide { differ: self.database.owned.clone(), ..OwnedUnitsSide::default() };
        let mut sides = AuditSides {
            redis: self.read_redis(),
            database: DatabaseSide { before: self.read_before(), snapshot, owned, ..DatabaseSide::default() },
            elsewhere: Elsewhere { parked: self.read_parked(), locations: None },
        };
        let sale = self.sale.clone();
        let terms = AuditTerms { sale: &sale, window: self.window, findings_max: self.findings_max };
        let mut asked = Vec::new();
        for _ in 0..=super::super::super::ROUNDS {
            match judge(&terms, &sides.redis, &sides.database, &sides.elsewhere) {
                Judgement::Decided(judged) => return Some((*judged, asked)),
                Judgement::ReadAgain => return None,
                Judgement::Asks(questions) => {
                    questions.iter().for_each(|question| self.answer(&mut sides, question));
                    asked.extend(questions);
                }
            }
        }
        panic!("the judge never has enough: {asked:?}");
    }

    fn answer(&self, sides: &mut AuditSides, question: &OpenQuestion) {
        match question {
            OpenQuestion::Settled { shards } => {
                let settled = shards.iter().map(|shard| (*shard, self.forgotten(sides, *shard))).collect();
                sides.redis.settled = Some(settled);
            }
            OpenQuestion::Outcomes(ids) => {
                let wanted = self.database.decided.iter().filter(|request| ids.contains(&request.id));
                let outcome = |of: &SceneOutcome| RequestOutcome {
                    request_id: of.id,
                    outcome: of.outcome,
                    sale_id: self.sale_id(),
                    shard: of.series.shard,
                    epoch: of.series.epoch,
                    number: of.number,
                    payload_hash: of.payload_hash,
                    decided_at_ms: 0,
                };
                sides.database.decided = Some(wanted.map(|request| (request.id, outcome(request))).collect());
            }
            OpenQuestion::Locations { .. } => {
                let elsewhere = "not in the outbox, nothing waits in the broker".to_owned();
                let in_outbox = self.located.clone();
                sides.elsewhere.locations = Some(RequestLocations { in_outbox, elsewhere });
            }
            OpenQuestion::Ages(asked) => {
                let ages = |(series, numbers): &(Series, Vec<u64>)| {
                    (*series, numbers.iter().map(|number| self.age_above(*series, *number)).collect())
                };
                sides.database.ages = Some(asked.iter().map(ages).collect());
            }
            OpenQuestion::Grants => {
                sides.redis.grants = Some(self.grants_in_redis());
                let known = self.database.open_withdrawals.iter().chain(&self.database.grants);
                sides.database.grants = Some(known.cloned().collect());
            }
            OpenQuestion::Transfers { buckets } => {
                let mut transfers = self.transfers.clone();
                transfers.twice = transfers.twice.filter(|_| *buckets);
                sides.redis.transfers = Some(transfers);
            }
            OpenQuestion::OwnedUnits => {
                sides.database.owned =
                    OwnedUnitsSide { differ: self.database.owned.clone(), is_new: true, ..OwnedUnitsSide::default() };
            }
        }
    }

    fn forgotten(&self, sides: &AuditSides, shard: u16) -> Vec<OpenRecord> {
        let snapshot = sides.database.snapshot.as_ref().expect("books");
        let series = Series { epoch: self.sale.epoch, shard };
        let has_counters = sides.redis.counted_in(series).is_some();
        let ledger = self.shards[usize::from(shard)].ledger.iter();
        let settled = ledger.filter(|(_, record)| record.state.is_final());
        let forgotten = settled.filter(|(_, record)| snapshot.has_forgotten(series, record, has_counters));
        forgotten.map(|(request_id, record)| OpenRecord { request_id: *request_id, record: record.clone() }).collect()
    }

    fn age_above(&self, series: Series, number: u64) -> Option<i64> {
        let of_series = self.database.decided.iter().filter(|request| request.series == series);
        let above = of_series.filter(|request| request.number.is_some_and(|other| other > number));
        above.min_by_key(|request| request.number).map(|request| request.age_ms)
    }

    fn grants_in_redis(&self) -> GrantsInRedis {
        let mut given: BTreeMap<String, i64> = BTreeMap::new();
        for shard in &self.shards {
            if shard.has_many_grants {
                return GrantsInRedis::TooMany;
            }
            if shard.is_gone || shard.given.is_empty() {
                return GrantsInRedis::Missing;
            }
            for (name, units) in &shard.given {
                *given.entry(name.clone()).or_default() += units;
            }
        }
        GrantsInRedis::Named(given)
    }

    fn before_now(&self) -> DatabaseBefore {
        let mut known: BTreeMap<Series, KnownSeries> = BTreeMap::new();
        for (series, number, accepted) in &self.database.ended {
            known.insert(*series, KnownSeries { series: *series, number: *number, accepted: *accepted });
        }
        for (series, number) in self.database.decided.iter().filter_map(|of| Some((of.series, of.number?))) {
            let known = known.entry(series).or_insert(KnownSeries { series, number: 0, accepted: None });
            known.number = known.number.max(number);
        }
        let marked = self.database.grants.iter().filter(|grant| grant.applied_at_ms.is_some()).cloned();
        DatabaseBefore {
            known: known.into_values().collect(),
            marked: marked.collect(),
            withdrawn: self.database.withdrawals,
        }
    }

    fn redis_now(&self) -> RedisSide {
        let shards = self.shards.iter().map(|shard| self.shard_now(shard)).collect();
        RedisSide { shards, ..RedisSide::default() }
    }

    fn shard_now(&self, shard: &SceneShard) -> ShardSide {
        let records = || shard.ledger.iter().cloned();
        if shard.is_gone {
            let queued = records().filter(|(_, record)| !record.state.is_final());
            let queued = queued.map(|(request_id, record)| OpenRecord { request_id, record }).collect();
            return match self.sale.status {
                SaleStatus::Warmed | SaleStatus::Paused => ShardSide::Lost(LostShard { now_ms: NOW_MS, queued }),
                SaleStatus::Draft | SaleStatus::Closed => ShardSide::Absent,
            };
        }
        let counts = ShardCount {
            meta: Meta { state: shard.state, epoch: shard.epoch, number: shard.number },
            stock: shard.stock,
            granted: shard.given.values().sum(),
            in_transit: shard.in_transit,
            grants: shard.given.len() as u64,
            trimmed: shard.trimmed,
            accepted: shard.accepted,
        };
        let fresh = shard.remembered.is_none();
        let scan = shard.remembered.clone().unwrap_or_else(|| {
            let mut scan = LedgerScan::begun(&counts, KnownGaps::default());
            records().for_each(|(id, record)| scan.visit(id, record, self.retention_ms, NOW_MS));
            scan
        });
        let unreadable = Unreadable { records: shard.unreadable.clone(), more: 0 };
        let complete = shard.is_complete;
        ShardSide::Counted(Box::new(CountedShard { counts, complete, scan, fresh, unreadable, now_ms: NOW_MS }))
    }

    fn snapshot_now(&mut self) -> Option<SaleSnapshot> {
        let (before, redis) = (self.read_before(), self.read_redis());
        let database = &self.database;
        if !database.exists {
            return None;
        }
        let series = wanted(&before, &redis, self.sale.epoch);
        let series = series.iter().map(|of| (of.series, self.counted(of.series, of.to, of.above))).collect();
        let flow = JournalSum {
            to: 0,
            sum: database.flow,
            cancelled: database.cancelled,
            expired: database.expired,
            withdrawn: database.withdrawn,
        };
        let unapplied = database.grants.iter().filter(|grant| grant.applied_at_ms.is_none());
        let books = Books {
            granted: database.granted,
            stock: database.stock,
            epoch: database.epoch,
            flow,
            flow_settled: flow,
            withdrawn: database.withdrawals,
            grants: database.grants.iter().map(|grant| grant.quantity).sum(),
            grants_settled: GrantsSum::default(),
            grants_unapplied: unapplied.map(|grant| grant.quantity).sum(),
            grants_known: database.grants_known,
            held: database.held(),
            orders: database.counts_orders.then_some(OrdersCount { count: 0, units: None }),
            life: database.life,
            refused: database.failed(|reason| reason == FailReason::SoldOut),
            closed: database.closed.clone(),
            series: Vec::new(),
        };
        let void = VoidNumbers::of(&books);
        Some(SaleSnapshot { books, series, orders: database.orders, void })
    }

    fn counted(&self, series: Series, to: u64, above: bool) -> SeriesCounted {
        let of_series = || self.database.decided.iter().filter(move |request| request.series == series);
        let mut counted = SeriesCounted::default();
        for request in of_series() {
            let is_above = request.number.is_some_and(|number| number > to);
            let tally = if is_above { &mut counted.above } else { &mut counted.tally };
            if request.number.is_some() && (above || !is_above) {
                *tally += tally_of(request);
            }
        }
        let there: BTreeSet<u64> = of_series().filter_map(|request| request.number).collect();
        for number in (1..=to).filter(|number| !there.contains(number)) {
            match counted.missing.last_mut() {
                Some(run) if run.1 + 1 == number => run.1 = number,
                _ => counted.missing.push((number, number)),
            }
        }
        counted
    }
}

fn tally_of(request: &SceneOutcome) -> Tally {
    match request.outcome {
        Outcome::Ordered => Tally { count: 1, ordered: request.units, orders: 1, ..Tally::default() },
        Outcome::Failed(reason) => {
            let held = if reason.has_unit() { request.units } else { 0 };
            Tally { count: 1, failed: request.units, held, ..Tally::default() }
        }
    }
}
