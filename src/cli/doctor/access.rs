//! Who listens on the way, and what the accounts may do: encryption, rights that are missing, rights that are too many.

use super::look::{Line, Verdict};
use crate::config::{ServerUrl, Settings};
use crate::roles::Servers;
use crate::store::mysql::rights;
use crate::store::rabbit::refused_rights;

const ACCOUNTS: &str = "give it what docs/operations.md, Accounts, lists";

/// Whether each connection is encrypted; a plain one that stays on this machine is fine.
pub(super) fn encryption(settings: &Settings) -> Vec<Line> {
    let line = |(server, url, change): (&'static str, &ServerUrl, &str)| {
        let value = match (url.is_encrypted(), url.leaves_the_machine()) {
            (true, _) => "encrypted, the server's name verified",
            (false, true) => "plain",
            (false, false) => "plain, on this machine",
        };
        Line::new(server, "connection", value, "encrypted").judged(
            url.is_encrypted() || !url.leaves_the_machine(),
            Verdict::Warning,
            "passwords, orders and tokens can be read and changed on the way",
            change,
        )
    };
    let urls = [
        ("redis", &settings.redis.url, "write redis.url with rediss://, and its CA in redis.tls_ca_file"),
        ("rabbitmq", &settings.rabbitmq.url, "write rabbitmq.url with amqps://, and its CA in rabbitmq.tls_ca_file"),
        ("mysql", &settings.mysql.url, "write mysql.url with mysqls://, and its CA in mysql.tls_ca_file"),
    ];
    urls.into_iter().map(line).collect()
}

/// An account that may do everything can be used for everything by whoever gets hold of it. On one's own machine it is usual.
fn too_many(server: &'static str, account: &str, everything: bool, url: &ServerUrl) -> Line {
    let value = if everything { format!("{account}, which may do everything") } else { account.to_owned() };
    Line::new(server, "account", value, "one of its own with few rights").judged(
        !everything || !url.leaves_the_machine(),
        Verdict::Warning,
        "whoever gets hold of its password can do everything to the server",
        "make the account that docs/operations.md, Accounts, lists",
    )
}

fn missing(server: &'static str, refused: &[String]) -> Line {
    let value =
        if refused.is_empty() { "all that are needed".to_owned() } else { format!("missing: {}", refused.join("; ")) };
    Line::new(server, "rights of the account", value, "all that are needed").judged(
        refused.is_empty(),
        Verdict::Wrong,
        "roles would stop in the middle of their work",
        ACCOUNTS,
    )
}

/// Of a server that answered.
pub(super) async fn redis(servers: &Servers, url: &ServerUrl) -> Vec<Line> {
    let user = if url.user().is_empty() { "default" } else { url.user() };
    match servers.redis.health.refused_rights().await {
        Ok(refused) => vec![too_many("redis", user, user == "default", url), missing("redis", &refused)],
        Err(away) => vec![Line::away("redis", &away)],
    }
}

/// The same of the broker, once everything is declared.
pub(super) async fn rabbit(servers: &Servers, url: &ServerUrl) -> Vec<Line> {
    let user = if url.user().is_empty() { "guest" } else { url.user() };
    match refused_rights(&servers.rabbit).await {
        Ok(refused) => vec![too_many("rabbitmq", user, user == "guest", url), missing("rabbitmq", &refused)],
        Err(away) => vec![Line::away("rabbitmq", &away)],
    }
}

/// The same of the database, once its tables are there.
pub(super) async fn mysql(servers: &Servers, url: &ServerUrl) -> Vec<Line> {
    match rights::rights(&servers.db).await {
        Ok(rights) => {
            vec![too_many("mysql", &rights.account, rights.everywhere, url), missing("mysql", &rights.missing)]
        }
        Err(away) => vec![Line::away("mysql", &away)],
    }
}
