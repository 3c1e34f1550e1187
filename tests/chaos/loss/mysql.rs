//! Faults inside the database, past the product: copies of the tables, and the damage done to the rows.

use super::faults::SaleFault;
use super::plan::Scene;
use crate::raw_commands::try_sql;
use crate::time::pause;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// A row that somebody of the product has locked is waited for so long.
const LOCKED_MAX: Duration = Duration::from_secs(20);

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// An answer to CHECK TABLE.
#[derive(QueryableByName)]
struct TableCheck {
    #[diesel(sql_type = Text, column_name = "Msg_type")]
    kind: String,
    #[diesel(sql_type = Text, column_name = "Msg_text")]
    text: String,
}

/// The tables, and how to reach them.
pub struct Tables {
    url: String,
    /// Name, and whether its rows name their sale.
    all: Vec<(String, bool)>,
}

impl Tables {
    /// Finds the tables, and makes room for copies.
    pub async fn of(url: &str) -> Self {
        let names = "SELECT CONCAT(t.table_name, ' ', EXISTS (SELECT 1 FROM information_schema.columns c \
            WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_name = 'sale_id')) AS line \
            FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' \
            AND t.table_name NOT LIKE '\\_\\_%'";
        let mut all = Vec::new();
        for line in lines(url, names).await {
            let (name, of_sale) = line.split_once(' ').expect("two words");
            all.push((name.to_owned(), of_sale == "1"));
        }
        assert!(all.iter().any(|(name, of_sale)| name == "orders" && *of_sale), "{all:?}");
        Self { url: url.to_owned(), all }
    }

    /// Runs statements, and again while somebody holds the rows.
    pub async fn run(&self, statements: &str) {
        let deadline = Instant::now() + LOCKED_MAX;
        loop {
            match try_sql(&self.url, statements).await {
                Ok(()) => return,
                Err(error) => assert!(Instant::now() < deadline, "{error}: {statements}"),
            }
            pause().await;
        }
    }

    /// What the server's own check says against one of the tables, or why it does not answer.
    pub async fn damaged(&self) -> Option<String> {
        let Ok(mut connection) = AsyncMysqlConnection::establish(&self.url).await else {
            return Some("no connection".to_owned());
        };
        for (table, _) in &self.all {
            let checked: Result<Vec<TableCheck>, _> =
                diesel::sql_query(format!("CHECK TABLE `{table}`")).load(&mut connection).await;
            match checked {
                Ok(rows) => {
                    let wrong = rows.iter().find(|row| row.kind != "status" || row.text != "OK");
                    if let Some(row) = wrong {
                        return Some(format!("{table}: {}", row.text));
                    }
                }
                Err(error) => return Some(format!("{table}: {error}")),
            }
        }
        None
    }

    /// Numbers, one a row.
    pub async fn lines(&self, query: &str) -> Vec<String> {
        lines(&self.url, query).await
    }

    /// Copies everything under a name. Every statement sees what is committed; the sales' rows are locked first, and a
    /// transaction of the consumer writes them last, so that no landing is copied by half.
    pub async fn copy(&self, name: &str) {
        let mut statements = format!("CREATE DATABASE IF NOT EXISTS copy_{name}; ");
        for (table, _) in &self.all {
            statements += &format!("CREATE TABLE IF NOT EXISTS copy_{name}.{table} LIKE {table}; ");
        }
        self.run(&statements).await;
        let mut statements = "SET SESSION innodb_lock_wait_timeout = 1; \
            SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN; SELECT sale_id FROM sales FOR UPDATE; "
            .to_owned();
        for (table, _) in &self.all {
            statements +=
                &format!("DELETE FROM copy_{name}.{table}; INSERT INTO copy_{name}.{table} SELECT * FROM {table}; ");
        }
        self.run(&(statements + "COMMIT")).await;
    }

    /// Loads a copy of everything.
    pub async fn load(&self, name: &str) {
        let each = self
            .all
            .iter()
            .map(|(table, _)| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM copy_{name}.{table}; "));
        let statements: String = each.collect();
        self.run(&format!("SET SESSION innodb_lock_wait_timeout = 1; BEGIN; {statements}COMMIT")).await;
    }

    /// Strikes a sale; how many rows it hit, at least.
    pub async fn strike(&self, scene: &Scene, fault: SaleFault, copy: &str) -> usize {
        let sale = scene.sale.as_str();
        if fault == SaleFault::RowsRewound {
            let newer = format!(
                "SELECT CAST(COUNT(*) AS CHAR) AS line FROM stock_flow WHERE sale_id = '{sale}' AND flow_id NOT IN \
                 (SELECT flow_id FROM copy_{copy}.stock_flow)"
            );
            let newer = self.lines(&newer).await[0].parse().expect("a number");
            let mut statements = lock(sale);
            for (table, _) in self.all.iter().filter(|(_, of_sale)| *of_sale) {
                statements += &format!(
                    "DELETE FROM {table} WHERE sale_id = '{sale}'; \
                     INSERT INTO {table} SELECT * FROM copy_{copy}.{table} WHERE sale_id = '{sale}'; "
                );
            }
            self.run(&(statements + "COMMIT")).await;
            return newer;
        }
        let orders = format!(
            "SELECT CONCAT(request_id, ' ', quantity, ' ', CONVERT(user_id USING utf8mb4)) AS line FROM orders \
             WHERE sale_id = '{sale}' AND cancelled_at IS NULL ORDER BY request_id"
        );
        let orders = self.lines(&orders).await;
        let mut dice = StdRng::seed_from_u64(scene.dice);
        let count = orders.len().min(dice.random_range(1..=3));
        let mut statements = lock(sale);
        for _ in 0..count {
            let words: Vec<&str> = orders[dice.random_range(0..orders.len())].splitn(3, ' ').collect();
            statements += &undone(sale, fault, (words[0], words[1], words[2]));
        }
        self.run(&(statements + "COMMIT")).await;
        count
    }

    /// The rows of these sales go.
    pub async fn clear(&self, sales: &[&str]) {
        let named: Vec<String> = sales.iter().map(|sale| format!("'{sale}'")).collect();
        let named = named.join(", ");
        let tables = self.all.iter().filter(|(_, of_sale)| *of_sale);
        let each = tables.map(|(table, _)| format!("DELETE FROM {table} WHERE sale_id IN ({named}); "));
        let statements: String = each.collect();
        self.run(&format!("SET SESSION innodb_lock_wait_timeout = 1; BEGIN; {statements}COMMIT")).await;
    }
}

/// No order lands in the sale from here on: the rows are those of one moment.
fn lock(sale: &str) -> String {
    format!(
        "SET SESSION innodb_lock_wait_timeout = 1; BEGIN; SELECT sale_id FROM sales WHERE sale_id = '{sale}' FOR UPDATE; "
    )
}

/// One order, as if it had never been, or half of it.
fn undone(sale: &str, fault: SaleFault, (rid, units, user): (&str, &str, &str)) -> String {
    let (order, outcome) = (
        format!("DELETE FROM orders WHERE request_id = {rid}; "),
        format!("DELETE FROM request_outcome WHERE request_id = {rid}; "),
    );
    if fault == SaleFault::OrderRowsGone {
        return order;
    }
    if fault == SaleFault::OutcomeRowsGone {
        return outcome;
    }
    // Guarded, so that an order that is drawn twice goes once. Its journal row has its name, if it was the first of its group; it
    // could not land again with that.
    let there = format!("EXISTS (SELECT 1 FROM orders WHERE request_id = {rid})");
    format!(
        "UPDATE sales SET stock = stock + {units} WHERE sale_id = '{sale}' AND {there}; \
         UPDATE IGNORE stock_flow SET ref = 'undone-{rid}' WHERE sale_id = '{sale}' AND kind = 'order' AND ref = '{rid}'; \
         INSERT IGNORE INTO stock_flow (sale_id, delta, kind, ref) VALUES ('{sale}', {units}, 'correction', '{rid}'); \
         UPDATE purchases SET quantity = quantity - {units} WHERE sale_id = '{sale}' AND user_id = '{user}' AND {there}; \
         {order}{outcome}"
    )
}

async fn lines(url: &str, query: &str) -> Vec<String> {
    let mut connection = AsyncMysqlConnection::establish(url).await.expect("mysql");
    let found: Vec<Line> = diesel::sql_query(query).load(&mut connection).await.expect(query);
    found.into_iter().map(|line| line.line).collect()
}
