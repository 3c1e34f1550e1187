//! Reads the three sides of an audit, in the order that the head of the audit argues, and what the judge asks for after
//! that.

use super::database_side::{self, DatabaseReader, DatabaseSide};
use super::elsewhere::{Elsewhere, ParkedRequests, locate, parked_requests};
use super::judge::OpenQuestion;
use super::memory::AuditMemory;
use super::redis_side::{self, GrantsInRedis, RedisReader, RedisSide};
use super::window::Window;
use crate::domain::sale::Sale;
use crate::p5_reconcile::audit_stage::AuditStage;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::dlq::MqDlqContents;
use crate::p5_reconcile::rows::books::Series;

/// Reads for an audit of one sale.
#[derive(Clone, Copy)]
pub(super) struct AuditReader<'a> {
    pub context: &'a ReconcileContext,
    pub sale: &'a Sale,
    pub window: Window,
    /// What the round has read of the MQ DLQ; without it the queue is read now.
    pub mq_dlq: Option<&'a MqDlqContents>,
    /// Settled records older than this are collected, milliseconds; `None`: none.
    pub retention_ms: Option<i64>,
}

/// What was read of one sale.
pub(super) struct AuditSides {
    pub redis: RedisSide,
    pub database: DatabaseSide,
    pub elsewhere: Elsewhere,
}

impl<'a> AuditReader<'a> {
    /// Reads the sides. The order is what makes the audit right while buyers buy.
    pub(super) async fn sides(self, memory: &mut AuditMemory) -> Result<AuditSides, ReconcileError> {
        let before = database_side::read_before(self.database()).await?;
        let redis = redis_side::read(self.redis(), &mut memory.scans).await?;
        let elsewhere = Elsewhere { parked: self.parked(&redis).await?, locations: None };
        let mut database = database_side::read(self.database(), before, &redis, &mut memory.outcomes).await?;
        database.owned = memory.owned.clone();
        Ok(AuditSides { redis, database, elsewhere })
    }

    /// Whether the sale was whole in the snapshot, and is being removed by now.
    pub(super) async fn began_to_go(self, sides: &AuditSides) -> Result<bool, ReconcileError> {
        let was_whole = sides.database.snapshot.is_some();
        Ok(was_whole && self.context.rows.archived.get(&self.sale.sale_id).await?.is_some())
    }

    async fn parked(self, redis: &RedisSide) -> Result<ParkedRequests, ReconcileError> {
        if redis.open().next().is_none() {
            return Ok(ParkedRequests::default());
        }
        self.context.stage.send_replace(AuditStage::DeadLetters);
        parked_requests(self.context, &self.sale.sale_id, self.mq_dlq).await
    }

    /// Reads the answer to a question into the sides.
    pub(super) async fn answer(self, sides: &mut AuditSides, question: OpenQuestion) -> Result<(), ReconcileError> {
        let AuditSides { redis, database, elsewhere } = sides;
        match question {
            OpenQuestion::Settled { shards } => redis.settled = Some(self.settled(redis, database, shards).await?),
            OpenQuestion::Outcomes(ids) => {
                self.context.stage.send_replace(AuditStage::Undecided { count: ids.len() });
                database.decided = Some(self.context.rows.requests.outcomes_of(&ids).await?);
            }
            OpenQuestion::Locations { since_ms } => {
                let dlq_read = elsewhere.parked.unseen_count == Some(0);
                elsewhere.locations = Some(locate(self.context, since_ms, dlq_read).await);
            }
            OpenQuestion::Ages(numbers) => database.ages = Some(self.database().ages(&numbers).await?),
            OpenQuestion::Grants => {
                let given = self.redis().grants().await?;
                if matches!(given, GrantsInRedis::Named(_)) {
                    database.grants = self.database().grants().await?;
                }
                redis.grants = Some(given);
            }
            OpenQuestion::Transfers { buckets } => redis.transfers = Some(self.redis().transfers(buckets).await?),
            OpenQuestion::OwnedUnits => database.owned = self.database().owned_units().await?,
        }
        Ok(())
    }

    async fn settled(
        self,
        redis: &RedisSide,
        database: &DatabaseSide,
        shards: Vec<u16>,
    ) -> Result<Vec<(u16, Vec<redis_side::OpenRecord>)>, ReconcileError> {
        let Some(snapshot) = &database.snapshot else { return Ok(Vec::new()) };
        let mut settled = Vec::with_capacity(shards.len());
        for shard in shards {
            let series = Series { epoch: self.sale.epoch, shard };
            let has_counters = redis.counted_in(series).is_some();
            let forgotten = |record: &_| snapshot.has_forgotten(series, record, has_counters);
            settled.push((shard, self.redis().settled(redis, shard, forgotten).await?));
        }
        Ok(settled)
    }

    const fn redis(self) -> RedisReader<'a> {
        let Self { context, sale, window, retention_ms, .. } = self;
        RedisReader { context, sale, window, retention_ms }
    }

    const fn database(self) -> DatabaseReader<'a> {
        DatabaseReader { context: self.context, sale: self.sale }
    }
}
