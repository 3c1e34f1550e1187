//! May this account do what the roles do? For `seckill doctor`: it uses EXPLAIN, which needs the right and does nothing.

use super::fault::DbError;
use super::pool::Db;
use diesel::sql_types::Text;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};

/// Tables, each with a column for the UPDATE that is not done.
const TABLES: [(&str, &str); 21] = [
    ("sales", "stock"),
    ("orders", "quantity"),
    ("purchases", "quantity"),
    ("drops", "version"),
    ("drop_purchases", "quantity"),
    ("blocked_buyers", "reason"),
    ("request_outcome", "number"),
    ("outcome_event", "request_id"),
    ("failed_request", "status"),
    ("stock_flow", "delta"),
    ("stock_grants", "quantity"),
    ("stock_withdrawals", "taken"),
    ("audit_runs", "run_id"),
    ("audit_findings", "run_id"),
    // The only column of it that is ever changed.
    ("closed_findings", "reclaimed_by"),
    ("payments", "state"),
    ("webhook_deliveries", "state"),
    ("webhook_subscriptions", "events"),
    ("sale_announcements", "state"),
    ("sale_lines", "state"),
    ("line_entries", "state"),
];
/// Where rows are only added.
const ADDED_TO: [(&str, &str); 7] = [
    ("operator_acts", "outcome"),
    ("sale_epochs", "number"),
    ("archived_sales", "manifest"),
    ("order_events", "request_id"),
    ("sale_releases", "quantity"),
    ("sale_rollovers", "moves_to"),
    // Forgetting a buyer has an account of its own.
    ("forgotten_buyers", "reason"),
];
/// Those that rows are deleted from.
const DELETED_FROM: [&str; 6] =
    ["outcome_event", "order_events", "webhook_deliveries", "audit_runs", "audit_findings", "sale_announcements"];
/// As both servers word it (1142 and 1143).
pub(crate) const DENIED: &str = "command denied";

/// What an account may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Its name, as the server has it.
    pub account: String,
    /// What it lacks, e.g. `DELETE on audit_runs`.
    pub missing: Vec<String>,
    /// Whether it has rights on every database.
    pub everywhere: bool,
}

#[derive(diesel::QueryableByName)]
struct Account {
    #[diesel(sql_type = Text)]
    account: String,
}

/// Tries everything on every table; the tables have to be there.
pub(crate) async fn rights(db: &Db) -> Result<Rights, DbError> {
    db.run("rights", async |conn| {
        let Account { account } = diesel::sql_query("SELECT CURRENT_USER() AS account").get_result(conn).await?;
        let mut missing = Vec::new();
        for (right, table, statement) in statements() {
            // A refusal leaves the connection in step; other errors of a statement do not matter here.
            if let Err(error) = conn.batch_execute(&statement).await
                && error.to_string().contains(DENIED)
            {
                missing.push(format!("{right} on {table}"));
            }
        }
        // No table of another database may be read without a right on it. An account without any sees it is not there.
        let everywhere = conn.batch_execute("EXPLAIN SELECT 1 FROM mysql.db").await.is_ok();
        Ok(Rights { account, missing, everywhere })
    })
    .await
}

fn statements() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let each = TABLES.into_iter().flat_map(|(table, column)| {
        [
            ("SELECT", table, format!("EXPLAIN SELECT {column} FROM {table}")),
            ("INSERT", table, format!("EXPLAIN INSERT INTO {table} ({column}) VALUES (NULL)")),
            ("UPDATE", table, format!("EXPLAIN UPDATE {table} SET {column} = {column} WHERE 1 = 0")),
        ]
    });
    let added = ADDED_TO.into_iter().flat_map(|(table, column)| {
        [
            ("SELECT", table, format!("EXPLAIN SELECT {column} FROM {table}")),
            ("INSERT", table, format!("EXPLAIN INSERT INTO {table} ({column}) VALUES (NULL)")),
        ]
    });
    let deleted = DELETED_FROM.into_iter();
    each.chain(added).chain(deleted.map(|table| ("DELETE", table, format!("EXPLAIN DELETE FROM {table} WHERE 1 = 0"))))
}
