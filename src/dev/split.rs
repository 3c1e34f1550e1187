//! Every role as a process of its own, as in production; one that dies is started again.

use super::stack_plan::{StackError, StackListeners, StackPlan, has_shop};
use super::{Child, DevError, DevState, ports::free_port};
use crate::config::{Layers, Settings, exposed_urls};
use crate::roles::Role;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The role processes.
pub(super) struct Split {
    children: Vec<RoleProcess>,
}

/// A role as a process of its own. Dropping it kills it.
#[derive(Debug)]
pub struct RoleProcess {
    role: Role,
    child: Child,
    plan: RolePlan,
}

/// Where a role process listens.
#[derive(Debug, Clone)]
pub struct Listen {
    /// `http.listen`; used by the api role only.
    pub public: String,
    /// Address of the operators' API, `admin.listen`.
    pub admin: String,
    /// Whether the api role serves the demo shop.
    pub shop: bool,
}

/// How to start a role, again and again.
#[derive(Debug)]
struct RolePlan {
    role: Role,
    program: PathBuf,
    args: Vec<String>,
    environment: Vec<(&'static str, String)>,
    log: PathBuf,
}

impl RoleProcess {
    /// Starts `role` of `program`, which is `seckill`. `layers` go to its command line, addresses and secrets of `settings` to its
    /// environment; its log is `<dir>/<role>.log`. Returns at once: poll its `/readyz`.
    pub async fn start(
        role: Role,
        program: &Path,
        (layers, settings): (&Layers, &Settings),
        listen: &Listen,
        dir: &Path,
    ) -> Result<Self, DevError> {
        let plan = RolePlan {
            role,
            program: program.to_owned(),
            args: args(layers, role, listen),
            environment: environment(settings),
            log: dir.join(format!("{}.log", role.name())),
        };
        Ok(Self { role, child: plan.spawn().await?, plan })
    }

    /// Its process id; another one after a restart.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// kill -9, and a new process in its place at once; it is not ready yet.
    pub async fn kill_and_restart(&mut self) -> Result<(), DevError> {
        self.child.kill().await?;
        self.child = self.plan.spawn().await?;
        Ok(())
    }

    /// SIGTERM, and SIGKILL when it still runs after `drain`.
    pub async fn stop(mut self, drain: Duration) -> Result<(), DevError> {
        self.child.terminate(drain).await.map(|_status| ())
    }
}

impl Split {
    /// Starts one process a role. The listeners only reserve their ports until the processes bind them.
    pub(super) async fn start(
        plan: &StackPlan,
        settings: &Settings,
        listeners: StackListeners,
        state: &mut DevState,
    ) -> Result<Self, StackError> {
        let unready = |error: std::io::Error| StackError::NotReady(error.to_string());
        let (public_address, admin_address) =
            (listeners.public.address().map_err(unready)?, listeners.admin.local_addr().map_err(unready)?);
        drop(listeners);
        state.api = format!("http://{public_address}");
        state.admin = format!("http://{admin_address}");
        let program = std::env::current_exe().map_err(unready)?;
        let mut children = Vec::new();
        for role in Role::ALL {
            let admin = match role {
                Role::Api => admin_address.to_string(),
                Role::Relay | Role::Consumer | Role::Reconcile => format!("127.0.0.1:{}", free_port()?),
            };
            state.admins.insert(role.name().to_owned(), format!("http://{admin}"));
            let listen = Listen { public: public_address.to_string(), admin, shop: has_shop(settings) };
            children.push(RoleProcess::start(role, &program, (&plan.layers, settings), &listen, &plan.dir).await?);
        }
        Ok(Self { children })
    }

    /// Process ids by role.
    pub(super) fn pids(&self) -> impl Iterator<Item = (String, u32)> {
        self.children.iter().map(|process| (process.role.name().to_owned(), process.child.pid()))
    }

    /// An error when one of them has ended.
    pub(super) fn must_run(&mut self) -> Result<(), DevError> {
        self.children.iter_mut().try_for_each(|process| process.child.must_run())
    }

    /// Starts dead roles again; whether any was dead.
    pub(super) async fn restart_dead(&mut self) -> Result<bool, DevError> {
        let mut restarted = false;
        for process in &mut self.children {
            if !process.child.is_alive() {
                tracing::warn!(role = process.role.name(), "died and is started again");
                process.child = process.plan.spawn().await?;
                restarted = true;
            }
        }
        Ok(restarted)
    }

    /// Stops all roles at once, with time to drain.
    pub(super) async fn stop(mut self, drain: Duration) {
        let stopping = self.children.iter_mut().map(|process| process.child.terminate(drain + Duration::from_secs(2)));
        for stopped in futures::future::join_all(stopping).await {
            if let Err(error) = stopped {
                tracing::warn!(%error, "a role did not stop in order");
            }
        }
    }
}

impl RolePlan {
    async fn spawn(&self) -> Result<Child, DevError> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.environment.iter().map(|(name, value)| (name, value)));
        Child::spawn(self.role.name(), command, &self.log).await
    }
}

fn args(layers: &Layers, role: Role, listen: &Listen) -> Vec<String> {
    let mut args = Vec::new();
    for file in &layers.files {
        args.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let addresses = [format!("http.listen={}", listen.public), format!("admin.listen={}", listen.admin)];
    for set in layers.set.iter().chain(&addresses) {
        args.extend(["--set".to_owned(), set.clone()]);
    }
    args.extend(["--role".to_owned(), role.name().to_owned()]);
    if listen.shop && role == Role::Api {
        args.push("--demo-shop".to_owned());
    }
    args
}

/// Addresses and secrets of `settings` for a child's environment: a command line can be read by everyone on the machine. Lists of
/// secrets are the user's own and reach it as they were given, by file, environment or flag.
#[must_use]
pub fn environment(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("SECKILL_REDIS_URL", settings.redis.url.expose().to_owned()),
        ("SECKILL_AMQP_URL", exposed_urls(settings.rabbitmq.urls_in_use())),
        ("SECKILL_MYSQL_URL", exposed_urls(settings.mysql.urls_in_use())),
        ("SECKILL__AUTH__SECRET", settings.auth.secret.expose().to_owned()),
        ("SECKILL__ADMIN__TOKEN", settings.admin.token.expose().to_owned()),
        ("SECKILL__P1_ENTRY__TOKEN_SECRET", settings.p1_entry.token_secret.expose().to_owned()),
    ];
    // One is the stack's own, or the same again. A text with a comma would be two.
    if let [secret] = settings.passes.secrets.all()
        && !secret.expose().contains(',')
    {
        all.push(("SECKILL__PASSES__SECRETS", secret.expose().to_owned()));
    }
    all
}
