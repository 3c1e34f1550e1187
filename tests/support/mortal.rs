//! A role as a process of its own beside the roles of a world, armed with fault points.

use super::procs::{Folder, Program};
use super::world::{QUICK, World, eventually};
use std::net::TcpListener;

/// A process of the real binary that a test lets die.
pub struct Mortal {
    /// To wait for its end, or to end it.
    pub program: Program,
    admin: String,
    _folder: Folder,
}

impl World {
    /// Starts `role` on this world's servers; `failpoints` as in `src/faults.rs`, empty for none.
    pub fn mortal(&self, role: &str, failpoints: &str, set: &[&str]) -> Mortal {
        let s = &self.settings;
        let admin = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
        let mut own = self.own_sets();
        own.extend([format!("runtime.node={}-{role}", s.runtime.node), format!("admin.listen={admin}")]);
        let all = QUICK.iter().copied().chain(own.iter().map(String::as_str)).chain(set.iter().copied());
        let mut args: Vec<&str> = all.flat_map(|set| ["--set", set]).collect();
        args.extend(["--role", role]);
        let folder = Folder::new(&format!("{}-{role}-{:x}", s.redis.prefix, rand::random::<u32>()));
        let program = Program::armed(folder.path(), &args, failpoints);
        Mortal { program, admin, _folder: folder }
    }
}

impl Mortal {
    /// Where its metrics are, `ip:port`.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Waits until it died of its own SIGKILL at a crash point.
    pub async fn dies_at(mut self, point: &str) {
        let code = self.program.ended().await;
        let said = self.program.said();
        assert!(code.is_none() && said.contains("dying at a crash point"), "{point}: {code:?} {said}");
    }

    /// Whether it is alive, by its own word.
    pub async fn answers(&self) -> bool {
        let asked = reqwest::get(format!("http://{}/livez", self.admin)).await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    /// The value of a metric without labels; `None` while the process does not answer or does not have it.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let text = reqwest::get(format!("http://{}/metrics", self.admin)).await.ok()?.text().await.ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Waits until a metric is as wanted.
    pub async fn until_metric(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        eventually(name, async || self.metric(name).await.is_some_and(&wanted)).await;
    }
}
