//! The system that a subcommand works on: that of the configuration if it or a server was named, else a running local stack.

use super::failure::Failure;
use super::output;
use crate::config::{Layers, Settings, redacted_urls};
use crate::dev::DevState;
use crate::domain::operator::Actor;
use crate::roles::Servers;
use std::path::Path;
use std::time::Duration;

/// A command gives up on Redis after this time.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest name of an operator, characters; its columns have 64.
const NAME_CHARS_MAX: usize = 64;

/// Settings of the running local stack in `data_dir`, or of the configuration: always where a file or a server's address was
/// given, which is a clear wish. Says on standard error which of them it is.
pub fn settings(layers: &Layers, data_dir: &Path) -> Result<Settings, Failure> {
    let stack = if layers.name_servers() { None } else { DevState::read(data_dir)?.filter(runs) };
    let Some(state) = stack else {
        let settings = Settings::load(layers)?;
        let (redis, mysql) = (settings.redis.url.redacted(), redacted_urls(settings.mysql.urls_in_use()));
        output::remark(&format!("the system of the configuration: {redis}, {mysql}"));
        return Ok(settings);
    };
    output::remark(&format!("the local stack in {}", data_dir.display()));
    let mut files = state.config.clone();
    files.extend(layers.files.iter().cloned());
    let mut set = state.set.clone();
    set.extend([
        format!("redis.url={}", state.redis_url),
        format!("rabbitmq.url={}", state.amqp_url),
        format!("mysql.url={}", state.mysql_url),
        "rabbitmq.urls=".to_owned(),
        "mysql.urls=".to_owned(),
        // The one that signs; beside a list of the stack's layers it would be refused.
        "auth.secrets=".to_owned(),
        format!("auth.secret={}", state.jwt_secret),
        format!("admin.token={}", state.admin_token),
    ]);
    set.extend((!state.pass_secret.is_empty()).then(|| format!("passes.secrets={}", state.pass_secret)));
    set.extend(layers.set.iter().cloned());
    Ok(Settings::load(&Layers { files, set })?)
}

/// A stack that was killed leaves its file behind; its processes are gone then.
fn runs(state: &DevState) -> bool {
    let alive = state.pids.values().any(|pid| Path::new(&format!("/proc/{pid}")).exists());
    if !alive {
        output::remark("dev.json is of a stack that does not run any more, using the configuration instead");
    }
    alive
}

/// Handles on the three servers, with Redis connected.
pub async fn servers(settings: &Settings) -> Result<Servers, Failure> {
    let servers = Servers::new(settings)?;
    if !servers.redis.wait_connected(CONNECT).await {
        return Err(Failure::Failed(format!(
            "redis at {} does not answer; is it running, and is redis.url right?",
            settings.redis.url.redacted()
        )));
    }
    Ok(servers)
}

/// What `--by` said.
static BY: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Remembers `--by` for this run of the program.
pub(super) fn act_as(by: Option<&str>) {
    if let Some(by) = by.map(str::trim).filter(|by| !by.is_empty()) {
        BY.get_or_init(|| by.chars().take(NAME_CHARS_MAX).collect());
    }
}

/// Who is at the terminal, for the record of acts: `--by`, else user@host.
pub(super) fn operator() -> Actor {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user = name.unwrap_or_else(|| "operator".to_owned());
    let host = host.trim();
    // What was typed proves nothing: the account of the shell stays beside it.
    let account = if host.is_empty() { user } else { format!("{user}@{host}") };
    let actor = Actor::at_the_terminal(&account);
    match BY.get() {
        Some(by) => Actor { name: by.clone(), ..actor },
        None => actor,
    }
}
