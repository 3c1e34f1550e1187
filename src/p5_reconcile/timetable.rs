//! Keeps the timetables of P5's sales: releases that are due are given, and what is unsold of a sale that ended moves to another one.
//!
//! Input: the rows of timetables, by the database's clock. Output: top-ups named `release-<no>` and moves named `rollover-<n>`, on record. A
//! crash leaves an open grant or an open withdrawal, which P5's round finishes, or nothing: the next step asks again. Two processes that
//! do the same at once do it once, by its name.

use super::auto_close::system;
use crate::domain::fault::{Fault, MayBeOutage, Progress};
use crate::domain::ids::SaleId;
use crate::domain::operator::Actor;
use crate::domain::timetable::RELEASES_MAX;
use crate::runtime::Worker;
use crate::sales::rows::error::SaleError;
use crate::sales::rows::timetable::{DueRelease, DueRollover};
use crate::sales::{SaleControl, SaleControlError};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Releases, and rollovers, of one step.
const DUE_MAX: usize = 16;
/// Longest time without a question: what was created meanwhile is at most this late.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// How long a sale is left alone after its units moved, or when it has none: some may come back later.
const MOVED_PAUSE: Duration = Duration::from_secs(5);
/// How long a sale is left alone whose step failed.
const FAILED_PAUSE: Duration = Duration::from_secs(30);

/// Sales that are left alone until a moment.
#[derive(Default)]
struct Pauses(HashMap<SaleId, Instant>);

impl Pauses {
    /// How many rows to ask for, so that those of other sales are among them.
    fn ask_for(&mut self) -> usize {
        let now = Instant::now();
        self.0.retain(|_, until| *until > now);
        self.0.len().saturating_mul(RELEASES_MAX) + DUE_MAX
    }

    fn has(&self, sale: &SaleId) -> bool {
        self.0.contains_key(sale)
    }

    fn put(&mut self, sale: &SaleId, pause: Duration) {
        self.0.insert(sale.clone(), Instant::now() + pause);
    }
}

/// The worker of one process.
pub struct Timekeeper {
    control: SaleControl,
    actor: Actor,
    /// Whether this process leads P5: of several processes one is enough.
    leads: Arc<AtomicBool>,
    next_at: Instant,
    releases: Pauses,
    rollovers: Pauses,
}

impl Timekeeper {
    /// A worker that acts while `leads` is set.
    #[must_use]
    pub fn new(control: SaleControl, leads: Arc<AtomicBool>) -> Self {
        let (releases, rollovers) = (Pauses::default(), Pauses::default());
        Self { control, actor: system("timetable"), leads, next_at: Instant::now(), releases, rollovers }
    }

    /// Gives a release. An outage ends the step; anything else concerns this sale only.
    async fn give(&mut self, due: &DueRelease) -> Result<usize, Fault> {
        match self.control.release(&self.actor, due).await {
            Ok(()) => Ok(1),
            Err(error) => {
                self.releases.put(&due.sale_id, pause_after(&due.sale_id, error, "the release cannot be given")?);
                Ok(0)
            }
        }
    }

    /// Moves what is unsold, likewise.
    async fn roll(&mut self, due: &DueRollover) -> Result<usize, Fault> {
        let (pause, moved) = match self.control.roll_over(&self.actor, due).await {
            Ok(moved) => (MOVED_PAUSE, usize::from(moved.is_some_and(|moved| moved.taken > 0))),
            // Another process, or another sale with the same target, was quicker with the name.
            Err(SaleControlError::Sale(SaleError::WithdrawalConflict(..))) => (Duration::ZERO, 0),
            Err(error) => (pause_after(&due.sale_id, error, "what is unsold cannot move")?, 0),
        };
        self.rollovers.put(&due.sale_id, pause);
        Ok(moved)
    }
}

/// How long a sale is left alone whose step failed. An outage is the fault of no sale.
fn pause_after(sale: &SaleId, error: SaleControlError, what: &str) -> Result<Duration, Fault> {
    if error.is_outage() {
        return Err(Fault::back_off(error));
    }
    // Its rebuild comes first, and gives what is open.
    if matches!(error, SaleControlError::Frozen(_) | SaleControlError::KeysLost(_)) {
        return Ok(MOVED_PAUSE);
    }
    tracing::warn!(phase = "p5_timetable", %sale, %error, "{what}");
    Ok(FAILED_PAUSE)
}

impl Worker for Timekeeper {
    fn name(&self) -> &'static str {
        "p5_timetable"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.leads.load(Ordering::Relaxed) || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        let rows = self.control.rows.sales.clone();
        let releases = rows.due_releases(self.releases.ask_for()).await.map_err(Fault::back_off)?;
        let rollovers = rows.due_rollovers(self.rollovers.ask_for()).await.map_err(Fault::back_off)?;
        let to_come = releases.iter().map(|due| due.due_in_ms).chain(rollovers.iter().map(|due| due.due_in_ms));
        let next = to_come.filter_map(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0).min();
        let (mut moved, mut tried) = (0, 0);
        for due in releases.iter().filter(|due| due.due_in_ms <= 0) {
            if tried < DUE_MAX && !self.releases.has(&due.sale_id) {
                (moved, tried) = (moved + self.give(due).await?, tried + 1);
            }
        }
        for due in rollovers.iter().filter(|due| due.due_in_ms <= 0) {
            if tried < DUE_MAX && !self.rollovers.has(&due.sale_id) {
                (moved, tried) = (moved + self.roll(due).await?, tried + 1);
            }
        }
        // There may be more of them.
        if moved == 0 && tried < DUE_MAX {
            let pause = next.map_or(ASK_EVERY, Duration::from_millis).min(ASK_EVERY);
            self.next_at = Instant::now() + pause;
        }
        Ok(if moved > 0 { Progress::Moved(moved) } else { Progress::Idle })
    }
}
