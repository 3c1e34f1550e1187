//! What the started servers say they are, for the records that `docs/compatibility.md` is made from (`scripts/record-run.py`).
//!
//! Output: the file that `TEST_SERVERS` names; without the variable nothing.

use crate::support::basics::raw_commands::try_redis;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use seckill::dev::ServerUrls;
use seckill::store::rabbit::{RabbitConfig, broker_info};

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

/// Valkey calls itself Redis 7.2.4 beside its own name, for clients that know no other.
async fn redis(url: &str) -> String {
    let info = try_redis(url, &["INFO", "server"]).await.expect("INFO");
    let lines = info.as_str().expect("text").lines();
    let field = |name: &str| lines.clone().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    match field("valkey_version") {
        Some(version) => format!("Valkey {version}"),
        None => format!("Redis {}", field("redis_version").expect("a version")),
    }
}

async fn database(url: &str) -> String {
    let mut session = AsyncMysqlConnection::establish(url).await.expect("the database");
    let query = diesel::sql_query("SELECT VERSION() AS version");
    let Version { version } = query.get_result(&mut session).await.expect("a version");
    let name = if version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
    format!("{name} {}", version.split('-').next().expect("a number"))
}

/// Writes down the servers that this test binary has started.
pub async fn note(urls: &ServerUrls) {
    let Some(file) = std::env::var_os("TEST_SERVERS") else { return };
    let broker = broker_info(&RabbitConfig::new(&urls.amqp_url)).await.expect("the broker");
    let found = serde_json::json!({
        "redis": redis(&urls.redis_url).await,
        "rabbitmq": format!("{} {}", broker.product, broker.version),
        "database": database(&urls.mysql_url).await,
    });
    std::fs::write(file, found.to_string()).expect("written");
}
