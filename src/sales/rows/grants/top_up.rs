//! More units for a sale, by an operator or by its timetable: the grant, its row of the journal, and the sums of the sale in one
//! transaction. A crash before Redis has them leaves an open grant.

use super::{Grant, GrantRows, insert};
use crate::domain::grant_names::{RELEASE, is_reserved};
use crate::domain::ids::SaleId;
use crate::domain::sale::STOCK_MAX;
use crate::sales::rows::acts;
use crate::sales::rows::error::SaleError;
use crate::store::mysql::codes::GrantKind;
use crate::store::mysql::fault::{DbError, Halt};
use crate::store::mysql::schema::sales;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

impl GrantRows {
    /// Releases more units under `grant_id` (1 to 64 bytes). `false`: this very grant was made before, nothing changed.
    /// Repeating is safe.
    pub async fn top_up(&self, sale_id: &SaleId, grant_id: &str, quantity: u32) -> Result<bool, SaleError> {
        if is_reserved(grant_id) {
            return Err(SaleError::GrantReserved(grant_id.to_owned()));
        }
        self.offer(sale_id, grant_id, quantity).await
    }

    /// The same of a release of the sale's timetable, whose name the system gives.
    pub(crate) async fn release(&self, sale_id: &SaleId, number: u16, quantity: u32) -> Result<bool, SaleError> {
        self.offer(sale_id, &format!("{RELEASE}{number}"), quantity).await
    }

    async fn offer(&self, sale_id: &SaleId, grant_id: &str, quantity: u32) -> Result<bool, SaleError> {
        let sale = sale_id.as_str().as_bytes();
        let quantity = i64::from(quantity);
        let moved = self
            .db
            .run("grant_top_up", async |conn| {
                transaction(conn, async |conn| {
                    // Its epoch cannot change between here and the commit: a rebuild that is under way waits for this row.
                    let locked = sales::table.find(sale).select(sales::epoch).for_update();
                    let Some(epoch) = locked.first(conn).await.optional()? else {
                        return Err(Halt::Because(NotOffered::Unknown));
                    };
                    insert(conn, sale_id, grant_id, (quantity, epoch)).await?;
                    let room = sales::table.find(sale).filter(sales::granted.le(STOCK_MAX - quantity));
                    let more = (sales::granted.eq(sales::granted + quantity), sales::stock.eq(sales::stock + quantity));
                    let matched = diesel::update(room).set(more).execute(conn).await?;
                    if matched != 1 {
                        return Err(Halt::Because(NotOffered::NoRoom));
                    }
                    acts::insert_pending(conn, sale_id).await?;
                    Ok(None)
                })
                .await
                .or_else(|halted| match halted {
                    Halt::Because(NotOffered::NoRoom) => Ok(Some(SaleError::TooMuch(sale_id.clone()))),
                    Halt::Because(NotOffered::Unknown) => Ok(Some(SaleError::Unknown(sale_id.clone()))),
                    Halt::Db(error) => Err(error),
                })
            })
            .await;
        match moved {
            Ok(None) => {
                acts::pending_is_written();
                Ok(true)
            }
            Ok(Some(refusal)) => Err(refusal),
            Err(DbError::Duplicate(_)) => {
                let there = self.get(sale_id, grant_id).await?;
                let same = |grant: Grant| grant.quantity == quantity && grant.kind == GrantKind::Grant;
                if there.is_some_and(same) { Ok(false) } else { Err(SaleError::GrantConflict(grant_id.to_owned())) }
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Why units are not offered.
pub(super) enum NotOffered {
    NoRoom,
    Unknown,
}
