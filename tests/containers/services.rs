//! deploy/compose.yaml, run as a project of its own beside whatever else the machine has, and seen from outside.

use crate::engine::{engine, inspected};
use crate::support::processes::command_line::CommandOutput;
use crate::support::world::eventually;
use rand::Rng;
use rand::distr::Alphanumeric;
use seckill::dev::ports::free_port;
use std::process::Command;

/// The project; a user's own is called `seckill`.
const PROJECT: &str = "seckill-test";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/compose.yaml");

/// The roles, and the servers they need.
pub const ROLES: [&str; 4] = ["api", "relay", "consumer", "reconcile"];
pub const SERVERS: [&str; 3] = ["redis", "rabbitmq", "mariadb"];

/// The services of the file, with secrets of their own. They go away, data and all, with the value.
pub struct Services {
    env: Vec<(&'static str, String)>,
    /// What access tokens are signed with.
    pub access_secret: String,
    /// The buyers' port.
    pub api: String,
    /// The operators' port.
    pub admin: String,
    /// Its token.
    pub admin_token: String,
}

fn secret() -> String {
    rand::rng().sample_iter(&Alphanumeric).take(40).map(char::from).collect()
}

impl Services {
    /// Nothing of them runs yet, and nothing is left of another run.
    pub fn new() -> Self {
        let ports = [free_port().expect("a port"), free_port().expect("a port")];
        let (access_secret, admin_token) = (secret(), secret());
        let env = vec![
            ("SECKILL_ADMIN_TOKEN", admin_token.clone()),
            ("SECKILL_JWT_SECRET", access_secret.clone()),
            ("SECKILL_TOKEN_SECRET", secret()),
            ("SECKILL_DB_PASSWORD", secret()),
            ("SECKILL_MQ_PASSWORD", secret()),
            ("SECKILL_PORT", ports[0].to_string()),
            ("SECKILL_ADMIN_PORT", ports[1].to_string()),
        ];
        let [api, admin] = ports.map(|port| format!("http://127.0.0.1:{port}"));
        let services = Self { env, access_secret, api, admin, admin_token };
        services.compose(&["down", "--volumes"]);
        services
    }

    /// A command of podman-compose or docker compose.
    pub fn compose(&self, args: &[&str]) -> CommandOutput {
        let program = std::env::var("COMPOSE").expect("COMPOSE is not set: run make compose");
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).args(["-p", PROJECT, "-f", FILE]).args(args).envs(self.env.iter().cloned());
        let output = command.output().expect("compose");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Starts everything, and waits until the api sells.
    pub async fn up(&self) {
        self.compose(&["up", "--detach", "--no-build"]).exits(0);
        self.serves().await;
    }

    /// Waits until the api is ready.
    pub async fn serves(&self) {
        let ready = format!("{}/readyz", self.admin);
        eventually("the api is ready", async || {
            reqwest::get(&ready).await.is_ok_and(|answer| answer.status() == 200)
                && reqwest::get(format!("{}/v1/sales", self.api)).await.is_ok_and(|answer| answer.status() == 200)
        })
        .await;
    }

    /// The container of a service.
    pub fn container(&self, service: &str) -> String {
        let project = format!("label=com.docker.compose.project={PROJECT}");
        let service = format!("label=com.docker.compose.service={service}");
        let found = engine(&["ps", "--all", "--quiet", "--filter", &project, "--filter", &service]).exits(0).out;
        found.lines().next().unwrap_or_default().to_owned()
    }

    /// The first process of a service, as the machine sees it; 0 while it does not run.
    pub fn pid(&self, service: &str) -> u32 {
        let container = self.container(service);
        if container.is_empty() { 0 } else { inspected(&container, "{{.State.Pid}}").parse().expect("a pid") }
    }

    /// Runs `seckill` in the container of a role, with the configuration files the role has.
    pub fn seckill(&self, role: &str, args: &[&str]) -> CommandOutput {
        let container = self.container(role);
        let command = inspected(&container, "{{json .Config.Cmd}}");
        let command: Vec<String> = serde_json::from_str(&command).expect("words");
        let files = command.iter().map(String::as_str).take_while(|word| *word != "--role");
        let own: Vec<&str> = ["exec", &container, "/usr/local/bin/seckill"].into_iter().chain(files).collect();
        engine(&[&own[..], args].concat())
    }

    /// What a service has said, its last lines.
    pub fn log(&self, service: &str, lines: &str) -> String {
        let said = engine(&["logs", "--tail", lines, &self.container(service)]);
        said.out + &said.err
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for service in ROLES.into_iter().chain(SERVERS).chain(["migrate"]) {
                eprintln!("--- {service}\n{}", self.log(service, "20"));
            }
        }
        self.compose(&["down", "--volumes"]);
    }
}
