//! Which server it is: names, environment variables and packages of the three kinds.

use std::fmt;
use std::time::Duration;

/// Name of the database that a private MariaDB has from the start.
pub(crate) const DATABASE: &str = "seckill";

/// The three kinds of server, in the order they are stopped: the broker first (nothing is delivered any more), the
/// database last (it is the truth).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerKind {
    /// RabbitMQ, a `rabbitmq-server` node.
    Rabbitmq,
    /// Redis, a `redis-server` process.
    Redis,
    /// MariaDB (or MySQL when it is an existing server).
    Mysql,
}

impl ServerKind {
    /// All kinds, in stop order.
    pub const ALL: [Self; 3] = [Self::Rabbitmq, Self::Redis, Self::Mysql];

    /// Name in folders, messages and `dev.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rabbitmq => "rabbitmq",
            Self::Redis => "redis",
            Self::Mysql => "mysql",
        }
    }

    /// Environment variable that points at an existing server instead.
    #[must_use]
    pub(crate) const fn url_variable(self) -> &'static str {
        match self {
            Self::Rabbitmq => "SECKILL_AMQP_URL",
            Self::Redis => "SECKILL_REDIS_URL",
            Self::Mysql => "SECKILL_MYSQL_URL",
        }
    }

    /// Debian package that installs it.
    #[must_use]
    pub(crate) const fn debian_package(self) -> &'static str {
        match self {
            Self::Rabbitmq => "rabbitmq-server",
            Self::Redis => "redis-server",
            Self::Mysql => "mariadb-server",
        }
    }

    /// How long SIGTERM may take before SIGKILL follows.
    pub(super) const fn stop_timeout(self) -> Duration {
        match self {
            Self::Redis => Duration::from_secs(10),
            Self::Rabbitmq | Self::Mysql => Duration::from_secs(30),
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
