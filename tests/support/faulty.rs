//! Real processes of a world that are told to die at a crash point, or to leave a mechanism out (`src/faults.rs`).

use super::procs::{runs, scratch, seckill};
use super::world::{World, eventually};
use seckill::dev::Child;
use seckill::dev::ports::free_port;
use std::process::Command;

/// One process, armed.
pub struct Faulty {
    child: Child,
    /// The public address of an api process.
    pub api: String,
    /// Where it answers `/readyz`.
    pub admin: String,
}

/// What a process has of its own.
#[derive(Default)]
pub struct Own<'a> {
    /// Armed fault points, in the grammar of `FAILPOINTS`.
    pub failpoints: &'a str,
    /// Settings, over those of the world.
    pub sets: &'a [&'a str],
    /// Variables of its environment.
    pub env: Vec<(&'static str, String)>,
}

impl World {
    /// A run of the binary on this world's servers, `armed` in the grammar of `FAILPOINTS`; later settings override.
    fn armed(&self, armed: &str, args: &[&str]) -> Command {
        let s = &self.settings;
        let mut sets: Vec<String> = super::world::QUICK.iter().skip(1).map(|set| (*set).to_owned()).collect();
        sets.extend(self.own_sets());
        sets.extend([
            format!("p5_reconcile.quiet_ms={}", s.p5_reconcile.quiet_ms),
            "p5_reconcile.warm_ahead_ms=0".to_owned(),
        ]);
        let mut all = vec!["--data-dir", "/nonexistent"];
        for set in &sets {
            all.extend(["--set", set.as_str()]);
        }
        all.extend(args);
        let mut command = seckill(&all);
        command.env("FAILPOINTS", armed);
        command
    }

    /// Runs a subcommand to its end; whether it was killed.
    pub fn run_armed(&self, armed: &str, args: &[&str]) -> bool {
        let output = self.armed(armed, args).output().expect("the binary runs");
        output.status.code().is_none()
    }

    /// Starts a role as a process of its own.
    pub async fn start_armed(&self, armed: &str, role: &str) -> Faulty {
        let faulty = self.spawn(role, Own { failpoints: armed, ..Own::default() }).await;
        if role == "api" {
            self.answers(&faulty).await;
        }
        faulty
    }

    /// Waits until an api process answers buyers.
    pub async fn answers(&self, api: &Faulty) {
        let sales = format!("{}/v1/sales", api.api);
        eventually("the api answers", async || self.http.get(&sales).send().await.is_ok()).await;
    }

    /// The same with more of its own, not waiting for anything.
    pub async fn spawn(&self, role: &str, own: Own<'_>) -> Faulty {
        let (port, admin_port) = (free_port().expect("a port"), free_port().expect("a port"));
        let listen = format!("http.listen=127.0.0.1:{port}");
        let admin_listen = format!("admin.listen=127.0.0.1:{admin_port}");
        let sets = [&listen, &admin_listen].into_iter().map(String::as_str).chain(own.sets.iter().copied());
        let args: Vec<&str> = sets.flat_map(|set| ["--set", set]).chain(["--role", role]).collect();
        let mut command = self.armed(own.failpoints, &args);
        command.envs(own.env);
        let log = scratch("faulty").join(format!("{role}-{port}.log"));
        let child = Child::spawn(role, command, &log).await.expect("a process");
        Faulty { child, api: format!("http://127.0.0.1:{port}"), admin: format!("http://127.0.0.1:{admin_port}") }
    }

    /// Buys at another process; `None` when the answer never came.
    pub async fn buy_at(&self, at: &Faulty, sale: &str, user: &str, token: Option<&str>) -> Option<u16> {
        let mut request = self
            .http
            .post(format!("{}/v1/sales/{sale}/orders", at.api))
            .bearer_auth(self.access(user))
            .json(&serde_json::json!({ "quantity": 1 }));
        if let Some(token) = token {
            request = request.header("Idempotency-Key", token);
        }
        request.send().await.ok().map(|answer| answer.status().as_u16())
    }
}

impl Faulty {
    /// Waits until it has died at its crash point.
    pub async fn died(&self) {
        eventually("it dies at its crash point", async || !runs(self.child.pid())).await;
    }

    /// Ends it.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}
