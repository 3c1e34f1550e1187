//! A sale on servers that are values: what buyers and the system do to them, and how they lose data. No I/O.

use super::servers::{SceneDatabase, SceneOutcome, SceneShard};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::outcome::{FailReason, Outcome};
use crate::domain::policy::{PurchasePolicy, Quantity};
use crate::domain::sale::{self, MetaState, Sale, SaleStatus};
use crate::p5_reconcile::audit::database_side::{DatabaseBefore, SaleSnapshot};
use crate::p5_reconcile::audit::elsewhere::ParkedRequests;
use crate::p5_reconcile::audit::redis_side::{RedisSide, TransfersSide};
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::rows::books::Series;
use crate::sales::rows::grants::GrantMark;
use std::collections::{HashMap, HashSet};

/// Redis' clock.
pub(super) const NOW_MS: i64 = 10_000_000;
/// How old a request may be undecided, where the window is not waived.
pub(super) const WINDOW_MS: u64 = 60_000;

/// What was read of a scene.
#[derive(Default)]
pub(super) struct SidesSoFar {
    pub(super) before: Option<DatabaseBefore>,
    pub(super) redis: Option<RedisSide>,
    pub(super) parked: Option<ParkedRequests>,
    pub(super) snapshot: Option<Option<SaleSnapshot>>,
}

/// A sale, its servers, and what an audit has read of them.
pub(super) struct AuditScene {
    pub sale: Sale,
    pub window: Window,
    pub findings_max: usize,
    pub retention_ms: Option<i64>,
    pub shards: Vec<SceneShard>,
    pub database: SceneDatabase,
    /// Requests in a DLQ, or open failed requests.
    pub parked: HashSet<RequestId>,
    pub unseen_count: Option<u64>,
    /// Where requests are in the outbox.
    pub located: HashMap<RequestId, String>,
    /// What the buckets say when they are asked.
    pub transfers: TransfersSide,
    pub(super) read: SidesSoFar,
    ids: u64,
}

impl AuditScene {
    /// An open sale with these units, on one shard.
    pub(super) fn open(units: i64) -> Self {
        Self::on_shards(1, units)
    }

    /// The same on several shards, each of which has its share.
    pub(super) fn on_shards(count: u16, units: i64) -> Self {
        let sale = Sale { policy: PurchasePolicy::Unlimited, ..sale::tests::sale(SaleStatus::Warmed) };
        let share = |shard| units / i64::from(count) + i64::from(i64::from(shard) < units % i64::from(count));
        let mut database = SceneDatabase { granted: units, stock: units, flow: units, ..SceneDatabase::default() };
        database.grants.push(GrantMark { grant_id: "first".into(), quantity: units, applied_at_ms: Some(1) });
        Self {
            sale,
            window: Window::Ms(WINDOW_MS),
            findings_max: 100,
            retention_ms: None,
            shards: (0..count).map(|shard| SceneShard::with(share(shard))).collect(),
            database,
            parked: HashSet::new(),
            unseen_count: Some(0),
            located: HashMap::new(),
            transfers: TransfersSide::default(),
            read: SidesSoFar::default(),
            ids: 0,
        }
    }

    /// Redis takes a request a moment ago.
    pub(super) fn accept(&mut self, units: u32) -> RequestId {
        self.accept_on(0, units)
    }

    pub(super) fn accept_on(&mut self, shard: u16, units: u32) -> RequestId {
        self.ids += 1;
        let id = RequestId::new(self.ids).unwrap();
        self.accept_again(id, shard, units);
        id
    }

    /// Redis takes a request that it has taken before, and forgotten.
    pub(super) fn accept_again(&mut self, id: RequestId, shard: u16, units: u32) {
        let of = &mut self.shards[usize::from(shard)];
        of.number += 1;
        of.stock -= i64::from(units);
        of.accepted = of.accepted.map(|sum| sum + i64::from(units));
        let record = LedgerRecord {
            state: LedgerState::Queued,
            number: of.number,
            quantity: Quantity::new(units).unwrap(),
            epoch: of.epoch,
            accepted_at_ms: NOW_MS - 1_000,
            user_id: UserId::parse(&format!("buyer {id}")).unwrap(),
            person: None,
        };
        of.ledger.push((id, record));
    }

    /// It was accepted long ago.
    pub(super) fn is_old(&mut self, id: RequestId) {
        self.record(id).accepted_at_ms = NOW_MS - 10 * i64::try_from(WINDOW_MS).unwrap();
    }

    pub(super) fn record(&mut self, id: RequestId) -> &mut LedgerRecord {
        let records = self.shards.iter_mut().flat_map(|shard| &mut shard.ledger);
        &mut records.into_iter().find(|(other, _)| *other == id).expect("a record").1
    }

    pub(super) fn shard_of(&self, id: RequestId) -> u16 {
        let has = |shard: &SceneShard| shard.ledger.iter().any(|(other, _)| *other == id);
        u16::try_from(self.shards.iter().position(has).expect("a shard")).unwrap()
    }

    /// The database decides it, and the ledger is not marked.
    pub(super) fn decide(&mut self, id: RequestId, outcome: Outcome) {
        let (shard, record) = (self.shard_of(id), self.record(id).clone());
        let accepted = record.order_message(id, &self.sale.sale_id, shard);
        let units = i64::from(record.quantity.get());
        self.database.decide(SceneOutcome::of(&accepted, outcome, units));
    }

    /// The same, and the ledger is marked.
    pub(super) fn settle(&mut self, id: RequestId, outcome: Outcome) {
        self.decide(id, outcome);
        self.record(id).state = match outcome {
            Outcome::Ordered => LedgerState::Confirmed,
            Outcome::Failed(reason) => LedgerState::Failed(reason),
        };
    }

    pub(super) fn order(&mut self, id: RequestId) {
        self.settle(id, Outcome::Ordered);
    }

    pub(super) fn fail(&mut self, id: RequestId, reason: FailReason) {
        self.settle(id, Outcome::Failed(reason));
    }

    /// Accepted and ordered.
    pub(super) fn buy(&mut self, units: u32) -> RequestId {
        let id = self.accept(units);
        self.order(id);
        id
    }

    /// It is in a dead-letter queue.
    pub(super) fn park(&mut self, id: RequestId) {
        self.parked.insert(id);
    }

    /// Its record goes, as if it had never been there; Redis' counters stay.
    pub(super) fn redis_forgets(&mut self, id: RequestId) {
        self.shards.iter_mut().for_each(|shard| shard.ledger.retain(|(other, _)| *other != id));
    }

    /// Its settled record was trimmed in order.
    pub(super) fn trim(&mut self, id: RequestId) {
        let (shard, record) = (usize::from(self.shard_of(id)), self.record(id).clone());
        let (units, trimmed) = (i64::from(record.quantity.get()), &mut self.shards[shard].trimmed);
        trimmed.count += 1;
        match record.state {
            LedgerState::Failed(_) => trimmed.failed += units,
            LedgerState::Queued | LedgerState::Confirmed => trimmed.ordered += units,
        }
        self.redis_forgets(id);
    }

    /// Units that are granted, and not given to Redis yet.
    pub(super) fn grant(&mut self, name: &str, units: i64) {
        let database = &mut self.database;
        (database.granted, database.stock, database.flow) =
            (database.granted + units, database.stock + units, database.flow + units);
        database.grants.push(GrantMark { grant_id: name.into(), quantity: units, applied_at_ms: None });
    }

    /// Redis takes a grant; `marked`: the database knows it.
    pub(super) fn give(&mut self, name: &str, marked: bool) {
        let grant = self.database.grants.iter_mut().find(|grant| grant.grant_id == name).expect("a grant");
        grant.applied_at_ms = marked.then_some(2);
        let units = grant.quantity;
        self.shards[0].given.insert(name.into(), units);
        self.shards[0].stock += units;
    }

    /// A withdrawal of at most this many units is on record.
    pub(super) fn begin_withdrawal(&mut self, name: &str, units: i64) {
        let asked = GrantMark { grant_id: name.into(), quantity: -units, applied_at_ms: None };
        self.database.open_withdrawals.push(asked);
    }

    /// A shard gives units to a withdrawal.
    pub(super) fn withdraw(&mut self, shard: usize, name: &str, units: i64) {
        self.shards[shard].given.insert(name.into(), -units);
        self.shards[shard].stock -= units;
    }

    /// The database ends a withdrawal.
    pub(super) fn end_withdrawal(&mut self, name: &str, units: i64) {
        self.database.open_withdrawals.retain(|open| open.grant_id != name);
        self.grant(name, -units);
        self.database.grants.last_mut().expect("a grant").applied_at_ms = Some(2);
        let database = &mut self.database;
        (database.withdrawn, database.withdrawals) = (database.withdrawn + units, database.withdrawals + units);
    }

    /// An order is cancelled: its units are a grant that Redis does not have yet.
    pub(super) fn cancel(&mut self, id: RequestId) {
        let units = self.database.units_of(id);
        let database = &mut self.database;
        (database.stock, database.flow) = (database.stock + units, database.flow + units);
        (database.cancelled, database.life.cancelled) = (database.cancelled + units, database.life.cancelled + units);
        let grant_id = format!("cancel-{id}");
        database.grants.push(GrantMark { grant_id, quantity: units, applied_at_ms: None });
    }

    /// A backup without the outcome and the order of a request takes the database's place.
    pub(super) fn database_forgets(&mut self, id: RequestId) {
        let units = self.database.units_of(id);
        let was = self.database.decided.iter().position(|other| other.id == id).expect("an outcome");
        if self.database.decided.remove(was).outcome == Outcome::Ordered {
            (self.database.stock, self.database.flow) = (self.database.stock + units, self.database.flow + units);
        }
    }

    /// Redis loses the sale, and it is rebuilt with what the database can give.
    pub(super) fn rebuild(&mut self) {
        let held = self.database.held();
        let units = self.database.stock - held;
        self.sale.epoch += 1;
        let epoch = self.sale.epoch;
        self.database.epoch = epoch;
        self.database.grants =
            vec![GrantMark { grant_id: format!("rebuild-{epoch}"), quantity: units, applied_at_ms: Some(3) }];
        let mut shard = SceneShard::with(units);
        (shard.epoch, shard.given) = (epoch, [(format!("rebuild-{epoch}"), units)].into());
        self.shards = vec![shard];
    }

    /// The sale ended, and its keys left Redis.
    pub(super) fn close_and_leave(&mut self) {
        self.sale.status = SaleStatus::Closed;
        for (shard, of) in (0..).zip(&mut self.shards) {
            let series = Series { epoch: of.epoch, shard };
            self.database.ended.push((series, of.number, of.accepted));
            of.is_gone = true;
        }
    }

    /// Redis was found rewound.
    pub(super) fn freeze(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.state = MetaState::Frozen);
    }

    pub(super) fn sale_id(&self) -> SaleId {
        self.sale.sale_id.clone()
    }
}
