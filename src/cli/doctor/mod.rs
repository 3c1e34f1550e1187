//! `seckill doctor`: is every server there, and is it set the way the guarantees need it? Reads only.

mod access;
mod advice;
mod ended;
mod look;

use super::{Failure, INCONSISTENT, context, output};
use crate::config::Layers;
use crate::roles::Servers;
use look::{Line, Verdict};
use std::path::Path;
use std::time::Duration;

/// Redis has this long to connect.
const CONNECT: Duration = Duration::from_secs(3);

/// `seckill doctor`
///
/// Looks at Redis, RabbitMQ and the database: are they there, which versions, the settings that guarantees depend on, the
/// migrations, the topology, the clocks, how much is waiting, whether the connections are encrypted, and whether the
/// accounts may do what the roles do. Changes nothing.
///
/// Exit code 0: fine (there may be warnings), 2: a guarantee breaks, 1: a server cannot be reached.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, args: &Args) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let servers = Servers::new(&settings)?;
    let connected = servers.redis.wait_connected(CONNECT).await;
    let mut lines = access::encryption(&settings);
    lines.extend(look::redis(&servers.redis, connected, settings.redis.shards).await);
    if answers(&lines, "redis") {
        lines.extend(access::redis(&servers, &settings.redis.url).await);
    }
    lines.extend(look::rabbit(&servers.rabbit).await);
    if answers(&lines, "rabbitmq")
        && lines.iter().any(|line| line.name == look::DECLARED && line.verdict == Verdict::Fine)
    {
        lines.extend(access::rabbit(&servers, &settings.rabbitmq.url).await);
    }
    lines.extend(look::mysql(&servers.db).await);
    if answers(&lines, "mysql") && lines.iter().any(|line| line.name == look::MIGRATED && line.verdict == Verdict::Fine)
    {
        lines.extend(access::mysql(&servers, &settings.mysql.url).await);
        lines.extend(ended::sales(&servers.db).await);
    }
    lines.extend(look::clocks(&servers).await);
    servers.redis.quit().await;
    let count = |verdict: Verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let (wrong, away, warnings) = (count(Verdict::Wrong), count(Verdict::Away), count(Verdict::Warning));
    if args.json {
        output::json(&serde_json::json!({ "fine": wrong + away == 0, "checks": lines }));
    } else {
        print(&lines);
        output::line(&match (wrong, away, warnings) {
            (0, 0, 0) => "all is well".to_owned(),
            (0, 0, warnings) => format!("fine, with warnings: {warnings}"),
            (wrong, away, warnings) => {
                format!("required settings that are wrong: {wrong}; servers away: {away}; warnings: {warnings}")
            }
        });
    }
    // What is wrong is certain, whatever else could not be asked.
    Ok(if wrong > 0 { INCONSISTENT } else { u8::from(away > 0) })
}

fn answers(lines: &[Line], server: &str) -> bool {
    !lines.iter().any(|line| line.server == server && line.verdict == Verdict::Away)
}

fn print(lines: &[Line]) {
    output::table(
        ["server", "check", "value", "expected", ""],
        lines.iter().map(|line| {
            let value = line.value.chars().take(60).collect();
            [line.server.to_owned(), line.name.clone(), value, line.expected.clone(), line.verdict.word().to_owned()]
        }),
    );
    for line in lines.iter().filter(|line| line.verdict != Verdict::Fine) {
        output::line(&format!("{} {}: {}\n  why  {}", line.verdict.word(), line.server, line.headline(), line.why));
        if !line.change.is_empty() {
            output::line(&format!("  do   {}", line.change));
        }
    }
}
