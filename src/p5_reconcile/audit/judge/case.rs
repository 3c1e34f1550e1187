//! What a judge has before it: the sale and the three sides. Values only.

use crate::domain::sale::{MetaState, Sale};
use crate::faults::left_out;
use crate::p5_reconcile::audit::database_side::{DatabaseSide, SaleSnapshot};
use crate::p5_reconcile::audit::elsewhere::Elsewhere;
use crate::p5_reconcile::audit::redis_side::{CountedShard, OpenRecord, RedisSide};
use crate::p5_reconcile::audit::result::OpenRequest;
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::rows::books::{KnownSeries, Series};

/// Whose audit it is, and what counts as overdue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditTerms<'a> {
    pub sale: &'a Sale,
    pub window: Window,
    /// Most findings of the audit; the others are counted.
    pub findings_max: usize,
}

/// The case of one sale that the database has.
#[derive(Clone, Copy)]
pub(super) struct SaleCase<'a> {
    pub terms: &'a AuditTerms<'a>,
    pub redis: &'a RedisSide,
    pub database: &'a DatabaseSide,
    pub elsewhere: &'a Elsewhere,
    pub snapshot: &'a SaleSnapshot,
}

impl<'a> SaleCase<'a> {
    /// The shard of a series, if Redis and the database are both in the epoch of the series.
    pub(super) fn current(&self, series: Series) -> Option<&'a CountedShard> {
        self.redis.counted_in(series).filter(|_| series.epoch == self.terms.sale.epoch)
    }

    /// What the database knew of a series before Redis was read.
    pub(super) fn known(&self, series: Series) -> Option<&'a KnownSeries> {
        self.database.before.known.iter().find(|known| known.series == series)
    }

    /// Whether both servers are in one epoch, with all shards: their units can be compared.
    pub(super) fn is_bridged(&self) -> bool {
        self.redis.is_in_step(self.terms.sale.epoch) && self.redis.is_whole() && !left_out!(UnitBridge)
    }

    /// Whether Redis sells: no rebuild is under way.
    pub(super) fn sells(&self) -> bool {
        self.redis.counted().all(|(_, counted)| counted.counts.meta.state != MetaState::Frozen)
    }

    /// Whether the units between the servers are compared grant by grant and bucket by bucket.
    pub(super) fn compares_grants(&self) -> bool {
        self.snapshot.books.grants_known && !left_out!(UnitBridge)
    }

    /// An open record as a request: its age by its shard's clock, and whether it is parked.
    pub(super) fn request(&self, shard: u16, open: &OpenRecord) -> OpenRequest {
        let OpenRecord { request_id, record } = open.clone();
        let parked = self.elsewhere.parked.ids.contains(&request_id);
        OpenRequest { request_id, shard, age_ms: self.age_ms(shard, open), record, parked }
    }

    pub(super) fn age_ms(&self, shard: u16, open: &OpenRecord) -> i64 {
        (self.redis.now_ms(shard) - open.record.accepted_at_ms).max(0)
    }

    /// Whether the request is older than the window.
    pub(super) fn is_late(&self, shard: u16, open: &OpenRecord) -> bool {
        self.age_ms(shard, open) > self.terms.window.limit_ms()
    }
}
