//! Writes down the last number of each series before Redis forgets its own: a gap below it stays visible (`P5-RC4`), whatever
//! becomes of the keys, and its unit is kept back. Only of epochs up to the one that this rebuild ends: a leader that slept may find
//! the keys that another one opened meanwhile, and the first row of a series stays.

use crate::domain::message;
use crate::domain::sale::Sale;
use crate::faults::left_out;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::dlq::MqDlqContents;
use crate::p5_reconcile::pages::OpenFailurePages;
use crate::p5_reconcile::rows::books::Series;
use std::collections::HashMap;

/// Writes the ends as the database, Redis and the parked requests of the sale know them.
pub(super) async fn write(
    context: &ReconcileContext,
    sale: &Sale,
    parked: &MqDlqContents,
) -> Result<(), ReconcileError> {
    let id = &sale.sale_id;
    let mut ends = Ends { last_epoch: sale.epoch, of: HashMap::new() };
    for known in context.rows.books.known(id).await? {
        ends.at_least(known.series, known.number, known.accepted);
    }
    for shard in 0..context.shards {
        let Some(counts) = context.redis.sale_keys.count(id, shard).await? else { continue };
        // A Redis that is behind the database has forgotten units, too.
        ends.at_least(Series { epoch: counts.meta.epoch, shard }, counts.meta.number, counts.accepted);
    }
    let mut requests: Vec<_> =
        parked.requests.iter().filter(|accepted| accepted.purchase.sale_id == *id).cloned().collect();
    let mut pages = OpenFailurePages::new(&context.rows.register, Some(id.clone()));
    while let Some(page) = pages.next().await? {
        requests.extend(page.iter().filter_map(|row| message::decode(&row.payload).ok()));
    }
    if left_out!(DeadLettersCount) {
        requests.clear();
    }
    for accepted in requests {
        ends.above(Series { epoch: accepted.epoch, shard: accepted.shard }, accepted.number);
    }
    for (series, (number, accepted)) in ends.of {
        context.rows.books.end(id, series, number, accepted).await?;
    }
    Ok(())
}

/// The last number of each series, and the units accepted in it where Redis' own sum is known.
struct Ends {
    /// The epoch that ends; later ones are alive.
    last_epoch: u32,
    of: HashMap<Series, (u64, Option<i64>)>,
}

impl Ends {
    /// The series got as far as `number`, with this sum.
    fn at_least(&mut self, series: Series, number: u64, accepted: Option<i64>) {
        if self.has_ended(series, number) {
            let end = self.of.entry(series).or_default();
            if number >= end.0 {
                *end = (number, accepted);
            }
        }
    }

    /// The same, and no sum reaches as far.
    fn above(&mut self, series: Series, number: u64) {
        if self.of.get(&series).is_none_or(|end| number > end.0) {
            self.at_least(series, number, None);
        }
    }

    const fn has_ended(&self, series: Series, number: u64) -> bool {
        number > 0 && series.epoch > 0 && series.epoch <= self.last_epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_that_another_leader_opened_meanwhile_gets_no_end() {
        let series = |epoch| Series { epoch, shard: 0 };
        let mut ends = Ends { last_epoch: 4, of: HashMap::new() };
        ends.at_least(series(3), 7, Some(9));
        ends.at_least(series(4), 5, None);
        ends.at_least(series(4), 5, Some(6));
        ends.at_least(series(4), 4, Some(5));
        for later in [5, 6] {
            ends.at_least(series(later), 2, Some(2));
            ends.above(series(later), 3);
        }
        ends.above(series(3), 7);
        ends.at_least(series(0), 1, None);
        let mut found: Vec<_> = ends.of.iter().map(|(series, end)| (series.epoch, *end)).collect();
        found.sort_unstable();
        assert_eq!(found, [(3, (7, Some(9))), (4, (5, Some(6)))]);
        ends.above(series(4), 8);
        assert_eq!(ends.of[&series(4)], (8, None), "a parked request has a higher number");
    }
}
