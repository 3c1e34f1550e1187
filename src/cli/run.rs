//! Running roles, and the small subcommands `migrate` and `config`.

use super::failure::Failure;
use super::{context, output};
use crate::admin::{self, Admin};
use crate::config::{Layers, Settings, reference};
use crate::roles::{self, ApiOptions, Role, RoleError, Servers};
use crate::runtime::Stopper;
use crate::store::mysql::DatabaseAddress;
use crate::store::mysql::migrate::migrate as migrate_database;
use crate::store::rabbit::{self, RabbitConfig};
use crate::telemetry;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// `seckill config …`
#[derive(Debug, Clone, Copy, clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Read all layers and say whether they can be used; exit code 64 and the key's name when not
    Check,
    /// Print the settings in effect as TOML, secrets hidden
    Show {
        #[arg(long)]
        json: bool,
    },
    /// Print every setting with default, bounds and meaning as Markdown (docs/configuration.md)
    Reference,
}

pub(super) fn config(layers: &Layers, command: ConfigCommand) -> Result<u8, Failure> {
    if matches!(command, ConfigCommand::Reference) {
        output::line(reference()?.trim_end());
        return Ok(0);
    }
    let settings = Settings::load(layers)?;
    match command {
        ConfigCommand::Reference => {}
        ConfigCommand::Check => output::line("configuration is fine"),
        ConfigCommand::Show { json: true } => output::json(&settings),
        ConfigCommand::Show { json: false } => {
            let text = toml::to_string_pretty(&settings).map_err(|error| Failure::Failed(error.to_string()))?;
            output::line(text.trim_end());
        }
    }
    Ok(0)
}

pub(super) async fn migrate(layers: &Layers, data_dir: &Path) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let applied = migrate_database(DatabaseAddress::new(&settings.mysql).map_err(RoleError::from)?).await?;
    for name in &applied {
        output::line(&format!("applied {name}"));
    }
    output::line(if applied.is_empty() { "the database is up to date" } else { "the database is up to date now" });
    Ok(0)
}

pub(super) async fn topology(layers: &Layers, data_dir: &Path) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let config = RabbitConfig { declare: true, ..roles::rabbit_config(&settings).map_err(RoleError::from)? };
    rabbit::declare(&config).await.map_err(|error| Failure::Failed(error.to_string()))?;
    for queue in rabbit::Topology::new(&config).all_queues() {
        output::line(&queue);
    }
    output::line("the exchanges and queues are there");
    Ok(0)
}

/// Runs roles until a signal.
pub(super) async fn roles(layers: &Layers, roles: &[Role], demo_shop: bool) -> Result<u8, Failure> {
    let settings = Arc::new(Settings::load(layers)?);
    let roles = if roles.is_empty() { Role::ALL.to_vec() } else { roles.to_vec() };
    telemetry::init_logs(&settings.log).map_err(Failure::Usage)?;
    telemetry::log_panics();
    telemetry::init_metrics();
    let stopper = Stopper::new();
    on_signal(stopper.clone())?;
    tracing::info!(version = crate::build_info::version(), "starting");
    let listener = roles::bind("admin.listen", &settings.admin.listen)?;
    tracing::info!(address = %settings.admin.listen, "admin: /console/ /livez /readyz /metrics");
    let running = roles::start(&settings, &roles, ApiOptions { public_port: None, demo_shop }, &stopper)?;
    let admin = Admin::new(&settings, &Servers::new(&settings)?, &roles, &stopper);
    let admin = admin.with_keys(running.key_health.clone());
    // It answers probes until the roles have drained, then it goes with the process.
    let admin = admin::serve(admin, listener, Stopper::new())?;
    tokio::spawn(admin);
    if let Some(api) = running.api {
        tracing::info!(address = %api, "public api");
    }
    running.until_stopped(Duration::from_millis(settings.runtime.drain_ms)).await?;
    tracing::info!("stopped");
    Ok(0)
}

/// Pulls the stopper on SIGINT, SIGTERM or SIGHUP; a second SIGINT or SIGTERM ends the process at once.
pub fn on_signal(stopper: Stopper) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // A terminal that closes may send several, and a supervisor one right behind SIGTERM: none of them hurries.
    let mut hangup = if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
    tokio::spawn(async move {
        let mut signals = 0;
        while signals < 2 {
            let hung_up = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = interrupt.recv() => signals += 1,
                _ = terminate.recv() => signals += 1,
                _ = hung_up => {}
            }
            stopper.stop();
        }
        // 128 + SIGINT, as in a shell.
        std::process::exit(130);
    });
    Ok(())
}

/// `nohup` and supervisors start programs that are to survive a hangup; a handler would take that back.
fn hangup_is_ignored() -> bool {
    // SAFETY: asks for the disposition and changes nothing; all zeros are a valid sigaction.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
