//! P5 reconcile: compares Redis, the outbox and the DLQs with the database, and repairs forward.
//!
//! Input: the ledger, read before everything else; the database, read last. Output: a balance sheet and findings; for a
//! LEAK the missing order or a recorded failure, through the same landing as P4. Nothing is ever given back to Redis.
//!
//! A crash at any line leaves a repair that is done or not done: each is one transaction guarded by `request_outcome`, and
//! the next run looks again. Two runs at once do no harm.

pub mod archive;
mod audit;
mod backlog;
mod cancel;
mod compensate;
pub mod dlq;
mod ended;
mod gaps;
mod journal;
mod lead;
mod loading;
mod mq_dlq;
mod mq_reading;
mod parked;
mod rebuild;
mod trace;
mod transfers;
mod whereabouts;

pub use audit::{Auditor, Finding, FindingKind, OpenRequest, SaleAudit, SaleAuditError, SeriesSheet, Window};
pub use gaps::Suspect;
pub use lead::leader;
pub use mq_dlq::Tidied;
pub use mq_reading::MqSeen;
pub use parked::MQ_DLQ_MAX;
pub use trace::{InLedger, Trace};

use crate::config::{self, Compensate};
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::policy::PurchasePolicy;
use crate::domain::sale::{Sale, SaleStatus};
use crate::faults::slow_audit;
use crate::runtime::{Worker, now_ms};
use crate::sales::grants::{self, GrantError, GrantProgress};
use crate::store::mysql::{audit as audit_store, failed_requests, sales};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Sales whose counts are remembered; beyond it everything is counted anew.
const SALES_REMEMBERED_MAX: usize = 10_000;

/// The reconciler of one process; one leads at a time.
pub struct Reconcile {
    auditor: Auditor,
    settings: config::P5Reconcile,
    next_at: Instant,
    lead: lead::Lead,
    journal: journal::Journal,
    /// Requests of the MQ DLQ that have a row in the register.
    noted: HashSet<RequestId>,
    quiet: rebuild::Quiet,
    /// What was counted of each sale, so that a round counts only what is new.
    remembered: HashMap<SaleId, Remembered>,
    /// Closed sales that were found consistent with nothing left in Redis.
    at_rest: HashSet<SaleId>,
    backlog_max: u64,
}

impl Reconcile {
    /// A reconciler; `backlog_max` is what a rebuilt sale's script refuses at.
    #[must_use]
    pub fn new(auditor: Auditor, settings: config::P5Reconcile, backlog_max: u64) -> Self {
        let journal = journal::Journal::new(settings.interval_ms);
        let (next_at, lead, quiet) = (Instant::now(), lead::Lead::default(), rebuild::Quiet::default());
        let (noted, at_rest, remembered) = (HashSet::new(), HashSet::new(), HashMap::new());
        Self { auditor, settings, next_at, lead, journal, noted, quiet, remembered, at_rest, backlog_max }
    }

    /// Whether this process leads, so that its next step is a round when the time has come.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.lead.holds()
    }

    async fn run(&mut self) -> Result<Progress, Fault> {
        let db = self.auditor.db.clone();
        let mut seen = MqSeen::default();
        let mut trouble = self.parked(&mut seen).await;
        self.auditor.measure_backlog().await;
        self.auditor.measure_ended().await;
        let (mut repaired, mut oldest_ms, mut unreconciled_count) = (0, 0, 0_u32);
        for sale in sales::released(&db).await.map_err(Fault::back_off)? {
            if self.at_rest.contains(&sale.sale_id) {
                continue;
            }
            // The lease is renewed beside a long audit. Where it was lost all the same another process leads by now.
            if !self.lead.holds() {
                return Ok(Progress::Idle);
            }
            match self.reconcile(&sale, &seen).await {
                Ok((of_sale, oldest_of_sale_ms)) => {
                    repaired += of_sale;
                    oldest_ms = oldest_ms.max(oldest_of_sale_ms);
                }
                // One sale's damage must not keep the others from being repaired.
                Err(error) => {
                    tracing::error!(phase = "p5_reconcile", sale = %sale.sale_id, %error, "the sale cannot be reconciled");
                    unreconciled_count += 1;
                    trouble = trouble.or(Some(error));
                }
            }
        }
        metrics::gauge!("seckill_p5_reconcile_unreconciled_count").set(unreconciled_count);
        metrics::gauge!("seckill_p5_reconcile_oldest_unresolved_seconds").set(oldest_ms as f64 / 1000.0);
        failed_requests::close_settled(&db, "reconcile").await.map_err(Fault::back_off)?;
        audit_store::prune(&db, now_ms()).await.map_err(Fault::back_off)?;
        // Everything was looked at: what is damaged is looked at again in its turn, not at once and for ever.
        self.next_at = Instant::now() + Duration::from_millis(self.settings.interval_ms);
        match trouble {
            Some(error) => Err(Fault::back_off(error)),
            None if repaired > 0 => Ok(Progress::Moved(repaired)),
            None => Ok(Progress::Idle),
        }
    }

    /// The dead-letter queues; `seen` is told of the MQ DLQ, which is not read again in this round. Relay-DLQ entries are in the
    /// database before they leave Redis (window 46). Trouble here must not keep sales from being repaired: leaks are landed from
    /// the ledger, whatever lies in a DLQ.
    async fn parked(&mut self, seen: &mut MqSeen) -> Option<SaleAuditError> {
        if let Err(error) = self.auditor.tidy_mq_dlq(&mut self.noted, seen).await {
            // What was noted before an outage is asked for again after it.
            self.noted.clear();
            tracing::warn!(phase = "p5_reconcile", %error, "the MQ DLQ cannot be looked through");
        }
        let registered = self.auditor.register_parked().await;
        registered
            .inspect_err(|error| tracing::error!(phase = "p5_reconcile", %error, "the relay DLQ cannot be copied"))
            .err()
    }

    /// Audits and repairs one sale. Returns how many requests were repaired and the age of the oldest undecided one.
    async fn reconcile(&mut self, sale: &Sale, seen: &MqSeen) -> Result<(usize, i64), SaleAuditError> {
        self.auditor.check_shards(sale).await?;
        let retention_ms = i64::try_from(self.settings.ledger_retention_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let rebuilt = if self.auditor.is_broken(sale).await? {
            let quiet = Duration::from_millis(self.settings.quiet_ms);
            let how = rebuild::Rebuild { quiet, cap: self.backlog_max, retention_ms, seen };
            self.auditor.rebuild(sale, &mut self.quiet, how).await?
        } else {
            false
        };
        // A rebuilt sale has another epoch by now; with the old one its numbers would look lost.
        let now = if rebuilt { sales::get(&self.auditor.db, &sale.sale_id).await? } else { None };
        let sale = now.as_ref().unwrap_or(sale);
        self.auditor.finish_grants(sale).await?;
        self.auditor.finish_transfers(sale).await?;
        let started_at_ms = now_ms();
        slow_audit().await;
        let (audit, false_alarms) = self.look(sale, seen, retention_ms).await?;
        // Told before it is repaired: a repair that fails must not hide what was found.
        self.journal.report(&audit, false_alarms);
        self.journal.write(&self.auditor, &audit, started_at_ms).await?;
        self.auditor.settle(&audit).await?;
        if audit.findings.iter().any(|finding| finding.kind == FindingKind::Gap) {
            let one_per_user = sale.policy == PurchasePolicy::OnePerUser;
            let noted = self.auditor.note_suspects(&audit, one_per_user).await?;
            if noted > 0 {
                tracing::warn!(phase = "p5_reconcile", sale = %sale.sale_id, noted, "buyers of lost requests are in the register");
            }
        }
        let repaired = match self.settings.compensate {
            Compensate::Auto => self.auditor.compensate(&audit).await?,
            Compensate::Manual => 0,
        };
        let closed = sale.status == SaleStatus::Closed;
        self.auditor.trim(&audit, retention_ms, closed).await?;
        if closed && audit.consistent() && audit.examined_count == 0 {
            // Closed, consistent, and gone from Redis: nothing can change any more. Once more after a restart.
            self.at_rest.insert(sale.sale_id.clone());
        }
        Ok((repaired, audit.oldest_open_ms))
    }

    /// Audits a sale with what is remembered of it.
    async fn look(
        &mut self,
        sale: &Sale,
        seen: &MqSeen,
        retention_ms: i64,
    ) -> Result<(SaleAudit, u64), SaleAuditError> {
        if self.remembered.len() >= SALES_REMEMBERED_MAX {
            self.remembered.clear();
        }
        let remembered = self.remembered.remove(&sale.sale_id).unwrap_or_default();
        let mut look = audit::Look {
            retention_ms: Some(retention_ms),
            expected: remembered.findings,
            proof: remembered.proof,
            walks: remembered.walks,
            ..audit::Look::new(Window::Ms(self.settings.window_ms), Some(seen))
        };
        look.proof.look_back(&self.auditor.db, &sale.sale_id).await?;
        let (audit, false_alarms) = self.auditor.audit_twice_in_round(sale, &mut look).await?;
        let findings = audit.findings.iter().map(Finding::key).collect();
        let remembered = Remembered { findings, proof: look.proof, walks: look.walks };
        self.remembered.insert(sale.sale_id.clone(), remembered);
        Ok((audit, false_alarms))
    }
}

/// What a round leaves for the next one.
#[derive(Default)]
struct Remembered {
    /// What was found; a finding that stands needs no second look each time.
    findings: HashSet<(FindingKind, Option<RequestId>)>,
    proof: audit::Proof,
    walks: audit::Walks,
}

impl Auditor {
    /// Gives Redis the sale's open grants. Returns how many were finished.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server is away; repeating is safe.
    pub async fn finish_grants(&self, sale: &Sale) -> Result<usize, SaleAuditError> {
        match grants::apply_open(&self.db, &self.redis, self.shards, &sale.sale_id).await {
            Ok(GrantProgress::Done(finished)) => Ok(finished),
            // The rebuild comes first, and gives them.
            Ok(GrantProgress::Frozen | GrantProgress::KeysLost | GrantProgress::NotSelling) => Ok(0),
            Err(GrantError::Redis(error)) => Err(error.into()),
            Err(GrantError::Database(error)) => Err(error.into()),
        }
    }
}

impl Worker for Reconcile {
    fn name(&self) -> &'static str {
        "p5_reconcile"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let leads = self.lead.is_ours(&self.auditor.db).await.map_err(Fault::back_off)?;
        if !leads || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        self.run().await
    }
}
