//! The worker of P5: one process leads, and audits and repairs every live sale once an interval, and closed ones in turns. Sales
//! that sell nothing because Redis lost their data come before all audits.
//!
//! Input: the released sales. Output: reports, repairs, trimmed ledgers, rebuilt sales. A crash at any line leaves each repair done
//! or not done, and the next round reads everything again.

use super::audit::{
    AuditOptions, AuditReporter, FindingKind, SaleAudit, Window, audit_sale, record_suspects, show_figures,
};
use super::audit_memories::AuditMemories;
use super::auto_close::close_when_over;
use super::compensation::{compensate, finish_transfers, freeze_when_sold_twice, mark_outcomes, trim};
use super::context::{ReconcileContext, ReconcileError};
use super::dlq::{MqDlqContents, clean_mq_dlq, copy_relay_dlq};
use super::gauges::{measure_backlog, measure_ended};
use super::open_units;
use super::rebuild::{QuiescenceTimer, RebuildOptions, broken_epoch, rebuild};
use super::settled_sales::SettledSales;
use super::turns::Turns;
use super::unknown_sales::UnknownSales;
use crate::config::{self, Compensate};
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::sale::{Sale, SaleStatus};
use crate::faults::left_out;
use crate::runtime::{Worker, now_ms};
use crate::store::mysql::leader_election::LeaderElection;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// The reconciler of one process; one process leads at a time.
pub struct Reconcile {
    context: ReconcileContext,
    settings: config::P5Reconcile,
    /// Outbox entries at which the script of a rebuilt sale refuses.
    backlog_max: u64,
    next_at: Instant,
    election: LeaderElection,
    reporter: AuditReporter,
    /// Requests of the MQ DLQ that are failed requests already.
    noted: HashSet<RequestId>,
    quiescence: QuiescenceTimer,
    /// What the last audit of each sale remembers for the next.
    memories: AuditMemories,
    /// Closed sales that were consistent with nothing left in Redis.
    settled: SettledSales,
    /// Sales that only Redis knows.
    unknown: UnknownSales,
    /// Of closed sales that are not over: the age of the oldest undecided request, milliseconds; `None`: it could not be audited.
    closed: HashMap<SaleId, Option<i64>>,
    /// The closed sale that was audited last.
    closed_after: Option<SaleId>,
}

/// What a round came to.
#[derive(Default)]
struct RoundFigures {
    repaired: usize,
    oldest_ms: i64,
    unreconciled_count: u32,
    trouble: Option<ReconcileError>,
}

impl RoundFigures {
    /// One sale's damage must not keep the others from being repaired.
    fn failed(&mut self, sale: &SaleId, error: ReconcileError) {
        tracing::error!(phase = "p5_reconcile", %sale, %error, "the sale cannot be reconciled");
        self.unreconciled_count += 1;
        self.trouble.get_or_insert(error);
    }
}

impl Reconcile {
    /// A reconciler; `backlog_max` is where a rebuilt sale's script refuses.
    #[must_use]
    pub(crate) fn new(
        context: ReconcileContext,
        election: LeaderElection,
        settings: config::P5Reconcile,
        backlog_max: u64,
    ) -> Self {
        Self {
            context,
            backlog_max,
            next_at: Instant::now(),
            election,
            reporter: AuditReporter::new(settings.interval_ms),
            noted: HashSet::new(),
            quiescence: QuiescenceTimer::default(),
            memories: AuditMemories::default(),
            settled: SettledSales::default(),
            unknown: UnknownSales::default(),
            closed: HashMap::new(),
            closed_after: None,
            settings,
        }
    }

    /// Whether this process leads, so that its next step is a round when the time has come.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.election.leads()
    }

    async fn round(&mut self) -> Result<Progress, Fault> {
        let mut mq_dlq = MqDlqContents::default();
        let trouble = self.empty_dlqs(&mut mq_dlq).await;
        let mut figures = RoundFigures { trouble, ..RoundFigures::default() };
        measure_backlog(&self.context.rows, &self.context.rabbit).await;
        measure_ended(&self.context.rows.books, self.settings.auto_close_after_s).await;
        let mut released = self.context.rows.giving.sales.released().await.map_err(Fault::back_off)?;
        // Before any of them is audited: what is written later is seen in the next round.
        let is_closed = |sale: &&Sale| sale.status == SaleStatus::Closed;
        let closed: Vec<SaleId> = released.iter().filter(is_closed).map(|sale| sale.sale_id.clone()).collect();
        self.settled.begin_round(self.context.rows.books.movements(&closed).await.map_err(Fault::back_off)?);
        released.retain(|sale| !self.settled.leave_out(&sale.sale_id));
        let interval = Duration::from_millis(self.settings.interval_ms);
        let mut turns = Turns::new(released, self.closed_after.as_ref(), interval);
        // In boxes: the future of a round would else be too large for the stack of a thread.
        Box::pin(self.rebuild_broken(&mut turns, &mq_dlq, &mut figures)).await;
        let before = std::mem::take(&mut self.closed);
        while let Some(sale) = turns.next() {
            // A task renews the lease during a long audit. If it is lost all the same, another process leads by now.
            if !self.election.leads() {
                return Ok(Progress::Idle);
            }
            let result = Box::pin(self.reconcile(&sale, &mq_dlq)).await;
            if sale.status == SaleStatus::Closed {
                self.closed.insert(sale.sale_id.clone(), result.as_ref().ok().map(|(_, oldest_ms)| *oldest_ms));
                self.closed_after = Some(sale.sale_id.clone());
            }
            match result {
                Ok((repaired, oldest_ms)) => {
                    figures.repaired += repaired;
                    figures.oldest_ms = figures.oldest_ms.max(oldest_ms);
                }
                Err(error) => figures.failed(&sale.sale_id, error),
            }
        }
        for sale in turns.left() {
            if let Some(known) = before.get(&sale.sale_id) {
                figures.oldest_ms = figures.oldest_ms.max(known.unwrap_or(0));
                figures.unreconciled_count += u32::from(known.is_none());
                self.closed.insert(sale.sale_id, *known);
            }
        }
        figures.trouble = figures.trouble.or(Box::pin(self.unknown.report(&self.context, &mut self.reporter)).await);
        metrics::gauge!("seckill_p5_reconcile_unreconciled_count").set(figures.unreconciled_count);
        metrics::gauge!("seckill_p5_reconcile_oldest_unresolved_seconds").set(figures.oldest_ms as f64 / 1000.0);
        self.context.rows.register.close_settled("reconcile").await.map_err(Fault::back_off)?;
        self.context.rows.findings.prune(now_ms()).await.map_err(Fault::back_off)?;
        // The round is complete: a damaged sale is tried again in the next round, not at once and for ever.
        self.next_at = Instant::now() + interval;
        match figures.trouble {
            Some(error) => Err(Fault::back_off(error)),
            None if figures.repaired > 0 => Ok(Progress::Moved(figures.repaired)),
            None => Ok(Progress::Idle),
        }
    }

    /// Makes a step with each broken sale, before anything is audited: they sell nothing meanwhile. Rebuilt ones have another epoch
    /// in `turns` then; with the old one their numbers would seem lost.
    async fn rebuild_broken(&mut self, turns: &mut Turns, mq_dlq: &MqDlqContents, figures: &mut RoundFigures) {
        let (mut live, mut broken) = (VecDeque::new(), HashSet::new());
        for mut sale in turns.take_live() {
            match self.rebuild_if_broken(&mut sale, mq_dlq).await {
                Ok(is_broken) => {
                    broken.extend(is_broken.then(|| sale.sale_id.clone()));
                    live.push_back(sale);
                }
                Err(_) if left_out!(RoundGoesOn) => break,
                Err(error) => figures.failed(&sale.sale_id, error),
            }
        }
        self.quiescence.retain(&broken).await;
        turns.set_live(live);
    }

    /// Whether the sale is broken, and still is after one step towards its rebuild.
    async fn rebuild_if_broken(&mut self, sale: &mut Sale, mq_dlq: &MqDlqContents) -> Result<bool, ReconcileError> {
        let context = self.context.clone();
        context.check_shards(&sale.sale_id).await?;
        // A process that does not lead any more does nothing; the leader by now judges for itself.
        let judged = if self.election.leads() { broken_epoch(&context, sale).await? } else { None };
        let Some(judged_epoch) = judged else { return Ok(false) };
        // Redis may be in the epoch of a rebuild that ended since the sale was read: it is judged by its row of now.
        match context.rows.giving.sales.get(&sale.sale_id).await? {
            Some(now) if now.epoch == sale.epoch => {}
            Some(now) => {
                *sale = now;
                return Ok(true);
            }
            None => return Ok(false),
        }
        let (quiescent_for, retention_ms) = (Duration::from_millis(self.settings.quiet_ms), self.retention_ms());
        let options =
            RebuildOptions { judged_epoch, quiescent_for, backlog_max: self.backlog_max, retention_ms, mq_dlq };
        if !Box::pin(rebuild(&context, sale, &mut self.quiescence, options)).await? {
            return Ok(true);
        }
        if let Some(now) = context.rows.giving.sales.get(&sale.sale_id).await? {
            *sale = now;
        }
        Ok(false)
    }

    /// How long decided requests keep their records, milliseconds.
    fn retention_ms(&self) -> i64 {
        i64::try_from(self.settings.ledger_retention_s.saturating_mul(1000)).unwrap_or(i64::MAX)
    }

    /// Works on the dead-letter queues. `mq_dlq` gets what is in the MQ DLQ, which is not read again in this round. Relay-DLQ entries
    /// are in the database before they leave Redis (window 46). Trouble here must not keep sales from being repaired: leaks are
    /// persisted from the ledger, whatever is in a DLQ.
    async fn empty_dlqs(&mut self, mq_dlq: &mut MqDlqContents) -> Option<ReconcileError> {
        if let Err(error) = clean_mq_dlq(&self.context, &mut self.noted, mq_dlq).await {
            // After an outage the rows are read again.
            self.noted.clear();
            tracing::warn!(phase = "p5_reconcile", %error, "the MQ DLQ cannot be cleaned");
        }
        let failed = copy_relay_dlq(&self.context).await.err();
        failed.inspect(|error| tracing::error!(phase = "p5_reconcile", %error, "the relay DLQ cannot be copied"))
    }

    /// Audits and repairs one sale. Returns how many requests were repaired and the age of the oldest undecided one.
    async fn reconcile(&mut self, sale: &Sale, mq_dlq: &MqDlqContents) -> Result<(usize, i64), ReconcileError> {
        let context = self.context.clone();
        context.check_shards(&sale.sale_id).await?;
        let retention_ms = self.retention_ms();
        let none_open = open_units::finish(&context, sale).await?;
        finish_transfers(&context.redis.transfers, context.shards, sale).await?;
        let (started_at_ms, window) = (now_ms(), AuditOptions::from(Window::Ms(self.settings.window_ms)));
        let audit = self.audit(sale, window.with_mq_dlq(mq_dlq).collecting(retention_ms)).await?;
        // Reported before it is repaired: a repair that fails must not hide what was found.
        self.reporter.report(&audit);
        freeze_when_sold_twice(&context, sale, &audit).await?;
        let closed = sale.status == SaleStatus::Closed;
        // Closed, consistent, and gone from Redis: nothing changes without a row in the database.
        let is_over = closed && none_open && audit.consistent() && audit.examined_count == 0;
        show_figures(&audit, is_over);
        self.reporter.write(&context.rows.findings, &audit, started_at_ms).await?;
        let repaired = self.repair(sale, &audit).await?;
        close_when_over(&context, (sale, &audit), self.settings.auto_close_after_s).await?;
        trim(&context, &audit, retention_ms, closed).await?;
        if is_over {
            self.settled.remember(&sale.sale_id);
        }
        Ok((repaired, audit.oldest_open_ms))
    }

    /// Audits a sale with what the last audit remembers.
    async fn audit(&mut self, sale: &Sale, options: AuditOptions<'_>) -> Result<SaleAudit, ReconcileError> {
        let mut memory = self.memories.take(&sale.sale_id);
        memory.outcomes.recheck_one(&self.context.rows.books, &sale.sale_id).await?;
        let audit = audit_sale(&self.context, sale, options.remembering(&mut memory).confirmed()).await?;
        memory.expect_again(&audit);
        self.memories.put(&sale.sale_id, memory);
        Ok(audit)
    }

    /// Marks decided requests, names the buyers of gaps, and persists overdue requests. Returns how many of these.
    async fn repair(&mut self, sale: &Sale, audit: &SaleAudit) -> Result<usize, ReconcileError> {
        mark_outcomes(&self.context.redis.ledger, audit).await?;
        let (gaps, memory) = (audit.open_gaps(), self.memories.get_mut(&sale.sale_id));
        let is_named = memory.as_ref().is_some_and(|memory| memory.named_gaps == gaps);
        // All buyers are read for it. A buyer of the same gaps was named with them.
        if !is_named && audit.findings.iter().any(|finding| finding.kind == FindingKind::Gap) {
            let recorded = record_suspects(&self.context, audit, sale).await?;
            if recorded > 0 {
                tracing::warn!(phase = "p5_reconcile", sale = %sale.sale_id, recorded, "buyers of lost requests are among the failed requests");
            }
            if let Some(memory) = memory {
                memory.named_gaps = gaps;
            }
        }
        match self.settings.compensate {
            Compensate::Auto => compensate(&self.context, audit).await,
            Compensate::Manual => Ok(0),
        }
    }
}

impl Worker for Reconcile {
    fn name(&self) -> &'static str {
        "p5_reconcile"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let elected = self.election.run().await;
        if !matches!(elected, Ok(true)) {
            self.quiescence.end().await;
        }
        if !elected.map_err(Fault::back_off)? || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        self.round().await
    }
}
