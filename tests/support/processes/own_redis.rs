//! Redis servers that one test has for itself: primaries, replicas, and ones that are started in an unusual way.

use super::programs::scratch;
use super::redis_sets::{Cluster, SentinelSet};
use super::supervised::Supervised;
use crate::support::basics::resp::RawRedis;
use crate::support::world::{World, eventually};
use seckill::dev::ports::free_port;
use seckill::dev::{Server, redis};
use seckill::roles::Role;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A durable Redis on a folder of its own; it dies with the value.
pub async fn start(name: &str) -> Server {
    let dir = scratch(name);
    std::fs::remove_dir_all(&dir).ok();
    redis::start(&dir, free_port().expect("a port")).await.expect("a redis")
}

/// A world on a Redis that it has for itself. What is done to the whole server harms no other test.
pub async fn world(name: &str, roles: &[Role], set: &[&str]) -> (Server, World) {
    let server = start(name).await;
    let world = World::on_redis(&server.url(), name, roles, set).await;
    (server, world)
}

impl World {
    /// A world on a cluster, its sales split into `shards`.
    pub async fn on_cluster((cluster, shards): (&Cluster, u16), name: &str, roles: &[Role], set: &[&str]) -> Self {
        let shards = format!("redis.shards={shards}");
        let set = [&["redis.mode=cluster", &shards], set].concat();
        Self::on_redis(&cluster.url(), name, roles, &set).await
    }

    /// A world on a primary that sentinels watch.
    pub async fn on_sentinel(sentinels: &SentinelSet, name: &str, roles: &[Role], set: &[&str]) -> Self {
        let set = [&["redis.mode=sentinel"], set].concat();
        Self::on_redis(&sentinels.url(), name, roles, &set).await
    }

    /// Sets a setting of this world's Redis.
    pub async fn config_set(&self, name: &str, value: &str) {
        RawRedis::of(self).await.call(&["CONFIG", "SET", name, value]).await;
    }

    /// Waits until the test's own connection is there again.
    pub async fn redis_is_back(&self) {
        eventually("the test's own connection", async || self.servers.redis.health.ping().await.is_ok()).await;
    }
}

/// A Redis whose power can be cut: what it has not had on the disk is gone then (`tests/support/processes/powercut.c`).
pub struct PowerCutRedis {
    dir: PathBuf,
    shim: PathBuf,
    port: u16,
    appendfsync: &'static str,
    server: Supervised,
}

impl PowerCutRedis {
    /// Starts one with this `appendfsync`.
    pub async fn start(name: &str, appendfsync: &'static str) -> Self {
        let dir = scratch(name);
        std::fs::remove_dir_all(&dir).ok();
        std::fs::create_dir_all(dir.join("data")).expect("a folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/processes/powercut.c");
        let shim = dir.join("powercut.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&shim).arg(&source);
        assert!(compiler.status().expect("a C compiler").success(), "{}", source.display());
        let (port, server) = (free_port().expect("a port"), Supervised::new("redis", &dir.join("log")));
        let redis = Self { dir, shim, port, appendfsync, server };
        redis.boot().await;
        redis
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it on what is on the disk.
    pub async fn boot(&self) {
        let mut command = Command::new(
            seckill::dev::server_program(seckill::dev::ServerKind::Redis, "redis-server").expect("a redis-server"),
        );
        command.current_dir(self.dir.join("data")).env("LD_PRELOAD", &self.shim);
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
        command.arg(self.dir.join("data")).args(["--appendonly", "yes", "--appendfsync", self.appendfsync]);
        self.server.start(command).await;
    }

    /// Cuts the power: the process dies, and of each file only what was synced is left. Returns the bytes that went.
    pub async fn cut(&self) -> u64 {
        self.server.kill().await;
        let mut gone = 0;
        for file in std::fs::read_dir(self.dir.join("data/appendonlydir")).expect("a folder").flatten() {
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == "synced") {
                continue;
            }
            let has = file.metadata().expect("a file").len();
            let record = PathBuf::from(format!("{}.synced", path.display()));
            let synced = std::fs::read_to_string(&record).map_or(0, |text| text.trim().parse().expect("a size"));
            if synced < has {
                let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
                file.set_len(synced).expect("cut");
                gone += has - synced;
            }
        }
        gone
    }
}
