//! Whether an acceptance number is free for its request: another one may have it, or it was closed.
//!
//! A number that a person closed, or P5, makes no order: its unit may be for sale again. Closing is rare, and landing must cost
//! nothing for it: the closed numbers of a sale are remembered with its facts, and the statement that takes the stock has one more
//! condition, that none were closed since they were read (`sales.closings`). Closing counts in the transaction that writes it,
//! behind the sale's row, and searches an outcome there. So of an order and a closing of its number that meet, the one that has the
//! row first stands, and the other sees it: nothing is both.
//!
//! Input: `closed_findings` and `request_outcome`. A crash forgets what is remembered; the next order reads it again.

use crate::domain::ids::SaleId;
use crate::domain::message::OrderMessage;
use crate::store::mysql::codes::read_sale_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::{Conn, Db};
use crate::store::mysql::schema::{closed_findings, request_outcome, sales};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::{BTreeMap, HashMap};

/// The closed numbers of a sale: for each epoch and shard, first and last of each run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClosedNumbers(BTreeMap<(u32, u16), Vec<(u64, u64)>>);

/// Sale, epoch, shard, first and last number.
type ClosedRun = (Vec<u8>, Option<u32>, Option<u16>, Option<u64>, Option<u64>);

impl ClosedNumbers {
    /// Whether the number of this request is among them.
    pub(crate) fn have(&self, accepted: &OrderMessage) -> bool {
        let runs = self.0.get(&(accepted.epoch, accepted.shard));
        runs.is_some_and(|runs| runs.iter().any(|(first, last)| (*first..=*last).contains(&accepted.number)))
    }

    /// Those of these sales. Read `sales.closings` before: what is closed in between is then missed by no comparison.
    pub(crate) async fn of(conn: &mut Conn, sales: &[&[u8]]) -> Result<HashMap<SaleId, Self>, DbError> {
        let rows: Vec<ClosedRun> = closed_findings::table
            .filter(closed_findings::sale_id.eq_any(sales))
            .filter(closed_findings::first_number.is_not_null())
            .select((
                closed_findings::sale_id,
                closed_findings::epoch,
                closed_findings::shard,
                closed_findings::first_number,
                closed_findings::last_number,
            ))
            .load(conn)
            .await?;
        let mut closed: HashMap<SaleId, Self> = HashMap::new();
        for (sale, epoch, shard, first, last) in rows {
            let (Some(epoch), Some(shard), Some(first), Some(last)) = (epoch, shard, first, last) else { continue };
            closed.entry(read_sale_id(&sale)?).or_default().0.entry((epoch, shard)).or_default().push((first, last));
        }
        Ok(closed)
    }
}

/// Whether another request has this acceptance number: Redis was rewound and gave it twice.
pub(super) async fn is_anothers(db: &Db, accepted: &OrderMessage) -> Result<bool, DbError> {
    let sale_id = accepted.purchase.sale_id.as_str().as_bytes();
    db.run("number_is_taken", async |conn| {
        let taken: i64 = request_outcome::table
            .filter(request_outcome::sale_id.eq(sale_id))
            .filter(request_outcome::shard.eq(accepted.shard))
            .filter(request_outcome::epoch.eq(accepted.epoch))
            .filter(request_outcome::number.eq(accepted.number))
            .count()
            .get_result(conn)
            .await?;
        Ok(taken > 0)
    })
    .await
}

/// Whether this acceptance number was closed.
pub(super) async fn is_closed(db: &Db, accepted: &OrderMessage) -> Result<bool, DbError> {
    db.run("number_is_closed", async |conn| closed(conn, accepted).await).await
}

async fn closed(conn: &mut Conn, accepted: &OrderMessage) -> Result<bool, DbError> {
    let closed: i64 = closed_findings::table
        .filter(closed_findings::sale_id.eq(accepted.purchase.sale_id.as_str().as_bytes()))
        .filter(closed_findings::epoch.eq(accepted.epoch))
        .filter(closed_findings::shard.eq(accepted.shard))
        .filter(closed_findings::first_number.le(accepted.number))
        .filter(closed_findings::last_number.ge(accepted.number))
        .count()
        .get_result(conn)
        .await?;
    Ok(closed > 0)
}

/// The same in a transaction that is about to give the number an outcome: nothing closes it before that transaction ends.
pub(super) async fn is_closed_for_good(conn: &mut Conn, accepted: &OrderMessage) -> Result<bool, DbError> {
    let sale_id = &accepted.purchase.sale_id;
    let row = sales::table.find(sale_id.as_str().as_bytes()).select(sales::closings).for_update();
    match row.first::<u32>(conn).await.optional().map_err(DbError::from) {
        Ok(_there) => closed(conn, accepted).await,
        Err(DbError::LockWait) => Err(DbError::SaleLocked(sale_id.clone())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message;

    fn accepted(epoch: u32, shard: u16, number: u64) -> OrderMessage {
        let text = format!(
            r#"{{"v":1,"rid":"5","sale":"s","user":"u","qty":1,"shard":{shard},"epoch":{epoch},"no":{number},"at":9}}"#
        );
        message::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_are_closed_in_their_own_series_from_the_first_to_the_last() {
        let closed = ClosedNumbers(BTreeMap::from([((1, 0), vec![(7, 7), (2, 4)]), ((2, 1), vec![(1, 1)])]));
        let found: Vec<u64> = (1..=8).filter(|number| closed.have(&accepted(1, 0, *number))).collect();
        assert_eq!(found, [2, 3, 4, 7]);
        assert!(closed.have(&accepted(2, 1, 1)));
        assert!(!closed.have(&accepted(1, 1, 2)) && !closed.have(&accepted(2, 0, 2)));
        assert!(!ClosedNumbers::default().have(&accepted(1, 0, 2)));
    }
}
