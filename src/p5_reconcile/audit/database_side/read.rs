//! Reads the database's side, and what the judge asks of it later. The order of the reads is argued in the head of the
//! audit.

use super::outcome_counts::{CountedOutcomes, SeriesWanted};
use super::side::{DatabaseBefore, DatabaseSide, OwnedUnitsDiffer, OwnedUnitsSide, SaleSnapshot, SeriesCounted};
use super::void_numbers::VoidNumbers;
use crate::domain::sale::Sale;
use crate::faults::{hold, slow_audit};
use crate::orders::rows::purchases::{CountedLimit, DROP_PURCHASES, PURCHASES};
use crate::p5_reconcile::audit::redis_side::RedisSide;
use crate::p5_reconcile::audit_stage::AuditStage;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::rows::books::Series;
use crate::sales::rows::grants;
use std::collections::BTreeMap;

/// Buyers of whom it is read how their units differ.
const DIFFERING_MAX: usize = 10;

/// Reads the database for an audit of one sale.
#[derive(Clone, Copy)]
pub(crate) struct DatabaseReader<'a> {
    pub context: &'a ReconcileContext,
    pub sale: &'a Sale,
}

/// Reads what has to be read before Redis.
pub(crate) async fn read_before(reader: DatabaseReader<'_>) -> Result<DatabaseBefore, ReconcileError> {
    let DatabaseReader { context, sale } = reader;
    let known = context.rows.books.known(&sale.sale_id).await?;
    let of_epoch = context.rows.giving.grants.of_epoch(&sale.sale_id, sale.epoch).await?;
    let marked = of_epoch.into_iter().filter(|grant| grant.applied_at_ms.is_some()).collect();
    let withdrawn = context.rows.books.withdrawn(&sale.sale_id).await?;
    Ok(DatabaseBefore { known, marked, withdrawn })
}

/// Reads the rest, in one snapshot.
pub(crate) async fn read(
    reader: DatabaseReader<'_>,
    before: DatabaseBefore,
    redis: &RedisSide,
    counted: &mut CountedOutcomes,
) -> Result<DatabaseSide, ReconcileError> {
    let DatabaseReader { context, sale } = reader;
    let wanted = wanted(&before, redis, sale.epoch);
    context.stage.send_replace(AuditStage::Outcomes);
    slow_audit().await;
    hold!(AuditCounted);
    let read = counted.read(&context.rows.books, &sale.sale_id, &wanted).await?;
    let snapshot = read.map(|(books, series)| {
        let series: BTreeMap<Series, SeriesCounted> = wanted.iter().map(|wanted| wanted.series).zip(series).collect();
        let (void, orders) = (VoidNumbers::of(&books), counted.orders_beside_outcomes());
        SaleSnapshot { books, series, orders, void }
    });
    Ok(DatabaseSide { before, snapshot, ..DatabaseSide::default() })
}

/// Every known series, up to its last number.
pub(crate) fn wanted(before: &DatabaseBefore, redis: &RedisSide, epoch: u32) -> Vec<SeriesWanted> {
    let landed: BTreeMap<Series, u64> = before.known.iter().map(|known| (known.series, known.number)).collect();
    let mut wanted = landed.clone();
    for (shard, counted) in redis.counted() {
        if counted.counts.meta.epoch == epoch {
            wanted.insert(Series { epoch, shard }, counted.counts.meta.number);
        }
    }
    let want = |(series, to): (Series, u64)| {
        let above = series.epoch == epoch && redis.counted_in(series).is_some();
        SeriesWanted { series, to, landed: landed.get(&series).copied().unwrap_or(0), above }
    };
    wanted.into_iter().map(want).collect()
}

impl DatabaseReader<'_> {
    /// The ages of the numbers above these.
    pub(crate) async fn ages(
        self,
        asked: &[(Series, Vec<u64>)],
    ) -> Result<BTreeMap<Series, Vec<Option<i64>>>, ReconcileError> {
        let mut ages = BTreeMap::new();
        for (series, numbers) in asked {
            let of_series = self.context.rows.books.ages_above_ms(&self.sale.sale_id, *series, numbers).await?;
            ages.insert(*series, of_series);
        }
        Ok(ages)
    }

    /// The open withdrawals, of whose units Redis may have given a part, then the grants of the epoch, among which a withdrawal is that
    /// ended since; `None` when they are too many to be compared one by one.
    pub(crate) async fn grants(self) -> Result<Option<Vec<grants::GrantMark>>, ReconcileError> {
        let open = self.context.rows.giving.grants.open_withdrawals(&self.sale.sale_id, 0).await?;
        let known = self.context.rows.giving.grants.of_epoch(&self.sale.sale_id, self.sale.epoch).await?;
        let too_many = i64::try_from(known.len()).is_ok_and(|count| count >= grants::OF_EPOCH_MAX)
            || i64::try_from(open.len()).is_ok_and(|count| count >= grants::OPEN_MAX);
        Ok((!too_many).then(|| open.iter().map(grants::Withdrawal::as_grant).chain(known).collect()))
    }

    /// The units that buyers own, and the entries of its line, compared.
    pub(crate) async fn owned_units(self) -> Result<OwnedUnitsSide, ReconcileError> {
        let sale = &self.sale.sale_id;
        let of_drop = self.sale.judged_drop();
        let of_sale = self.sale.counts_units().then_some((PURCHASES, sale.as_str(), None, vec![sale]));
        let of_drop = of_drop.map(|drop| {
            let id = &drop.drop_id;
            (DROP_PURCHASES, id.as_str(), Some(id.clone()), drop.sale_ids.iter().collect())
        });
        let mut differ = Vec::new();
        for (counted_in, id, of_drop, sales) in of_sale.into_iter().chain(of_drop) {
            let limit = CountedLimit { counted_in, id, sales: &sales };
            let differs = self.context.rows.orders.compare(limit, DIFFERING_MAX).await?;
            differ.extend(differs.map(|(units, buyers)| OwnedUnitsDiffer { of_drop, units, buyers }));
        }
        let entries = match self.sale.line {
            Some(_) => self.context.rows.lines.differing_entries(sale, DIFFERING_MAX).await?,
            None => Vec::new(),
        };
        Ok(OwnedUnitsSide { differ, entries, is_new: true })
    }
}
