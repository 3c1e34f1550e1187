//! The deployment of a run: private servers, every role as processes of their own, and a proxy on every link.
//!
//! Deployments run beside each other: most of a run is waiting. Its folder goes when the run was green and stays when it was not.

mod commands;
mod options;
mod tests;

pub use options::Options;

use crate::files::empty;
use crate::process::{Links, Process, Recipe};
use crate::raw_commands::try_sql;
use crate::support::links::link::Link;
use crate::time::{QUICK, pause};
use crate::traces::Tries;
use options::LASTING;
use seckill::dev::rabbitmq::RabbitPorts;
use seckill::dev::{Server, ServerKind, mariadb, ports::free_port, rabbitmq, redis};
use seckill::roles::Role;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Key prefix of everything.
pub const PREFIX: &str = "chaos";
/// The database account of the role processes: without the rights that would let it write to a read-only server.
pub const DB_USER: &str = "seckill";
/// Longest wait for everything to be well again. A slow machine that starts several deployments needs minutes.
const READY: Duration = Duration::from_secs(300);

/// Addresses of the servers, past every proxy.
#[derive(Debug, Clone)]
pub struct Urls {
    /// `redis://…`
    pub redis: String,
    /// `amqp://…`
    pub amqp: String,
    /// `mysql://…`
    pub mysql: String,
}

/// The folder for the lines of a run's processes.
fn traces_in(dir: &Path) -> PathBuf {
    let traces = dir.join("traces");
    std::fs::create_dir_all(&traces).expect("a folder");
    traces
}

/// How often the processes try, for the model that their lines are held against.
fn tries(set: &[String]) -> Tries {
    let of = |key: &str| {
        let last = set.iter().rev().find_map(|set| set.strip_prefix(key)).expect("among the settings");
        last.parse().expect("a number")
    };
    Tries { entry: of("p3_relay.attempts_max="), message: of("p4_persist.attempts_max=") }
}

/// Servers, processes and links of one run.
pub struct Deployment {
    /// Every role process.
    pub processes: Vec<Arc<Process>>,
    redis: Mutex<Server>,
    rabbit: Mutex<Server>,
    mysql: Mutex<Server>,
    rabbit_ports: RabbitPorts,
    urls: Urls,
    set: Vec<String>,
    dir: PathBuf,
    traces: Option<PathBuf>,
    supervisors: JoinSet<()>,
    green: bool,
}

impl Deployment {
    /// Starts everything and waits until it is ready.
    pub async fn start(name: &str, options: Options) -> Self {
        let dir = empty(name);
        let port = || free_port().expect("a port");
        let rabbit_ports = RabbitPorts { amqp: port(), dist: port() };
        let (redis, rabbit, mysql) = (dir.join("redis"), dir.join("rabbitmq"), dir.join("mysql"));
        let (redis, rabbit, mysql) = tokio::try_join!(
            redis::start(&redis, port()),
            rabbitmq::start(&rabbit, rabbit_ports),
            mariadb::start(&mysql, port())
        )
        .expect("private servers");
        let urls = Urls { redis: redis.url(), amqp: rabbit.url(), mysql: mysql.url() };
        let mut deployment = Self {
            processes: Vec::new(),
            redis: Mutex::new(redis),
            rabbit: Mutex::new(rabbit),
            mysql: Mutex::new(mysql),
            rabbit_ports,
            urls,
            set: Vec::new(),
            traces: options.traced.then(|| traces_in(&dir)),
            dir,
            supervisors: JoinSet::new(),
            green: false,
        };
        deployment.set = QUICK.into_iter().chain(LASTING).map(str::to_owned).collect();
        deployment.set.extend([format!("redis.prefix={PREFIX}"), format!("rabbitmq.prefix={PREFIX}")]);
        deployment.set.extend(options.set.iter().cloned());
        if let Some(traces) = &deployment.traces {
            tries(&deployment.set).write(traces).expect("a file");
        }
        deployment.must_call(&["migrate"]).await;
        let account = format!(
            "CREATE USER '{DB_USER}'@'127.0.0.1'; GRANT ALL PRIVILEGES ON seckill.* TO '{DB_USER}'@'127.0.0.1'"
        );
        try_sql(&deployment.urls.mysql, &account).await.expect("an account");
        deployment.start_roles(&options).await;
        deployment.wait_ready().await;
        deployment
    }

    async fn start_roles(&mut self, options: &Options) {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(3)).build().expect("a client");
        for role in Role::ALL {
            for index in 0..options.count(role) {
                let process = self.process(role, index, options, &http).await;
                process.want(true);
                self.processes.push(process.clone());
                self.supervisors.spawn(process.supervise(!options.unsupervised.contains(&role)));
            }
        }
    }

    async fn process(&self, role: Role, index: usize, options: &Options, http: &reqwest::Client) -> Arc<Process> {
        let name = format!("{}-{index}", role.name());
        let port = || free_port().expect("a port");
        let (admin_port, public_port) = (port(), if role == Role::Api { port() } else { 0 });
        let server_port = async |kind| self.server(kind).lock().await.port();
        let links = Links {
            redis: Link::before(server_port(ServerKind::Redis).await).await,
            amqp: Link::before(server_port(ServerKind::Rabbitmq).await).await,
            mysql: Link::before(server_port(ServerKind::Mysql).await).await,
            clients: if public_port == 0 { None } else { Some(Link::before(public_port).await) },
        };
        let own = [
            format!("redis.url=redis://127.0.0.1:{}", links.redis.port()),
            format!("rabbitmq.url=amqp://guest:guest@127.0.0.1:{}/%2f", links.amqp.port()),
            // On loopback the client would otherwise ask the server for its socket and go around the proxy.
            format!("mysql.url=mysql://{DB_USER}@127.0.0.1:{}/seckill?prefer_socket=false", links.mysql.port()),
            format!("runtime.node={name}"),
            format!("admin.listen=127.0.0.1:{admin_port}"),
            format!("http.listen=127.0.0.1:{public_port}"),
        ];
        let sets = self.set.iter().chain(&own).flat_map(|set| ["--set".to_owned(), set.clone()]);
        let config = options.file(&self.dir).map(|file| ["--config".to_owned(), file.display().to_string()]);
        let config = config.into_iter().flatten();
        let recipe = Recipe {
            role,
            args: config.chain(sets).chain(["--role".to_owned(), role.name().to_owned()]).collect(),
            env: options.env.iter().filter(|env| env.role == role).cloned().collect(),
            log: self.dir.join(format!("{name}.log")),
            traces: self.traces.clone(),
            name,
            admin_port,
            public_port,
        };
        Process::new(recipe, links, http.clone())
    }

    /// A server. Held only for the moment, or for as long as it is being killed and started.
    pub fn server(&self, kind: ServerKind) -> &Mutex<Server> {
        match kind {
            ServerKind::Redis => &self.redis,
            ServerKind::Rabbitmq => &self.rabbit,
            ServerKind::Mysql => &self.mysql,
        }
    }

    /// Addresses of the servers, past the proxies.
    pub const fn urls(&self) -> &Urls {
        &self.urls
    }

    /// `http://…` of the apis, as buyers reach them: through the proxies.
    pub fn api_urls(&self) -> Vec<String> {
        let links = self.processes.iter().filter_map(|process| process.links.clients.as_ref());
        links.map(|link| format!("http://127.0.0.1:{}", link.port())).collect()
    }

    /// `http://…` of the apis, past the proxies.
    pub fn direct_api_urls(&self) -> Vec<String> {
        self.of(Role::Api).map(|process| format!("http://127.0.0.1:{}", process.recipe.public_port)).collect()
    }

    /// The admin ports of the api processes.
    pub fn admin_urls(&self) -> Vec<String> {
        self.of(Role::Api).map(|process| format!("http://127.0.0.1:{}", process.recipe.admin_port)).collect()
    }

    /// `auth.secret`.
    pub fn secret(&self) -> String {
        let secret = self.set.iter().rev().find_map(|set| set.strip_prefix("auth.secret="));
        secret.expect("among the quick settings").to_owned()
    }

    /// Settings of every process, without its addresses and name.
    pub fn settings(&self) -> &[String] {
        &self.set
    }

    /// The run's folder: data of the servers, a log of each process.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder with the lines of the processes, in a run that is traced.
    pub fn traces(&self) -> Option<&Path> {
        self.traces.as_deref()
    }

    /// The processes of a role.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Arc<Process>> {
        self.processes.iter().filter(move |process| process.recipe.role == role)
    }

    /// kill -9 of a server, and its start on the same data and port; returns when it answers.
    pub async fn kill_and_restart(&self, kind: ServerKind) {
        self.server(kind).lock().await.restart().await.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }

    /// SIGSTOP of a server, until [`Deployment::thaw`].
    pub async fn freeze(&self, kind: ServerKind) {
        self.server(kind).lock().await.pause().expect("a signal to our own child");
    }

    /// SIGCONT of a server.
    pub async fn thaw(&self, kind: ServerKind) {
        self.server(kind).lock().await.resume().expect("a signal to our own child");
    }

    /// Waits until every process that is wanted is ready.
    pub async fn wait_ready(&self) {
        self.ready().await.unwrap_or_else(|unready| panic!("{unready}, see {}", self.dir.display()));
    }

    async fn ready(&self) -> Result<(), String> {
        let deadline = Instant::now() + READY;
        for process in self.processes.iter().filter(|process| process.is_wanted()) {
            while !process.is_ready().await {
                if Instant::now() > deadline {
                    return Err(format!("{} does not get ready", process.name()));
                }
                pause().await;
            }
        }
        Ok(())
    }

    /// Everything passes, everything runs and is ready. What was set in a server stays set; servers keep their data.
    pub async fn heal(&self) {
        self.try_heal().await.unwrap_or_else(|unready| panic!("{unready}, see {}", self.dir.display()));
    }

    /// Like [`Deployment::heal`]; says which process does not get ready.
    pub async fn try_heal(&self) -> Result<(), String> {
        for process in &self.processes {
            process.links.all().for_each(|(_, link)| link.heal());
            process.want(true);
            process.signal(libc::SIGCONT);
        }
        for kind in ServerKind::ALL {
            let mut server = self.server(kind).lock().await;
            server.resume().expect("a signal to our own child");
            if !server.is_alive() {
                server.restart().await.unwrap_or_else(|error| panic!("{kind}: {error}"));
            }
        }
        self.ready().await
    }

    /// The run was green: its folder is not needed any more.
    pub async fn finish(mut self) {
        self.supervisors.abort_all();
        self.processes.iter().for_each(|process| process.kill());
        for kind in ServerKind::ALL {
            self.server(kind).lock().await.kill().await.expect("our own child");
        }
        std::fs::remove_dir_all(&self.dir).expect("no process works in it");
        self.green = true;
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        self.supervisors.abort_all();
        if !self.green {
            eprintln!("the run's folder is kept until the next run: {}", self.dir.display());
        }
    }
}
