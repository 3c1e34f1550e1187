//! A backup of a world's database, and going back to it: all tables that hold what was decided, of one moment.

use super::World;

/// In an order that no key minds.
const TABLES: [&str; 11] = [
    "sales",
    "orders",
    "purchases",
    "request_outcome",
    "failed_request",
    "stock_flow",
    "stock_grants",
    "stock_withdrawals",
    "outcome_event",
    "sale_epochs",
    "closed_findings",
];

impl World {
    /// Copies every table aside.
    pub async fn back_up(&self) {
        for table in TABLES {
            self.sql(&format!("CREATE TABLE backup_{table} AS SELECT * FROM {table}")).await;
        }
    }

    /// Puts the copies back, in one transaction.
    pub async fn restore(&self) {
        let back =
            TABLES.map(|table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM backup_{table};"));
        self.sql(&format!("BEGIN; {} COMMIT", back.concat())).await;
    }
}
