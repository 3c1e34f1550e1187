//! P5 reconcile: compares Redis, the outbox and the DLQs with the database, and repairs forward.
//!
//! Input: the ledger, read before everything else; the database, read last. Output: a balance sheet and findings; for a
//! LEAK the missing order or a recorded failure, through the same landing as P4. Nothing is ever given back to Redis.
//!
//! A crash at any line leaves a repair that is done or not done: each is one transaction guarded by `request_outcome`, and
//! the next run looks again. Two runs at once do no harm.

mod audit;
mod compensate;
mod parked;
mod sheet;

pub use audit::{Auditor, Finding, FindingKind, OpenRequest, SaleAudit, SaleAuditError, Window};

use crate::config::{self, Compensate};
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::domain::states::{P5Reconcile, State};
use crate::runtime::{Worker, now_ms};
use crate::store::mysql::{Db, DbError, audit as audit_store, leader, register, sales};
use crate::store::rabbit::RabbitConfig;
use crate::store::redis::RedisStore;
use crate::telemetry::count;
use std::time::{Duration, Instant};

/// Audit runs kept in the database.
const RUNS_KEPT: u32 = 1_000;
/// A run that found nothing new is written down at most this often for each sale.
const QUIET_EVERY: Duration = Duration::from_secs(300);

/// The reconciler of one process; one leads at a time.
pub struct Reconcile {
    auditor: Auditor,
    settings: config::P5Reconcile,
    next_at: Instant,
    written: std::collections::HashMap<SaleId, (Instant, bool)>,
}

impl Reconcile {
    /// A reconciler over one set of servers.
    #[must_use]
    pub fn new(db: Db, redis: RedisStore, rabbit: RabbitConfig, shards: u16, settings: config::P5Reconcile) -> Self {
        let auditor = Auditor { db, redis, rabbit, shards, findings_max: settings.findings_max };
        Self { auditor, settings, next_at: Instant::now(), written: std::collections::HashMap::new() }
    }

    async fn run(&mut self) -> Result<Progress, Fault> {
        let db = self.auditor.db.clone();
        let Some(_leadership) = leader::try_lead(&db, "reconcile").await.map_err(Fault::back_off)? else {
            return Ok(Progress::Idle);
        };
        // Parked entries first: their record is in the database before they leave Redis (window 46).
        self.auditor.register_parked().await.map_err(Fault::back_off)?;
        let mut repaired = 0;
        let mut oldest_ms = 0;
        for sale in sales::list(&db).await.map_err(Fault::back_off)? {
            if sale.status == SaleStatus::Draft {
                continue;
            }
            let started_at_ms = now_ms();
            let window = Window::Ms(self.settings.window_ms);
            let audit = self.auditor.audit(&sale, window).await.map_err(Fault::back_off)?;
            self.auditor.settle(&audit).await.map_err(Fault::back_off)?;
            if self.settings.compensate == Compensate::Auto {
                repaired += self.auditor.compensate(&audit).await.map_err(Fault::back_off)?;
            }
            oldest_ms = oldest_ms.max(audit.oldest_open_ms);
            self.report(&audit);
            self.write(&audit, started_at_ms).await.map_err(Fault::back_off)?;
        }
        metrics::gauge!("seckill_p5_reconcile_oldest_unresolved_seconds").set(oldest_ms as f64 / 1000.0);
        register::close_settled(&db, "reconcile").await.map_err(Fault::back_off)?;
        audit_store::prune(&db, RUNS_KEPT).await.map_err(Fault::back_off)?;
        Ok(if repaired > 0 { Progress::Moved(repaired) } else { Progress::Idle })
    }

    fn report(&self, audit: &SaleAudit) {
        let sale = &audit.sale_id;
        if audit.findings.is_empty() {
            count(State::P5(P5Reconcile::Match), 1);
        }
        for finding in &audit.findings {
            if let Some(state) = finding.kind.state() {
                count(State::P5(state), 1);
            }
            tracing::error!(
                phase = "p5_reconcile", %sale, kind = finding.kind.code(),
                request_id = finding.request_id.map(tracing::field::display), detail = %finding.detail, "finding"
            );
        }
        let counted = audit.counted;
        for (name, value) in [
            ("redis_stock", counted.redis_stock),
            ("accepted", counted.accepted),
            ("in_flight", counted.in_flight),
            ("parked", counted.parked),
            ("leaked", counted.leaked),
            ("database_stock", counted.database_stock),
            ("ordered", counted.ordered),
        ] {
            metrics::gauge!("seckill_p5_reconcile_units", "sale" => sale.to_string(), "what" => name).set(value as f64);
        }
    }

    /// Writes a run down when it found something, when that changed, or now and then.
    async fn write(&mut self, audit: &SaleAudit, started_at_ms: i64) -> Result<(), DbError> {
        let quiet = self
            .written
            .get(&audit.sale_id)
            .is_some_and(|(at, consistent)| *consistent && audit.consistent() && at.elapsed() < QUIET_EVERY);
        if quiet {
            return Ok(());
        }
        let findings = audit.findings.iter().map(|finding| audit_store::Finding {
            sale_id: Some(audit.sale_id.clone()),
            request_id: finding.request_id,
            code: finding.kind.code().to_owned(),
            detail: finding.detail.clone(),
        });
        let run = audit_store::Run {
            sale_id: Some(audit.sale_id.clone()),
            started_at_ms,
            ended_at_ms: now_ms(),
            consistent: audit.consistent(),
            examined_count: audit.examined_count,
            sheet: serde_json::to_string(&audit.counted).unwrap_or_default(),
            findings: findings.collect(),
        };
        audit_store::record(&self.auditor.db, &run).await?;
        self.written.insert(audit.sale_id.clone(), (Instant::now(), audit.consistent()));
        Ok(())
    }
}

impl Worker for Reconcile {
    fn name(&self) -> &'static str {
        "p5_reconcile"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        let done = self.run().await?;
        self.next_at = Instant::now() + Duration::from_millis(self.settings.interval_ms);
        Ok(done)
    }
}
