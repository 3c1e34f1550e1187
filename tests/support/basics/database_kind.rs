//! MariaDB and MySQL: which of the two answers, and statements that both take where the obvious one is of MariaDB only.

use super::time::pause;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{AsyncMysqlConnection, RunQueryDsl};

/// How often a list of connections is asked for.
const LISTED_TIMES_MAX: u32 = 200;

/// Where they differ, and the difference is the subject of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// MariaDB.
    Mariadb,
    /// MySQL.
    Mysql,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

#[derive(QueryableByName)]
struct Status {
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

impl DatabaseKind {
    /// The kind of the server behind this connection.
    pub async fn of(session: &mut AsyncMysqlConnection) -> Self {
        let query = diesel::sql_query("SELECT VERSION() AS version");
        let found: Version = query.get_result(session).await.expect("a version");
        if found.version.contains("MariaDB") { Self::Mariadb } else { Self::Mysql }
    }
}

/// A query with the numbers 0 … `count - 1` in the column `n`, at most 100,000. MariaDB's `seq_…` tables are unknown to MySQL,
/// and both limit the depth of a recursion.
pub fn numbers(count: u32) -> String {
    let ten: Vec<String> = (0..10).map(|digit| format!("SELECT {digit} AS d")).collect();
    format!(
        "WITH ten AS ({}) SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d AS n \
         FROM ten a, ten b, ten c, ten e, ten f HAVING n < {count}",
        ten.join(" UNION ALL ")
    )
}

/// Statements that the server has got since it started.
pub async fn questions(session: &mut AsyncMysqlConnection) -> i64 {
    let query = diesel::sql_query("SHOW GLOBAL STATUS LIKE 'Questions'");
    let found: Status = query.get_result(session).await.expect("a count");
    found.value.parse().expect("a number")
}

/// The ids of the connections that match, the newest last. MySQL refuses the whole list while the statement of any connection, another
/// test's for example, has bytes that are no text: then it is asked again.
pub async fn connection_ids(session: &mut AsyncMysqlConnection, matching: &str) -> Vec<i64> {
    let query =
        format!("SELECT CAST(id AS SIGNED) AS id FROM information_schema.processlist WHERE {matching} ORDER BY id");
    for _ in 0..LISTED_TIMES_MAX {
        match diesel::sql_query(&query).load::<Found>(session).await {
            Ok(found) => return found.into_iter().map(|found| found.id).collect(),
            Err(error) => assert!(error.to_string().contains("Cannot convert string"), "{query}: {error}"),
        }
        pause().await;
    }
    panic!("{query}: there were bytes that are no text each time")
}

/// The connection that runs a statement like this, if there is one.
pub async fn running(session: &mut AsyncMysqlConnection, like: &str) -> Option<i64> {
    connection_ids(session, &format!("info LIKE '{like}'")).await.into_iter().next()
}
