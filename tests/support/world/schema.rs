//! A test's database: the first one of a run is made by the migrations, the others from a copy of what that became.

use crate::support::basics::raw_commands::try_sql;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use seckill::store::mysql::migrate;
use tokio::sync::OnceCell;

/// The statements that make every table, and say which migrations have run.
static TABLES: OnceCell<String> = OnceCell::const_new();

/// Makes the database that `url` names, with the schema. One that is there is brought up to date and keeps its rows.
pub async fn make(url: &str) {
    let mut first = false;
    let tables = TABLES
        .get_or_init(|| async {
            first = true;
            migrate::migrate(url).await.expect("migrations");
            copied(url).await
        })
        .await;
    if first {
        return;
    }
    let (server, name) = url.rsplit_once('/').expect("a database in the URL");
    let make = format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; USE `{name}`; {tables}");
    if try_sql(&format!("{server}/"), &make).await.is_err() {
        migrate::migrate(url).await.expect("migrations");
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text, column_name = "Create Table")]
    statement: String,
}

async fn copied(url: &str) -> String {
    let mut connection = AsyncMysqlConnection::establish(url).await.expect("the database");
    let names = "SELECT table_name AS line FROM information_schema.tables WHERE table_schema = DATABASE()";
    let names: Vec<Line> = diesel::sql_query(names).load(&mut connection).await.expect("tables");
    // Tables refer to one another.
    let mut text = "SET foreign_key_checks = 0; ".to_owned();
    for Line { line } in names {
        let show = format!("SHOW CREATE TABLE `{line}`");
        let table: Table = diesel::sql_query(show).get_result(&mut connection).await.expect("a table");
        text.push_str(&table.statement);
        text.push_str("; ");
    }
    let done = "SELECT version AS line FROM __diesel_schema_migrations";
    let done: Vec<Line> = diesel::sql_query(done).load(&mut connection).await.expect("migrations");
    for Line { line } in done {
        text.push_str(&format!("INSERT INTO __diesel_schema_migrations (version) VALUES ('{line}'); "));
    }
    text + "SET foreign_key_checks = 1"
}
