//! Writes down the last number of each series before Redis forgets its own: a gap below it stays visible (`P5-RC4`), whatever
//! becomes of the keys, and its unit is kept back.

use crate::domain::message;
use crate::domain::sale::Sale;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::dlq::MqDlqContents;
use crate::p5_reconcile::pages::OpenFailurePages;
use crate::store::mysql::books::{self, Series, closing};
use std::collections::HashMap;

/// Writes the ends as the database, Redis and the parked requests of the sale know them.
pub(super) async fn write(
    context: &ReconcileContext,
    sale: &Sale,
    parked: &MqDlqContents,
) -> Result<(), ReconcileError> {
    let id = &sale.sale_id;
    let mut ends: HashMap<Series, (u64, Option<i64>)> = HashMap::new();
    for known in books::known(&context.db, id).await? {
        ends.insert(known.series, (known.number, known.accepted));
    }
    for shard in 0..context.shards {
        let Some(counts) = context.redis.sale_keys.count(id, shard).await? else { continue };
        let end = ends.entry(Series { epoch: counts.meta.epoch, shard }).or_default();
        // A Redis that is behind the database has forgotten units, too.
        if counts.meta.number >= end.0 {
            *end = (counts.meta.number, counts.accepted);
        }
    }
    let mut requests: Vec<_> =
        parked.requests.iter().filter(|accepted| accepted.purchase.sale_id == *id).cloned().collect();
    let mut pages = OpenFailurePages::new(&context.db, Some(id.clone()));
    while let Some(page) = pages.next().await? {
        requests.extend(page.iter().filter_map(|row| message::decode(&row.payload).ok()));
    }
    for accepted in requests {
        let end = ends.entry(Series { epoch: accepted.epoch, shard: accepted.shard }).or_default();
        if accepted.number > end.0 {
            *end = (accepted.number, None);
        }
    }
    for (series, (number, accepted)) in ends {
        if number > 0 && series.epoch > 0 {
            closing::end(&context.db, id, series, number, accepted).await?;
        }
    }
    Ok(())
}
