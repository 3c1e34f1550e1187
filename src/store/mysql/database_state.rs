//! What a server of the database is at this moment: whether it takes writes, and whether it is a node of Galera that is ready.
//!
//! Input: a connection. Output: its server's state, by its own words. Reads only.

use diesel::QueryResult;
use diesel::sql_types::Text;
use diesel_async::{AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};

/// A server's state. A node of Galera that is not ready answers with error 1047 instead.
pub(crate) struct DatabaseState {
    /// A replica, or a primary that was demoted.
    pub(crate) is_read_only: bool,
    /// A node of a Galera cluster.
    pub(crate) is_galera: bool,
}

#[derive(diesel::QueryableByName)]
struct StateVariable {
    #[diesel(sql_type = Text, column_name = "Variable_name")]
    name: String,
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

/// `super_read_only` (MySQL) implies `read_only`. A node that is not ready permits SHOW.
const STATE: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'innodb_read_only', 'wsrep_on')";

impl DatabaseState {
    pub(crate) async fn of(conn: &mut AsyncMysqlConnection) -> QueryResult<Self> {
        let variables: Vec<StateVariable> = diesel::sql_query(STATE).load(conn).await?;
        // Not "is ON": newer servers have more values than two.
        let is_on = |name: &str| variables.iter().any(|has| has.name == name && has.value != "OFF");
        let is_galera = is_on("wsrep_on");
        if is_galera {
            conn.batch_execute("DO 0").await?;
        }
        Ok(Self { is_read_only: is_on("read_only") || is_on("innodb_read_only"), is_galera })
    }
}
