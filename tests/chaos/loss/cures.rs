//! A server on damaged files: whether it starts and can be used, what doctor says of one that does not, and the cure that
//! `docs/operations.md` names for it.

use super::damage::{Damage, damage};
use super::testbed::{Testbed, copy_folder};
use crate::time::pause;
use rand::rngs::StdRng;
use seckill::dev::ServerKind;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::time::timeout;

/// A server that answers can be used within this time.
const USABLE: Duration = Duration::from_secs(20);
/// Longest run of a server's own tool.
const TOOL: Duration = Duration::from_secs(60);
/// Of a server's last words.
const SAID_CHARS: usize = 160;

/// What came of a damaged file.
#[derive(Debug, Clone)]
pub struct DamageRecord {
    /// Of this server.
    pub server: ServerKind,
    /// What was done to it.
    pub damage: Damage,
    /// Why it could not be used, if it could not.
    pub refused: Option<String>,
    /// What was done then, step by step.
    pub cures: Vec<&'static str>,
    /// What is wrong with what doctor said of it.
    pub complaint: Option<String>,
}

impl Testbed {
    fn folder_of(&self, server: ServerKind) -> PathBuf {
        self.deployment.dir().join(server.name())
    }

    /// The data of a server as they are on its disk at this moment.
    pub async fn copy_files_of(&self, server: ServerKind, copy: &Path) {
        drop(fs::remove_dir_all(copy));
        self.deployment.freeze(server).await;
        copy_folder(&self.folder_of(server), copy);
        self.deployment.thaw(server).await;
    }

    /// kill -9, damage, start; with the cure where it is needed. The product is cut off meanwhile.
    pub async fn damage(&self, server: ServerKind, old: &Path, dice: &mut StdRng) -> DamageRecord {
        self.part(server, true);
        let dir = self.folder_of(server);
        let damage = {
            let mut running = self.deployment.server(server).lock().await;
            running.kill().await.expect("our own child");
            damage(server, &dir, old, dice)
        };
        let mut record = DamageRecord { server, damage, refused: None, cures: Vec::new(), complaint: None };
        if let Err(why) = self.start_and_use(server).await {
            record.complaint = self.doctor_complaint(server).await;
            record.refused = Some(why.chars().take(SAID_CHARS).collect::<String>().replace('\n', " "));
            for cure in cures(server) {
                record.cures.push(cure);
                self.cure(server, cure, old).await;
                if self.start_and_use(server).await.is_ok() {
                    break;
                }
            }
            self.start_and_use(server).await.unwrap_or_else(|why| panic!("{record:?}: no cure helps: {why}"));
        }
        self.part(server, false);
        record
    }

    /// Starts a server that is dead; why it does not start or cannot be used.
    async fn start_and_use(&self, server: ServerKind) -> Result<(), String> {
        {
            let mut running = self.deployment.server(server).lock().await;
            if !running.is_alive() {
                running.restart().await.map_err(|error| error.to_string())?;
            }
        }
        let deadline = Instant::now() + USABLE;
        loop {
            let usable = timeout(USABLE, self.usable(server)).await.unwrap_or_else(|_late| Err("no answer".to_owned()));
            match usable {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() > deadline => return Err(why),
                Err(_) => pause().await,
            }
            if !self.deployment.server(server).lock().await.is_alive() {
                return Err("it ended".to_owned());
            }
        }
    }

    async fn usable(&self, server: ServerKind) -> Result<(), String> {
        match server {
            // It has read its file, or it would not answer.
            ServerKind::Redis => Ok(()),
            ServerKind::Rabbitmq => self.broker_serves().await,
            ServerKind::Mysql => self.tables.damaged().await.map_or(Ok(()), Err),
        }
    }

    /// `seckill doctor` names the server and ends with 1 or 2.
    async fn doctor_complaint(&self, server: ServerKind) -> Option<String> {
        let (code, stdout, stderr) = self.deployment.call(&["doctor"]).await;
        let said = format!("{stdout}{stderr}");
        let line = said.lines().find(|line| line.contains(server.name()) && !line.contains("ok"));
        if matches!(code, Some(1 | 2)) && line.is_some() { None } else { Some(format!("doctor, {code:?}: {said}")) }
    }

    async fn cure(&self, server: ServerKind, cure: &str, old: &Path) {
        self.deployment.server(server).lock().await.kill().await.expect("our own child");
        let dir = self.folder_of(server);
        match cure {
            CHECK_AOF => check_aof(&dir).await,
            RESTORE => {
                fs::remove_dir_all(&dir).expect("the server's folder");
                copy_folder(old, &dir);
            }
            EMPTY if server == ServerKind::Redis => fs::remove_dir_all(dir.join("appendonlydir")).expect("its files"),
            EMPTY => {
                fs::remove_dir_all(dir.join("data")).expect("its files");
                fs::create_dir(dir.join("data")).expect("a folder");
            }
            other => panic!("{other}"),
        }
    }
}

const CHECK_AOF: &str = "redis-check-aof --fix";
const EMPTY: &str = "its data moved away, started empty";
const RESTORE: &str = "the newest backup restored";

/// In the order in which they are tried.
const fn cures(server: ServerKind) -> &'static [&'static str] {
    match server {
        ServerKind::Redis => &[CHECK_AOF, EMPTY],
        ServerKind::Rabbitmq => &[EMPTY],
        ServerKind::Mysql => &[RESTORE],
    }
}

async fn check_aof(dir: &Path) {
    let mut command = Command::new("redis-check-aof");
    command.arg("--fix").arg("appendonlydir/appendonly.aof.manifest").current_dir(dir).kill_on_drop(true);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut tool = command.spawn().expect("redis-check-aof is installed with the server");
    let mut answers = tool.stdin.take().expect("piped");
    // It asks before it cuts; where it gives up it does not read.
    drop(tokio::io::AsyncWriteExt::write_all(&mut answers, b"y\ny\n").await);
    drop(answers);
    drop(timeout(TOOL, tool.wait()).await.expect("the tool ends"));
}
