//! The hosts of an environment's servers, as its roles see them: each can vanish.

use crate::vanishing_host::VanishingHost;
use seckill::cli::Failure;
use seckill::dev::{PrivateServers, ServerKind, ServerUrls};
use std::collections::BTreeMap;

/// A host a server, by kind.
pub(super) struct Hosts(BTreeMap<ServerKind, OneHost>);

struct OneHost {
    host: VanishingHost,
    /// The server's own port.
    direct: u16,
}

impl Hosts {
    /// In front of each private server.
    pub async fn before(servers: &PrivateServers) -> Result<Self, Failure> {
        let mut hosts = BTreeMap::new();
        for kind in ServerKind::ALL {
            if let Some(direct) = servers.port(kind) {
                hosts.insert(kind, OneHost { host: VanishingHost::before(direct).await?, direct });
            }
        }
        Ok(Self(hosts))
    }

    /// The addresses through them.
    pub fn urls(&self, direct: ServerUrls) -> ServerUrls {
        let through = |kind, url: String| match self.0.get(&kind) {
            Some(OneHost { host, direct }) => url.replace(&format!(":{direct}"), &format!(":{}", host.port())),
            None => url,
        };
        ServerUrls {
            redis_url: through(ServerKind::Redis, direct.redis_url),
            amqp_url: through(ServerKind::Rabbitmq, direct.amqp_url),
            // The driver would go past it, by the socket file that a server on this machine has.
            mysql_url: format!("{}?prefer_socket=false", through(ServerKind::Mysql, direct.mysql_url)),
        }
    }

    /// That of `kind` vanishes; `false` when there is none.
    pub fn vanish(&self, kind: ServerKind) -> bool {
        self.0.get(&kind).map(|one| one.host.vanish()).is_some()
    }
}
