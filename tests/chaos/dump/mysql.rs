//! The tables, all from one snapshot; the database itself writes the JSON.

use super::Lines;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use std::path::Path;

/// File, table, columns. `#`: a 64-bit id, as a decimal text; `$`: bytes of a text; `@`: a time.
const TABLES: [(&str, &str); 11] = [
    ("sales", "$sale_id granted stock per_user_limit status epoch"),
    (
        "orders",
        "#request_id $sale_id $user_id quantity source @accepted_at @created_at @cancelled_at state @expire_at limit_returned version",
    ),
    ("payments", "$payment_id #request_id $sale_id amount_cents currency state reason"),
    ("request_outcome", "#request_id kind reason $sale_id shard epoch number @created_at"),
    (
        "failed_request",
        "#request_id $sale_id $user_id quantity source reason detail status @created_at @resolved_at resolved_by $reclaimed_by",
    ),
    ("purchases", "$sale_id $user_id quantity"),
    ("drops", "$drop_id per_user_limit $sale_ids"),
    ("drop_purchases", "$drop_id $user_id quantity"),
    ("stock_flow", "flow_id $sale_id delta kind orders_count $ref @created_at"),
    ("stock_grants", "$sale_id $grant_id kind quantity epoch @created_at @applied_at"),
    ("audit_findings", "finding_id run_id $sale_id #request_id code detail @created_at"),
];

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// Dumps all tables.
pub(super) async fn dump(url: &str, dir: &Path) {
    let mut connection = AsyncMysqlConnection::establish(url).await.expect("mysql");
    let begin = "SET NAMES utf8mb4; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT";
    connection.batch_execute(begin).await.expect("a snapshot");
    for (table, columns) in TABLES {
        let rows: Vec<Line> = diesel::sql_query(query(table, columns)).load(&mut connection).await.expect(table);
        let mut lines = Lines::create(dir, table);
        for row in rows {
            lines.put_text(&row.line);
        }
        lines.close();
    }
    connection.batch_execute("ROLLBACK").await.expect("rolled back");
}

fn query(table: &str, columns: &str) -> String {
    let pair = |column: &str| {
        let name = column.trim_start_matches(['#', '$', '@']);
        match column.as_bytes().first() {
            Some(b'#' | b'@') => format!("'{name}', CAST(`{name}` AS CHAR)"),
            Some(b'$') => format!("'{name}', CONVERT(`{name}` USING utf8mb4)"),
            _ => format!("'{name}', `{name}`"),
        }
    };
    let pairs: Vec<String> = columns.split_whitespace().map(pair).collect();
    format!("SELECT JSON_OBJECT({}) AS line FROM {table}", pairs.join(", "))
}
