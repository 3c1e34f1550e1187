//! The servers that all worlds share, and each world's own place on them: a virtual host, a database and keys that go with it.

use super::servers_started;
use crate::support::basics::raw_commands::try_sql;
use crate::support::basics::resp::RawRedis;
use crate::support::basics::time::after;
use crate::support::processes::programs::scratch;
use seckill::dev::PrivateServers;
use tokio::sync::OnceCell;

static SHARED: OnceCell<PrivateServers> = OnceCell::const_new();

/// Metrics, and logs when `TEST_LOG` asks for them.
pub fn init_telemetry() {
    seckill::telemetry::init_metrics();
    if let Ok(level) = std::env::var("TEST_LOG") {
        let log = seckill::config::Log { level, format: seckill::config::LogFormat::Text };
        seckill::telemetry::init_logs(&log).expect("TEST_LOG is a filter");
    }
}

/// The servers that all worlds share; no test harms them.
pub async fn shared() -> &'static PrivateServers {
    SHARED
        .get_or_init(|| async {
            init_telemetry();
            let dir = scratch("servers");
            std::fs::remove_dir_all(&dir).ok();
            let servers = PrivateServers::start(&dir, &|_progress| {}).await.expect("private servers");
            servers_started::note(&servers.urls()).await;
            servers
        })
        .await
}

/// Whether this is the Redis that all worlds share.
pub fn is_shared_redis(url: &str) -> bool {
    SHARED.get().is_some_and(|servers| servers.urls().redis_url == url)
}

/// A virtual host, a database and keys of one name on the shared servers; all go with the value.
pub struct Tenant {
    /// The name of both.
    pub name: String,
    /// Where the virtual host is.
    pub amqp_url: String,
    /// Where the database is, or will be.
    pub mysql_url: String,
}

impl Tenant {
    /// The tenant of this name; a test that needs its database creates it.
    pub async fn new(name: &str) -> Self {
        let shared = shared().await;
        shared.add_vhost(name).await.expect("a virtual host");
        let urls = shared.urls();
        Self {
            name: name.to_owned(),
            amqp_url: urls.amqp_url.replace("%2f", name),
            mysql_url: urls.mysql_url.replace("/seckill", &format!("/{name}")),
        }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let name = std::mem::take(&mut self.name);
        after(async move {
            let shared = shared().await;
            // A test that failed early has no database yet.
            let drop_database = format!("DROP DATABASE IF EXISTS `{name}`");
            let database = try_sql(&shared.urls().mysql_url, &drop_database).await.map_err(|error| error.to_string());
            let vhost = shared.remove_vhost(&name).await.map_err(|error| error.to_string());
            // What a world with a Redis of its own has there goes with that.
            RawRedis::at(&shared.urls().redis_url, &name).await.clear().await;
            if let Err(error) = database.and(vhost) {
                eprintln!("{name} is not cleared away: {error}");
            }
        });
    }
}
