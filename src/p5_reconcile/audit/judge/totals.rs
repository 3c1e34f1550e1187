//! The sums of both sides, the equations over them, and what does not hold.

use super::case::SaleCase;
use super::numbers::NumbersCompared;
use super::open::SortedRequests;
use crate::domain::balance::{BalanceSheet, Equation};
use crate::faults::left_out;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};
use crate::p5_reconcile::audit::redis_side::RedisSide;

/// What Redis says by itself, in a sheet without the database's terms.
pub(super) fn sheet_of_redis(redis: &RedisSide, epoch: u32) -> BalanceSheet {
    let mut sheet = BalanceSheet { bridged: redis.is_in_step(epoch), ..BalanceSheet::default() };
    for (_, counted) in redis.counted() {
        sheet.in_redis = true;
        sheet.redis_stock += counted.counts.stock;
        sheet.granted_in_redis += counted.counts.granted;
        sheet.in_transit += counted.counts.in_transit;
    }
    sheet
}

/// The whole sheet.
pub(super) fn sheet(case: &SaleCase<'_>, open: &SortedRequests, numbers: &NumbersCompared) -> BalanceSheet {
    let (epoch, books, orders) = (case.terms.sale.epoch, &case.snapshot.books, case.snapshot.orders);
    let of_redis = sheet_of_redis(case.redis, epoch);
    let (mut accepted, mut all_ordered, mut landed_since, mut failed_since) = (0, 0, 0, 0);
    let (mut ordered_now, mut failed_now, mut held_now) = (0, 0, 0);
    for (series, counted) in &case.snapshot.series {
        all_ordered += counted.tally.ordered + counted.above.ordered;
        if let Some(shard) = case.current(*series) {
            accepted += shard.accepted();
            ordered_now += counted.tally.ordered;
            failed_now += counted.tally.failed;
            landed_since += counted.above.ordered;
            failed_since += counted.above.held;
            held_now += counted.tally.held + counted.above.held;
        }
    }
    let closed = |code: &'static str| books.closed.iter().filter(move |closed| closed.code == code);
    let refused: i64 = closed("REFUSED").map(|closed| closed.units).sum();
    let correction = closed("UNBALANCED").filter(|closed| closed.epoch == Some(epoch)).map(|closed| closed.units).sum();
    let grants_open =
        if books.grants_known { books.grants - of_redis.granted_in_redis } else { books.grants_unapplied };
    BalanceSheet {
        granted: books.granted,
        withdrawn: books.flow.withdrawn,
        withdrawals: books.withdrawn,
        grants_open,
        granted_in_epoch: books.grants,
        accepted,
        accepted_ordered: ordered_now,
        accepted_failed: failed_now,
        in_flight: open.in_flight + numbers.in_flight,
        parked: open.parked,
        leaked: open.leaked,
        gaps: numbers.gaps,
        gaps_held: numbers.gaps_held,
        written_off: numbers.written_off,
        failed_held: if left_out!(FailuresOfAllEpochs) && case.sells() { held_now } else { books.held } - failed_since,
        refused: (books.refused - refused).max(0),
        correction,
        landed_since,
        database_stock: books.stock,
        ordered: all_ordered + orders.unnumbered - books.flow.returned(),
        without_outcome: orders.without_outcome,
        flow: books.flow.sum,
        returned: books.flow.returned(),
        life: books.life,
        bridged: case.is_bridged(),
        ..of_redis
    }
}

/// Reports each equation that does not hold. Returns all of them.
pub(super) fn report(sheet: &BalanceSheet, found: &mut FoundSoFar) -> Vec<Equation> {
    if sheet.oversold() {
        let detail =
            format!("{} units ordered, {} granted, stock {}", sheet.ordered, sheet.granted, sheet.database_stock);
        found.add(FindingKind::OverSell, None, detail);
    }
    if sheet.refused > 0 {
        let detail = format!(
            "{} accepted units ended SOLD_OUT: redis gave away more than the database had; `seckill finding close` ends this, with a reason",
            sheet.refused
        );
        found.add(FindingKind::Refused, None, detail);
    }
    let equations = sheet.equations();
    for equation in equations.iter().filter(|equation| !equation.holds()) {
        let detail = format!("{}: {} against {}", equation.name, equation.left, equation.right);
        found.add_part(FindingKind::Unbalanced, equation.name, detail);
    }
    equations
}
