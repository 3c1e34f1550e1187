//! `seckill doctor`: does every server answer, and does it have the settings that the guarantees need? Reads only.

mod access;
mod addresses;
mod advice;
mod check;
mod clocks;
mod events;
mod keys;
mod machine;
mod mysql;
mod rabbitmq;
mod redis;
mod risk;
mod settings;

use crate::cli::failure::{Failure, INCONSISTENT};
use crate::cli::{context, output};
use crate::config::Layers;
use crate::roles::Servers;
use check::{CheckVerdict, DoctorCheck};
use std::path::Path;
use std::time::Duration;

/// Redis has this long to connect.
const CONNECT: Duration = Duration::from_secs(3);

/// Arguments of `seckill doctor`.
///
/// Checks Redis, RabbitMQ and the database: are they there, which versions, the settings that guarantees depend on, the
/// migrations, the topology, the clocks, how much is waiting, whether the connections are encrypted, and whether the
/// accounts may do what the roles do. Changes nothing.
///
/// Exit code 0: fine (there may be warnings), 2: a guarantee breaks, 1: a server cannot be reached.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, args: &DoctorArgs) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = Servers::new(&settings)?;
    let connected = servers.redis.wait_connected(CONNECT).await;
    let mut checks = access::encryption(&settings);
    checks.push(settings::quiet_time(&settings));
    checks.extend(machine::accept_queue(&settings.http));
    checks.extend(redis::check_redis(&servers.redis, connected, settings.redis.shards).await);
    if answers(&checks, "redis") {
        checks.extend(access::redis(&servers, std::slice::from_ref(&settings.redis.url)).await);
    }
    checks.extend(addresses::rabbitmq(&servers.rabbit).await);
    checks.extend(rabbitmq::check_rabbitmq(&servers.rabbit).await);
    if answers(&checks, "rabbitmq") && passed(&checks, rabbitmq::DECLARED) {
        checks.extend(access::rabbit(&servers, settings.rabbitmq.urls_in_use()).await);
    }
    checks.extend(addresses::mysql(&servers.db).await);
    checks.extend(mysql::check_mysql(&servers.db).await);
    if answers(&checks, "mysql") && passed(&checks, mysql::MIGRATED) {
        checks.extend(access::mysql(&servers, settings.mysql.urls_in_use()).await);
        checks.extend(mysql::ended_sales(&servers.rows.books, settings.p5_reconcile.auto_close_after_s).await);
        checks.push(events::webhooks(&servers.rows.webhooks, &settings).await);
        checks.extend(risk::check_risk(&servers.rows.sales, &settings.risk).await);
    }
    checks.push(events::published(&settings));
    checks.extend(keys::check_keys(&settings).await);
    checks.extend(clocks::check_clocks(&servers).await);
    servers.redis.quit().await;
    let count = |verdict: CheckVerdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (wrong, away, warnings) = (count(CheckVerdict::Wrong), count(CheckVerdict::Away), count(CheckVerdict::Warning));
    if args.json {
        output::json(&serde_json::json!({ "fine": wrong + away == 0, "checks": checks }));
    } else {
        print(&checks);
        output::line(&match (wrong, away, warnings) {
            (0, 0, 0) => "all is well".to_owned(),
            (0, 0, warnings) => format!("fine, with warnings: {warnings}"),
            (wrong, away, warnings) => {
                format!("required settings that are wrong: {wrong}; servers away: {away}; warnings: {warnings}")
            }
        });
    }
    // A wrong setting is certain, also when another server does not answer.
    Ok(if wrong > 0 { INCONSISTENT } else { u8::from(away > 0) })
}

fn answers(checks: &[DoctorCheck], server: &str) -> bool {
    !checks.iter().any(|check| check.server == server && check.verdict == CheckVerdict::Away)
}

fn passed(checks: &[DoctorCheck], name: &str) -> bool {
    checks.iter().any(|check| check.name == name && check.verdict == CheckVerdict::Fine)
}

fn print(checks: &[DoctorCheck]) {
    output::table(
        ["server", "check", "value", "expected", ""],
        checks.iter().map(|check| {
            let value = check.value.chars().take(60).collect();
            [
                check.server.to_owned(),
                check.name.clone(),
                value,
                check.expected.clone(),
                check.verdict.word().to_owned(),
            ]
        }),
    );
    for check in checks.iter().filter(|check| check.verdict != CheckVerdict::Fine) {
        output::line(&format!("{} {}: {}\n  why  {}", check.verdict.word(), check.server, check.headline(), check.why));
        if !check.change.is_empty() {
            output::line(&format!("  do   {}", check.change));
        }
    }
    for note in checks.iter().filter(|check| check.is_note()) {
        output::line(&format!("{} {}: {}\n  run  {}", note.server, note.name, note.why, note.change));
    }
}
