//! Closes lines whose time is over, seals their lists and draws them.
//!
//! Input: lines that are due, by the database's clock. Output: count and digest of each list, public with the seed; then ranks that any
//! process derives from them. A line whose draw waits for a text from outside stays sealed. A crash leaves a line between two of these
//! steps, and the next leader goes on with the same list: nothing is added to it since the close. Two processes at once do each step once.

use crate::domain::draw::ListDigest;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::line::LineState;
use crate::faults::crash_point;
use crate::lines::rows::{DueLine, ID_PAGE, LineRows};
use crate::runtime::Worker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Lines of one step.
const DUE_MAX: usize = 16;
/// Longest time without a question: a line closes at most this late.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The worker of one process.
pub struct LineKeeper {
    rows: LineRows,
    /// Whether this process leads P5: of several processes one is enough.
    leads: Arc<AtomicBool>,
    next_at: Instant,
}

impl LineKeeper {
    /// A worker that acts while `leads` is set.
    #[must_use]
    pub fn new(rows: LineRows, leads: Arc<AtomicBool>) -> Self {
        Self { rows, leads, next_at: Instant::now() }
    }

    /// Does the next step of a line. Whether there was one to do.
    async fn go_on(&self, due: &DueLine) -> Result<bool, Fault> {
        let sale = &due.sale_id;
        match due.state {
            LineState::Open => {
                let closed = self.rows.close_line(sale).await.map_err(Fault::back_off)?;
                crash_point!(LineClosed);
                Ok(closed)
            }
            LineState::Closed => self.seal(sale).await,
            LineState::Sealed => {
                let drawn = self.rows.draw(sale).await.map_err(Fault::back_off)?;
                crash_point!(LineDrawn);
                if drawn {
                    tracing::info!(phase = "p5_line", %sale, "the line is drawn");
                }
                Ok(drawn)
            }
            LineState::Awaited | LineState::Drawn | LineState::Done => Ok(false),
        }
    }

    /// Reads the list of a closed line page by page, and seals it.
    async fn seal(&self, sale: &SaleId) -> Result<bool, Fault> {
        let (mut digest, mut after) = (ListDigest::default(), 0);
        loop {
            let page = self.rows.listed_ids(sale, after).await.map_err(Fault::back_off)?;
            page.iter().for_each(|id| digest.add(*id));
            after = page.last().copied().unwrap_or(after);
            if page.len() < ID_PAGE {
                break;
            }
        }
        let entries = digest.count;
        let sealed = self.rows.seal(sale, entries, &digest.finish()).await.map_err(Fault::back_off)?;
        crash_point!(LineSealed);
        if sealed {
            tracing::info!(phase = "p5_line", %sale, entries, "the list of the line is sealed");
        }
        Ok(sealed)
    }
}

impl Worker for LineKeeper {
    fn name(&self) -> &'static str {
        "p5_line"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.leads.load(Ordering::Relaxed) || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        let due = self.rows.due_lines(DUE_MAX).await.map_err(Fault::back_off)?;
        let to_come = due.iter().map(|line| line.due_in_ms).filter(|in_ms| *in_ms > 0).min();
        let to_come = to_come.map_or(ASK_EVERY, |in_ms| Duration::from_millis(in_ms.unsigned_abs()));
        let mut moved = 0;
        for line in due.iter().filter(|line| line.due_in_ms <= 0) {
            moved += usize::from(self.go_on(line).await?);
        }
        if moved > 0 {
            return Ok(Progress::Moved(moved));
        }
        self.next_at = Instant::now() + to_come.min(ASK_EVERY);
        Ok(Progress::Idle)
    }
}
