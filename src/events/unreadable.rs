//! Rows of events that cannot be read: each is reported once by a process, and counted as long as it is there.
//!
//! Input: the pages of one table, from its beginning to its end again and again. Output: lines of the log and a gauge. The rows
//! stay for a person. A crash loses only what is known to be reported: the next process reports it again.

use crate::events::rows::waiting_page::WaitingPage;
use std::collections::BTreeSet;

/// Most rows that are reported one by one; the gauge counts all.
const REPORTED_MAX: usize = 1000;

/// What a process knows of the rows of one table.
pub(crate) struct UnreadableEvents {
    table: &'static str,
    /// The next page begins behind this row.
    after: u64,
    /// Those found since the beginning of the table.
    found: usize,
    reported: BTreeSet<u64>,
}

impl UnreadableEvents {
    pub(crate) const fn of(table: &'static str) -> Self {
        Self { table, after: 0, found: 0, reported: BTreeSet::new() }
    }

    /// Where the next page begins.
    pub(crate) const fn after(&self) -> u64 {
        self.after
    }

    /// A page is done with: what can be read of it is published, or there is nothing.
    pub(crate) fn passed<E>(&mut self, page: &WaitingPage<E>) {
        for row in &page.unreadable {
            if self.reported.len() < REPORTED_MAX && self.reported.insert(row.id) {
                tracing::error!(
                    phase = "p4_persist",
                    table = self.table,
                    row = row.id,
                    problem = %row.problem,
                    "an event cannot be read: it stays, the others are published"
                );
            }
        }
        self.found += page.unreadable.len();
        self.after = page.next_after;
        // Behind a full page that could be read there may be others: it was published, and the table is read from its beginning.
        if self.after == 0 && !page.is_full {
            metrics::gauge!("seckill_p4_persist_events_unreadable_count", "table" => self.table).set(self.found as f64);
            if self.found == 0 {
                self.reported.clear();
            }
        }
        if self.after == 0 {
            self.found = 0;
        }
    }
}
