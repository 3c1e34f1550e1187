//! Encryption of the connections, and rights of the accounts: those that are missing, and those that are too many.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::{ServerUrl, Settings};
use crate::roles::Servers;
use crate::store::mysql::rights;
use crate::store::rabbit::refused_rights;

const ACCOUNTS: &str = "give it what docs/operations.md, Accounts, lists";

/// Whether each connection is encrypted; a plain one that stays on this machine is fine.
pub(super) fn encryption(settings: &Settings) -> Vec<DoctorCheck> {
    let check = |(server, urls, change): (&'static str, &[ServerUrl], &str)| {
        let encrypted = urls.iter().all(ServerUrl::is_encrypted);
        let leaves = urls.iter().any(ServerUrl::leaves_the_machine);
        let value = match (encrypted, leaves) {
            (true, _) => "encrypted, the server's name verified",
            (false, true) => "plain",
            (false, false) => "plain, on this machine",
        };
        DoctorCheck::new(server, "connection", value, "encrypted").judged(
            encrypted || !leaves,
            CheckVerdict::Warning,
            "passwords, orders and tokens can be read and changed on the way",
            change,
        )
    };
    let redis = std::slice::from_ref(&settings.redis.url);
    let (rabbitmq, mysql) = (settings.rabbitmq.urls_in_use(), settings.mysql.urls_in_use());
    let urls = [
        ("redis", redis, "write redis.url with rediss://, and its CA in redis.tls_ca_file"),
        ("rabbitmq", rabbitmq, "write rabbitmq.url with amqps://, and its CA in rabbitmq.tls_ca_file"),
        ("mysql", mysql, "write mysql.url with mysqls://, and its CA in mysql.tls_ca_file"),
    ];
    urls.into_iter().map(check).collect()
}

/// With an account that may do everything a stolen password opens everything. On one's own machine such an account is usual.
fn too_many(server: &'static str, account: &str, everything: bool, urls: &[ServerUrl]) -> DoctorCheck {
    let value = if everything { format!("{account}, which may do everything") } else { account.to_owned() };
    DoctorCheck::new(server, "account", value, "one of its own with few rights").judged(
        !everything || !urls.iter().any(ServerUrl::leaves_the_machine),
        CheckVerdict::Warning,
        "with a stolen password of it everything can be done to the server",
        "make the account that docs/operations.md, Accounts, lists",
    )
}

fn missing(server: &'static str, refused: &[String]) -> DoctorCheck {
    let value =
        if refused.is_empty() { "all that are needed".to_owned() } else { format!("missing: {}", refused.join("; ")) };
    DoctorCheck::new(server, "rights of the account", value, "all that are needed").judged(
        refused.is_empty(),
        CheckVerdict::Wrong,
        "roles would stop in the middle of their work",
        ACCOUNTS,
    )
}

fn user_of(urls: &[ServerUrl], otherwise: &str) -> String {
    urls.iter().map(ServerUrl::user).find(|user| !user.is_empty()).unwrap_or_else(|| otherwise.to_owned())
}

/// Of a server that answered.
pub(super) async fn redis(servers: &Servers, urls: &[ServerUrl]) -> Vec<DoctorCheck> {
    let user = user_of(urls, "default");
    match servers.redis.health.refused_rights().await {
        Ok(refused) => vec![too_many("redis", &user, user == "default", urls), missing("redis", &refused)],
        Err(error) => vec![DoctorCheck::away("redis", &error)],
    }
}

/// The same of the broker, once everything is declared.
pub(super) async fn rabbit(servers: &Servers, urls: &[ServerUrl]) -> Vec<DoctorCheck> {
    let user = user_of(urls, "guest");
    match refused_rights(&servers.rabbit).await {
        Ok(refused) => vec![too_many("rabbitmq", &user, user == "guest", urls), missing("rabbitmq", &refused)],
        Err(error) => vec![DoctorCheck::away("rabbitmq", &error)],
    }
}

/// The same of the database, once its tables are there.
pub(super) async fn mysql(servers: &Servers, urls: &[ServerUrl]) -> Vec<DoctorCheck> {
    match rights::rights(&servers.db).await {
        Ok(rights) => {
            vec![too_many("mysql", &rights.account, rights.everywhere, urls), missing("mysql", &rights.missing)]
        }
        Err(error) => vec![DoctorCheck::away("mysql", &error)],
    }
}
