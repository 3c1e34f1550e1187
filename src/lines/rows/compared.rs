//! Entries of a line against the orders of their requests.
//!
//! Input: a sale. Output: entries that cannot be so. Reads only; a crash leaves nothing.

use super::LineRows;
use super::own::{entry_id, entry_state};
use crate::domain::ids::{EntryId, SaleId};
use crate::domain::line::EntryState;
use crate::store::mysql::fault::DbError;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// An entry whose state and whose order contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DifferingEntry {
    pub(crate) id: EntryId,
    pub(crate) state: EntryState,
    pub(crate) request_id: Option<u64>,
}

#[derive(QueryableByName)]
struct DifferingRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    entry_id: u64,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    request_id: Option<u64>,
}

impl LineRows {
    /// Entries that are TAKEN without an order, LAPSED although their order lives, or LEFT with a request; `limit` at most. No step makes
    /// one of these: an entry follows its order, and leaves before it has a request. What P2 refused may have been accepted later, by a call
    /// that was given up: those entries are left out.
    pub(crate) async fn differing_entries(&self, sale: &SaleId, limit: usize) -> Result<Vec<DifferingEntry>, DbError> {
        let query = format!(
            "/* lines::differing */ SELECT e.entry_id, e.state, e.request_id FROM line_entries e \
             LEFT JOIN orders o ON o.request_id = e.request_id WHERE e.sale_id = ? \
             AND ((e.state = 'TAKEN' AND o.request_id IS NULL) OR (e.state = 'LEFT' AND e.request_id IS NOT NULL) \
             OR (e.state = 'LAPSED' AND COALESCE(e.lapse_reason, '') NOT IN ('LIMIT', 'BLOCKED', 'LOST') AND (o.state IN ('UNPAID', 'PAID') \
             OR (o.request_id IS NOT NULL AND o.state IS NULL AND o.cancelled_at IS NULL)))) LIMIT {limit}"
        );
        let rows: Vec<DifferingRow> = self
            .db
            .run("line_differing", async |conn| {
                Ok(diesel::sql_query(&query).bind::<Binary, _>(sale.as_str().as_bytes()).load(conn).await?)
            })
            .await?;
        let read = |DifferingRow { entry_id: id, state, request_id }: DifferingRow| {
            Ok(DifferingEntry { id: entry_id(id)?, state: entry_state(&state)?, request_id })
        };
        rows.into_iter().map(read).collect()
    }
}
