//! How far a sale's acceptance numbers went by the database: what Redis has to know at least, or it went back in time. Reads only.

use super::SaleRows;
use crate::domain::ids::SaleId;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{closed_findings, request_outcome};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

impl SaleRows {
    /// The highest acceptance number that was given for sure in this (sale, shard, epoch): with an outcome, or closed; else 0. The boot
    /// fence compares Redis' own with it.
    pub async fn highest_number(&self, sale_id: &SaleId, shard: u16, epoch: u32) -> Result<u64, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let (decided, closed): (Option<u64>, Option<u64>) = self
            .db
            .run("highest_number", async |conn| {
                let decided = request_outcome::table
                    .filter(request_outcome::sale_id.eq(sale))
                    .filter(request_outcome::shard.eq(shard))
                    .filter(request_outcome::epoch.eq(epoch))
                    .select(diesel::dsl::max(request_outcome::number))
                    .first(conn)
                    .await?;
                let closed = closed_findings::table
                    .filter(closed_findings::sale_id.eq(sale))
                    .filter(closed_findings::epoch.eq(epoch))
                    .filter(closed_findings::shard.eq(shard))
                    .select(diesel::dsl::max(closed_findings::last_number))
                    .first(conn)
                    .await?;
                Ok((decided, closed))
            })
            .await?;
        Ok(decided.max(closed).unwrap_or(0))
    }
}
