//! One of three hosts loses power, and a file of one of its servers is another one when it comes back (V5).
//!
//! Input: `HOSTS_CASES` of each server, `HOSTS_ONLY=redis,rabbitmq,mysql` for some of them, `HOSTS_SEED`. Each case is a scene, judged as
//! all scenes are: the two other hosts have everything, so nothing may be lost, doubled or sold twice, and the audit has to find
//! that. A server that does not come back is given up: its files are moved away, and the others send it what they have
//! (`deploy/three-hosts/README.md`). Output: `target/hosts/damaged-SEED.json`, written after each case.

use crate::damage::{Damage, damage};
use crate::host::Host;
use crate::network::{NUMBERS, Number};
use crate::play::Stage;
use crate::scenes::{Act, HostFault, Scene, TARGETS};
use crate::servers::{Kind, galera, rabbit};
use crate::site::Site;
use crate::{asked, folder, written};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seckill::dev::ServerKind;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Cases of each server, where nothing else is asked for.
const CASES: u64 = 3;
/// How long the host is away: from before its servers have failed over to after it.
const LASTS_MS: std::ops::RangeInclusive<u64> = 500..=15_000;

/// A server with a damaged file.
pub struct DamagedServer {
    host: Arc<Host>,
    server: ServerKind,
    /// Of the host's programs.
    service: String,
    damage: Damage,
    cured: AtomicBool,
}

/// One of the host's programs of this server, and the folder of its data.
fn drawn(host: &Host, server: ServerKind, dice: &mut StdRng) -> (String, PathBuf) {
    let service = match server {
        ServerKind::Redis => format!("redis{}", NUMBERS[dice.random_range(0..NUMBERS.len())]),
        ServerKind::Rabbitmq => "rabbitmq".to_owned(),
        ServerKind::Mysql => "mariadb".to_owned(),
    };
    let dir = host.folder(&service);
    (service, dir)
}

/// The files as they are, while their server writes: half a block of them is as good as any.
fn copy_as_they_are(from: &Path, to: &Path) {
    drop(std::fs::remove_dir_all(to));
    // What vanishes meanwhile is not copied; only the status says so.
    drop(Command::new("cp").arg("-a").arg(from).arg(to).output().expect("cp runs"));
}

impl DamagedServer {
    /// The host's power goes, then a file is damaged.
    pub async fn of(host: &Arc<Host>, server: ServerKind, seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let (service, dir) = drawn(host, server, &mut dice);
        let old = dir.with_extension("before");
        copy_as_they_are(&dir, &old);
        host.lose_power().await;
        let damage = damage(server, &dir, &old, &mut dice);
        std::fs::remove_dir_all(old).expect("our own copy");
        Self { host: host.clone(), server, service, damage, cured: AtomicBool::new(false) }
    }

    /// For the results.
    pub fn described(&self) -> String {
        let Self { service, damage, host, .. } = self;
        format!("{service} on host {}: {}, {}", host.number(), damage.place, damage.kind.name())
    }

    /// Whether this may be what keeps the site from being whole.
    fn explains(&self, lack: &str) -> bool {
        // A host has three of Redis: redis1 to redis3.
        lack.starts_with(self.service.trim_end_matches(char::is_numeric))
    }

    /// When all servers are whole again: what is left of its cure.
    pub async fn finish(&self) {
        if self.cured.load(SeqCst) && self.server == ServerKind::Rabbitmq {
            rabbit::grow_queues(&self.host).await;
        }
    }

    /// Its files are moved away, and it gets the others'.
    async fn cure(&self) -> String {
        let (host, dir) = (&self.host, self.host.folder(&self.service));
        match self.server {
            ServerKind::Redis => {
                let files = dir.join("appendonlydir");
                host.while_ended(&self.service, || std::fs::remove_dir_all(files).expect("its files")).await;
            }
            ServerKind::Rabbitmq => rabbit::join_anew(host).await,
            ServerKind::Mysql => galera::join_anew(host, &crate::site_folder().join("database")).await,
        }
        format!("{}: its files moved away, started empty", self.service)
    }
}

impl Site {
    /// A host loses power, and a file of one of its servers is damaged.
    pub async fn damage(&self, number: Number, server: ServerKind, seed: u64) {
        let damaged = DamagedServer::of(self.host(number), server, seed).await;
        eprintln!("hosts: {}", damaged.described());
        *self.damaged() = Some(Arc::new(damaged));
    }

    /// What a person does who reads of damaged files in the answer of a command.
    pub async fn cure_if_named(&self, said: &str) -> Option<String> {
        if said.contains("are damaged") { self.cure("mariadb").await } else { None }
    }

    /// What a person does to the damaged server, if the lack may be its; once.
    pub async fn cure(&self, lack: &str) -> Option<String> {
        let damaged = self.damaged().clone().filter(|damaged| damaged.explains(lack))?;
        if damaged.cured.swap(true, SeqCst) {
            return None;
        }
        Some(damaged.cure().await)
    }
}

/// The servers that are asked for.
fn wanted() -> Vec<ServerKind> {
    let only: String = asked("HOSTS_ONLY").unwrap_or_default();
    let is_wanted = |server: &ServerKind| only.is_empty() || only.split(',').any(|name| name == server.name());
    // In this order since the seeds on record.
    let wanted: Vec<ServerKind> =
        [ServerKind::Redis, ServerKind::Rabbitmq, ServerKind::Mysql].into_iter().filter(is_wanted).collect();
    assert!(!wanted.is_empty(), "HOSTS_ONLY={only}: expected some of redis, rabbitmq, mysql");
    wanted
}

/// Plays the cases.
pub async fn run() {
    let (seed, cases) = (asked("HOSTS_SEED").unwrap_or(1), asked("HOSTS_CASES").unwrap_or(CASES));
    let mut stage = Stage::set(&folder(), Kind::Clusters).await;
    let mut results = written::Results::begin(&format!("damaged-{seed}"));
    let mut dice = StdRng::seed_from_u64(seed);
    for _case in 0..cases {
        for server in wanted() {
            let (target_name, target) = TARGETS[dice.random_range(0..TARGETS.len())];
            let name = format!("damaged-{}-{target_name}", server.name()).leak();
            let act = Act::One(HostFault::Damaged(server), target);
            let scene = Scene { name, act, lasts_ms: dice.random_range(LASTS_MS) };
            let played = stage.play(scene, dice.random()).await;
            results.add(&played);
            results.write(&json!({ "seed": seed }));
            if results.is_red() {
                return results.assert_green();
            }
        }
    }
    results.assert_green();
}
