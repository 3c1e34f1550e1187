//! A search over everything that a world keeps: every column of every table, every key of Redis with what it holds, and the MQ DLQ.

use super::World;
use crate::support::basics::resp::{RawRedis, Reply};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use seckill::store::rabbit::browse_dlq;

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    in_table: String,
    #[diesel(sql_type = Text)]
    named: String,
}

#[derive(QueryableByName)]
struct Hits {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Whether a reply of Redis holds a text.
fn holds(reply: &Reply, text: &str) -> bool {
    match reply {
        Reply::Bytes(bytes) => bytes.windows(text.len()).any(|window| window == text.as_bytes()),
        Reply::List(items) => items.iter().any(|item| holds(item, text)),
        Reply::Error(error) => panic!("redis: {error}"),
        Reply::Nil | Reply::Int(_) => false,
    }
}

impl World {
    /// Every table with each of its columns that are texts or bytes.
    pub async fn text_columns(&self) -> Vec<(String, String)> {
        let mut session = self.plain_session().await;
        let columns = "SELECT CAST(table_name AS CHAR) AS in_table, CAST(column_name AS CHAR) AS named FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND data_type NOT LIKE '%int' AND data_type NOT IN ('datetime', 'timestamp') \
             ORDER BY 1, 2";
        let columns: Vec<Column> = diesel::sql_query(columns).load(&mut session).await.expect("columns");
        columns.into_iter().map(|Column { in_table, named }| (in_table, named)).collect()
    }

    async fn plain_session(&self) -> AsyncMysqlConnection {
        AsyncMysqlConnection::establish(self.settings.mysql.url.expose()).await.expect("mysql")
    }

    /// Every place that holds this text: `orders.user_id` with the number of rows, the names of keys, messages.
    pub async fn occurrences(&self, text: &str) -> Vec<String> {
        let mut found = self.occurrences_in_rows(text).await;
        let mut redis = RawRedis::of(self).await;
        for key in redis.keys().await {
            let kind = redis.call(&["TYPE", &key]).await.text();
            let content = match kind.as_str() {
                "hash" => redis.call(&["HGETALL", &key]).await,
                "zset" => redis.call(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]).await,
                "list" => redis.call(&["LRANGE", &key, "0", "-1"]).await,
                "stream" => redis.call(&["XRANGE", &key, "-", "+"]).await,
                "string" => redis.call(&["GET", &key]).await,
                // It has gone since.
                "none" => Reply::Nil,
                other => panic!("{key} is a {other}"),
            };
            if key.contains(text) || holds(&content, text) {
                found.push(format!("redis {key}"));
            }
        }
        let dead = browse_dlq(&self.servers.rabbit, 1_000).await.unwrap_or_default();
        let named = dead.iter().filter(|message| String::from_utf8_lossy(&message.body).contains(text));
        found.extend(named.map(|message| format!("message {:?}", message.message_id)));
        found
    }

    async fn occurrences_in_rows(&self, text: &str) -> Vec<String> {
        let (mut session, mut found) = (self.plain_session().await, Vec::new());
        let hex: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
        for (table, column) in self.text_columns().await {
            let query =
                format!("SELECT COUNT(*) AS n FROM `{table}` WHERE LOCATE(X'{hex}', CAST(`{column}` AS BINARY)) > 0");
            let hits: Hits = diesel::sql_query(&query).get_result(&mut session).await.expect(&query);
            if hits.n > 0 {
                found.push(format!("{table}.{column} {}", hits.n));
            }
        }
        found
    }
}
