//! `sale reclaim`: units that stand behind final failures and written-off gaps become one grant.
//!
//! One transaction: the failures and gaps are marked with the grant that has their units, so each is offered once. A crash leaves
//! all of it or nothing; the grant is given to Redis like any other.

use super::GrantRows;
use crate::domain::ids::SaleId;
use crate::faults::left_out;
use crate::sales::rows::acts;
use crate::sales::rows::error::SaleError;
use crate::sales::rows::grants::top_up::NotOffered;
use crate::sales::rows::grants::write;
use crate::store::mysql::codes::{GrantKind, reasons_with_unit};
use crate::store::mysql::fault::Halt;
use crate::store::mysql::schema::sales;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;

impl GrantRows {
    /// Offers units again: those of final failures that Redis had taken and that were not offered yet, and those of numbers that
    /// a person wrote off. One grant holds all of them. `sales` does not change, because these units never left `sales.stock`.
    /// Failures for lack of units have none. Returns the grant, if there was anything to offer.
    ///
    /// # Errors
    /// [`SaleError::Unknown`]; [`SaleError::BooksDisagree`] when `sales.stock` has less than that; repeating the call is safe.
    pub async fn reclaim(&self, sale_id: &SaleId) -> Result<Option<Reclaimed>, SaleError> {
        let sale = sale_id.as_str().as_bytes();
        let grant_id = format!("reclaim-{:016x}", rand::random::<u64>());
        let made = self
            .db
            .run("grant_reclaim", async |conn| {
                transaction(conn, async |conn| {
                    let row: Option<(i64, u32)> = sales::table
                        .find(sale)
                        .select((sales::stock, sales::epoch))
                        .for_update()
                        .first(conn)
                        .await
                        .optional()?;
                    let Some((stock, epoch)) = row else { return Err(Halt::Because(NotOffered::Unknown)) };
                    let claim = |query: &str| {
                        diesel::sql_query(query).bind::<Binary, _>(grant_id.as_bytes()).bind::<Binary, _>(sale)
                    };
                    let requests = claim(&claim_failures()).execute(conn).await?;
                    claim(CLAIM_WRITTEN_OFF).execute(conn).await?;
                    let units: Units = claim(CLAIMED)
                        .bind::<Binary, _>(sale)
                        .bind::<Binary, _>(grant_id.as_bytes())
                        .bind::<Binary, _>(sale)
                        .get_result(conn)
                        .await?;
                    if left_out!(ReclaimMarks) {
                        claim(CLAIM_FORGOTTEN).execute(conn).await?;
                    }
                    if units.claimed == 0 {
                        return Ok(None);
                    }
                    if units.claimed > stock - units.waiting {
                        return Err(Halt::Because(NotOffered::NoRoom));
                    }
                    write(conn, sale_id, &grant_id, (GrantKind::Reclaim, units.claimed, epoch)).await?;
                    acts::insert_pending(conn, sale_id).await?;
                    Ok(Some(Reclaimed { grant_id: grant_id.clone(), requests, units: units.claimed }))
                })
                .await
                .or_else(|halted| match halted {
                    Halt::Db(error) => Err(error),
                    Halt::Because(NotOffered::NoRoom) => {
                        Ok(Some(Reclaimed { grant_id: String::new(), requests: 0, units: 0 }))
                    }
                    Halt::Because(NotOffered::Unknown) => Ok(None),
                })
            })
            .await?;
        match made {
            Some(refused) if refused.units == 0 => Err(SaleError::BooksDisagree(sale_id.clone())),
            made => {
                if made.is_some() {
                    acts::pending_is_written();
                }
                Ok(made)
            }
        }
    }
}

/// Marks the failures whose units are there.
fn claim_failures() -> String {
    let of_sale = "/* grants::reclaim */ UPDATE failed_request SET reclaimed_by = ? WHERE sale_id = ? \
        AND status = 'failed_final' AND reclaimed_by IS NULL";
    if left_out!(ReclaimWithUnit) {
        return of_sale.to_owned();
    }
    format!("{of_sale} AND reason IN ({})", reasons_with_unit())
}

/// What a reclaim offers again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaimed {
    /// Identity of the new grant.
    pub grant_id: String,
    /// Failed requests whose units it has.
    pub requests: usize,
    /// All its units.
    pub units: i64,
}

#[derive(QueryableByName)]
struct Units {
    #[diesel(sql_type = BigInt)]
    claimed: i64,
    #[diesel(sql_type = BigInt)]
    waiting: i64,
}

const CLAIM_WRITTEN_OFF: &str = "/* grants::reclaim */ UPDATE closed_findings SET reclaimed_by = ? WHERE sale_id = ? \
    AND code = 'P5-RC4' AND reclaimed_by IS NULL AND units > 0";
/// What `Mechanism::ReclaimMarks` forbids.
const CLAIM_FORGOTTEN: &str =
    "/* grants::reclaim */ UPDATE failed_request SET reclaimed_by = NULL WHERE reclaimed_by = ? AND sale_id = ?";
/// What was claimed, and what other grants have been promised and Redis has not been given.
const CLAIMED: &str = "/* grants::reclaim */ SELECT CAST(\
    (SELECT COALESCE(SUM(quantity), 0) FROM failed_request WHERE reclaimed_by = ? AND sale_id = ?) + \
    (SELECT COALESCE(SUM(units), 0) FROM closed_findings WHERE sale_id = ? AND reclaimed_by = ?) AS SIGNED) AS claimed, \
    (SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) FROM stock_grants WHERE sale_id = ? AND applied_at IS NULL) AS waiting";
