//! The two servers of a scene as values.

use crate::domain::balance::LifeCounts;
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerRecord;
use crate::domain::message::{OrderMessage, PayloadHash};
use crate::domain::outcome::{FailReason, Outcome};
use crate::domain::sale::MetaState;
use crate::p5_reconcile::audit::database_side::{OrdersBesideOutcomes, OwnedUnitsDiffer};
use crate::p5_reconcile::audit::redis_side::LedgerScan;
use crate::p5_reconcile::rows::books::{Closed, Series};
use crate::sales::rows::grants::GrantMark;
use crate::store::redis::Trimmed;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One shard of Redis.
#[derive(Clone)]
pub(super) struct SceneShard {
    pub state: MetaState,
    pub epoch: u32,
    pub number: u64,
    pub stock: i64,
    pub given: BTreeMap<String, i64>,
    /// Units that left for other shards, less those that came.
    pub in_transit: i64,
    pub trimmed: Trimmed,
    pub accepted: Option<i64>,
    pub ledger: Vec<(RequestId, LedgerRecord)>,
    /// Records that cannot be read: field and text.
    pub unreadable: Vec<(String, String)>,
    /// The counters are gone; the ledger may be left.
    pub is_gone: bool,
    pub is_complete: bool,
    /// More grants than are read.
    pub has_many_grants: bool,
    /// The scan of an earlier audit, which this one uses.
    pub remembered: Option<LedgerScan>,
}

impl SceneShard {
    /// A shard that was given units by the first grant.
    pub(super) fn with(units: i64) -> Self {
        Self {
            state: MetaState::Open,
            epoch: 1,
            number: 0,
            stock: units,
            given: [("first".to_owned(), units)].into(),
            in_transit: 0,
            trimmed: Trimmed::default(),
            accepted: Some(0),
            ledger: Vec::new(),
            unreadable: Vec::new(),
            is_gone: false,
            is_complete: true,
            has_many_grants: false,
            remembered: None,
        }
    }
}

/// A decided request.
#[derive(Clone)]
pub(super) struct SceneOutcome {
    pub id: RequestId,
    pub outcome: Outcome,
    pub series: Series,
    /// `None`: another request has it.
    pub number: Option<u64>,
    pub units: i64,
    pub payload_hash: PayloadHash,
    /// Since it was decided, by the database's clock.
    pub age_ms: i64,
    /// Its units are offered again.
    pub is_reclaimed: bool,
}

impl SceneOutcome {
    pub(super) fn of(accepted: &OrderMessage, outcome: Outcome, units: i64) -> Self {
        let series = Series { epoch: accepted.epoch, shard: accepted.shard };
        let reused = outcome == Outcome::Failed(FailReason::NumberReused);
        Self {
            id: accepted.purchase.request_id,
            outcome,
            series,
            number: (!reused).then_some(accepted.number),
            units,
            payload_hash: accepted.payload_hash(),
            age_ms: 500,
            is_reclaimed: false,
        }
    }
}

/// The rows of the sale.
#[derive(Clone)]
pub(super) struct SceneDatabase {
    pub exists: bool,
    pub granted: i64,
    pub stock: i64,
    pub epoch: u32,
    /// Sum of the journal.
    pub flow: i64,
    /// Of that, units of cancelled orders.
    pub cancelled: i64,
    /// Of that, units of orders that ended unpaid.
    pub expired: i64,
    /// Units of withdrawals, by the journal.
    pub withdrawn: i64,
    /// The same, by their own rows.
    pub withdrawals: i64,
    /// Withdrawals that have not ended, as the grants they may come to.
    pub open_withdrawals: Vec<GrantMark>,
    pub decided: Vec<SceneOutcome>,
    pub grants: Vec<GrantMark>,
    pub grants_known: bool,
    /// Ends of series that were written down: last number, accepted units.
    pub ended: Vec<(Series, u64, Option<i64>)>,
    pub closed: Vec<Closed>,
    pub life: LifeCounts,
    pub orders: OrdersBesideOutcomes,
    /// Whether this audit counts the orders' own table.
    pub counts_orders: bool,
    pub owned: Vec<OwnedUnitsDiffer>,
}

impl Default for SceneDatabase {
    fn default() -> Self {
        Self {
            exists: true,
            granted: 0,
            stock: 0,
            epoch: 1,
            flow: 0,
            cancelled: 0,
            expired: 0,
            withdrawn: 0,
            withdrawals: 0,
            open_withdrawals: Vec::new(),
            decided: Vec::new(),
            grants: Vec::new(),
            grants_known: true,
            ended: Vec::new(),
            closed: Vec::new(),
            life: LifeCounts::default(),
            orders: OrdersBesideOutcomes::default(),
            counts_orders: true,
            owned: Vec::new(),
        }
    }
}

impl SceneDatabase {
    /// Writes an outcome, with its order or failure.
    pub(super) fn decide(&mut self, request: SceneOutcome) {
        if request.outcome == Outcome::Ordered {
            (self.stock, self.flow) = (self.stock - request.units, self.flow - request.units);
        }
        self.decided.push(request);
    }

    pub(super) fn units_of(&self, id: RequestId) -> i64 {
        self.decided.iter().find(|request| request.id == id).expect("an outcome").units
    }

    pub(super) fn request(&mut self, id: RequestId) -> &mut SceneOutcome {
        self.decided.iter_mut().find(|request| request.id == id).expect("an outcome")
    }

    /// Units of failures that took units and were not offered again.
    pub(super) fn held(&self) -> i64 {
        self.failed(FailReason::has_unit)
    }

    pub(super) fn failed(&self, wanted: fn(FailReason) -> bool) -> i64 {
        let failed = self.decided.iter().filter(|request| !request.is_reclaimed);
        let of = failed.filter(|request| matches!(request.outcome, Outcome::Failed(reason) if wanted(reason)));
        of.map(|request| request.units).sum()
    }

    /// The numbers of a series are closed by a person, or as void.
    pub(super) fn close_numbers(&mut self, series: Series, numbers: RangeInclusive<u64>, units: i64, is_void: bool) {
        self.closed.push(Closed {
            code: "P5-RC4".into(),
            epoch: Some(series.epoch),
            shard: Some(series.shard),
            first: Some(*numbers.start()),
            last: Some(*numbers.end()),
            units,
            reclaimed_by: None,
            is_void,
        });
    }

    pub(super) fn close(&mut self, code: &str, units: i64) {
        self.closed.push(Closed {
            code: code.into(),
            epoch: Some(self.epoch),
            shard: None,
            first: None,
            last: None,
            units,
            reclaimed_by: None,
            is_void: false,
        });
    }
}
