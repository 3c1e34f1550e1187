//! The line that a sale was created with (`sale_lines`).
//!
//! Input: a plan, in the transaction that creates its sale. Output: its row, with a random seed and its commitment. What becomes of
//! the line, `lines` writes.

use crate::domain::draw::{Bytes32, commitment};
use crate::domain::ids::SaleId;
use crate::domain::line::{LineKind, LinePlan};
use crate::store::mysql::codes::{datetime, read_sale_id, unix_ms, unreadable};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{Binary, Bool, Datetime, Text};
use diesel_async::RunQueryDsl;

#[derive(QueryableByName)]
struct PlanRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Datetime)]
    closes_at: NaiveDateTime,
    #[diesel(sql_type = Bool)]
    needs_beacon: bool,
}

/// Inside the transaction that creates the sale.
pub(super) async fn insert(conn: &mut Conn, sale_id: &SaleId, plan: LinePlan) -> Result<(), DbError> {
    let seed: Bytes32 = rand::random();
    let query = "INSERT INTO sale_lines (sale_id, kind, state, opens_at, closes_at, needs_beacon, commitment, seed, entries_count) \
         VALUES (?, ?, ?, NOW(3), ?, ?, ?, ?, 0)";
    diesel::sql_query(query)
        .bind::<Binary, _>(sale_id.as_str().as_bytes())
        .bind::<Text, _>(plan.kind.code())
        .bind::<Text, _>(plan.kind.first_state().code())
        .bind::<Datetime, _>(datetime(plan.closes_at_ms)?)
        .bind::<Bool, _>(plan.needs_beacon)
        .bind::<Binary, _>(&commitment(&seed)[..])
        .bind::<Binary, _>(&seed[..])
        .execute(conn)
        .await?;
    Ok(())
}

/// The lines of these sales, as they were planned; a sale without one is not among them.
pub(super) async fn plans(conn: &mut Conn, sales: &[&[u8]]) -> Result<Vec<(SaleId, LinePlan)>, DbError> {
    let places = vec!["?"; sales.len()].join(", ");
    let query = format!("SELECT sale_id, kind, closes_at, needs_beacon FROM sale_lines WHERE sale_id IN ({places})");
    let mut rows = diesel::sql_query(query).into_boxed();
    for sale in sales {
        rows = rows.bind::<Binary, _>(*sale);
    }
    let rows: Vec<PlanRow> = rows.load(conn).await?;
    let plan = |row: PlanRow| {
        let kind = LineKind::from_code(&row.kind).ok_or_else(|| unreadable("sale_lines.kind", &row.kind))?;
        let (closes_at_ms, needs_beacon) = (unix_ms(row.closes_at), row.needs_beacon);
        Ok((read_sale_id(&row.sale_id)?, LinePlan { kind, closes_at_ms, needs_beacon }))
    };
    rows.into_iter().map(plan).collect()
}
