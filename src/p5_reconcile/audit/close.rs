//! One audit under way, the end: the sums of both sides, the equations over them, and what does not hold.

use super::FindingKind;
use super::proof::Read;
use super::sheet::Sheet;
use crate::faults::left_out;
use crate::store::mysql::books::{Books, Series};
use std::collections::BTreeMap;

impl Sheet<'_, '_> {
    pub(super) fn close(&mut self, books: &Books, reads: &BTreeMap<Series, Read>) {
        self.sum_up(books, reads);
        let counted = self.audit.counted;
        if counted.oversold() {
            let detail = format!(
                "{} units ordered, {} granted, stock {}",
                counted.ordered, counted.granted, counted.database_stock
            );
            self.find(FindingKind::OverSell, None, detail);
        }
        if counted.refused > 0 {
            let detail = format!(
                "{} accepted units ended SOLD_OUT: redis gave away more than the database had; `seckill finding close` ends this, with a reason",
                counted.refused
            );
            self.find(FindingKind::Refused, None, detail);
        }
        self.audit.equations = counted.equations();
        for equation in self.audit.equations.clone().into_iter().filter(|equation| !equation.holds()) {
            let detail = format!("{}: {} against {}", equation.name, equation.left, equation.right);
            self.find(FindingKind::Unbalanced, None, detail);
        }
    }

    fn sum_up(&mut self, books: &Books, reads: &BTreeMap<Series, Read>) {
        let epoch = self.sale.epoch;
        let (mut accepted, mut all_ordered, mut landed_since, mut failed_since) = (0, 0, 0, 0);
        let (mut ordered_now, mut failed_now) = (0, 0);
        for (series, read) in reads {
            all_ordered += read.tally.ordered + read.above.ordered;
            if let Some(shard) = self.is_current(*series) {
                accepted += shard.accepted();
                ordered_now += read.tally.ordered;
                failed_now += read.tally.failed;
                landed_since += read.above.ordered;
                failed_since += read.above.held;
            }
        }
        let strangers = self.look.proof.strangers();
        let closed = |code: &str| books.closed.iter().filter(|closed| closed.code == code).collect::<Vec<_>>();
        let refused: i64 = closed("REFUSED").iter().map(|closed| closed.units).sum();
        let corrections = closed("UNBALANCED");
        let counted = &mut self.audit.counted;
        counted.granted = books.granted;
        counted.database_stock = books.stock;
        counted.flow = books.flow.sum;
        counted.ordered = all_ordered + strangers - books.flow.cancelled;
        counted.accepted = accepted;
        counted.accepted_ordered = ordered_now;
        counted.accepted_failed = failed_now;
        counted.landed_since = landed_since;
        counted.failed_held = books.held - failed_since;
        counted.refused = (books.refused - refused).max(0);
        counted.correction = corrections.iter().filter(|c| c.epoch == Some(epoch)).map(|c| c.units).sum();
        counted.grants_open =
            if books.grants_known { books.grants - counted.granted_in_redis } else { books.grants_unapplied };
        let all_there = self.shards.len() == usize::from(self.auditor.shards);
        counted.bridged &= all_there && !left_out!(UnitBridge);
    }
}
