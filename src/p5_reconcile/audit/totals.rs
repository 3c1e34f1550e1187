//! The end of an audit: the sums of both sides, the equations over them, and what does not hold.

use super::finding::FindingKind;
use super::outcome_counts::{OrdersBesideOutcomes, SeriesCounted};
use super::run::AuditRun;
use crate::faults::left_out;
use crate::p5_reconcile::rows::books::{Books, Series};
use std::collections::BTreeMap;

/// Sums up, and reports each equation that does not hold.
pub(super) fn balance(
    run: &mut AuditRun<'_>,
    books: &Books,
    series: &BTreeMap<Series, SeriesCounted>,
    orders: OrdersBesideOutcomes,
) {
    sum_up(run, books, series, orders);
    let counted = run.audit.counted;
    if counted.oversold() {
        let detail =
            format!("{} units ordered, {} granted, stock {}", counted.ordered, counted.granted, counted.database_stock);
        run.find(FindingKind::OverSell, None, detail);
    }
    if counted.refused > 0 {
        let detail = format!(
            "{} accepted units ended SOLD_OUT: redis gave away more than the database had; `seckill finding close` ends this, with a reason",
            counted.refused
        );
        run.find(FindingKind::Refused, None, detail);
    }
    run.audit.equations = counted.equations();
    for equation in run.audit.equations.clone().into_iter().filter(|equation| !equation.holds()) {
        let detail = format!("{}: {} against {}", equation.name, equation.left, equation.right);
        run.find_part(FindingKind::Unbalanced, equation.name, detail);
    }
}

fn sum_up(
    run: &mut AuditRun<'_>,
    books: &Books,
    series: &BTreeMap<Series, SeriesCounted>,
    orders: OrdersBesideOutcomes,
) {
    let epoch = run.sale.epoch;
    let (mut accepted, mut all_ordered, mut landed_since, mut failed_since) = (0, 0, 0, 0);
    let (mut ordered_now, mut failed_now) = (0, 0);
    for (series, read) in series {
        all_ordered += read.tally.ordered + read.above.ordered;
        if let Some(shard) = run.current(*series) {
            accepted += shard.accepted();
            ordered_now += read.tally.ordered;
            failed_now += read.tally.failed;
            landed_since += read.above.ordered;
            failed_since += read.above.held;
        }
    }
    let closed = |code: &str| books.closed.iter().filter(|closed| closed.code == code).collect::<Vec<_>>();
    let refused: i64 = closed("REFUSED").iter().map(|closed| closed.units).sum();
    let corrections = closed("UNBALANCED");
    let all_shards = run.shards.len() == usize::from(run.context.shards);
    let counted = &mut run.audit.counted;
    counted.granted = books.granted;
    counted.database_stock = books.stock;
    counted.flow = books.flow.sum;
    counted.ordered = all_ordered + orders.unnumbered - books.flow.returned();
    counted.without_outcome = orders.without_outcome;
    counted.returned = books.flow.returned();
    counted.life = books.life;
    counted.accepted = accepted;
    counted.accepted_ordered = ordered_now;
    counted.accepted_failed = failed_now;
    counted.landed_since = landed_since;
    counted.failed_held = books.held - failed_since;
    counted.refused = (books.refused - refused).max(0);
    counted.correction = corrections.iter().filter(|c| c.epoch == Some(epoch)).map(|c| c.units).sum();
    counted.grants_open =
        if books.grants_known { books.grants - counted.granted_in_redis } else { books.grants_unapplied };
    counted.bridged &= all_shards && !left_out!(UnitBridge);
}
