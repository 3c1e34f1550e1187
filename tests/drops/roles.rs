//! The roles of a system as processes, and their deaths by SIGKILL at moments that a seed draws.

use crate::crowd::until;
use crate::support::processes::killable::{KillableProcess, ProcessOptions};
use crate::support::processes::programs::signal;
use crate::support::world::{World, eventually};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use seckill::dev::DevState;
use seckill::dev::ports::free_port;
use seckill::roles::Role;
use std::collections::BTreeMap;
use std::path::Path;

/// Role → how often it was killed.
pub type Kills = BTreeMap<&'static str, u64>;

/// When which role dies: each once, and one of them once more.
fn plan(seed: u64, (from_ms, to_ms): (i64, i64)) -> Vec<(i64, Role)> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut roles = Role::ALL.to_vec();
    roles.push(Role::ALL[chance.random_range(0..Role::ALL.len())]);
    roles.shuffle(&mut chance);
    let mut plan: Vec<(i64, Role)> =
        roles.into_iter().map(|role| (chance.random_range(from_ms + 200..to_ms - 1_500), role)).collect();
    plan.sort_by_key(|(at_ms, _)| *at_ms);
    plan
}

struct Member {
    role: Role,
    sets: Vec<String>,
    process: Option<KillableProcess>,
}

/// One process of each role, on the servers of a world.
pub struct Roles {
    members: Vec<Member>,
    /// What every process leaves out, as `FAILPOINTS` has it; empty: nothing.
    faults: String,
    /// `http://…` of the api process.
    pub api: String,
    /// `http://…` of its admin server.
    pub admin: String,
}

impl Roles {
    /// Starts them, with these settings; `faults`: without some mechanisms.
    pub async fn start(world: &World, sets: &[&str], faults: &str) -> Self {
        let address = || format!("127.0.0.1:{}", free_port().expect("a port"));
        let member = |role| {
            let own = [format!("http.listen={}", address()), format!("admin.listen={}", address())];
            let sets = sets.iter().map(|set| (*set).to_owned()).chain(own).collect();
            Member { role, sets, process: None }
        };
        let members = Role::ALL.map(member).into();
        let mut roles = Self { members, faults: faults.to_owned(), api: String::new(), admin: String::new() };
        for member in &mut roles.members {
            member.start(world, faults);
        }
        for member in &roles.members {
            member.answers().await;
            let process = member.process.as_ref().expect("it runs");
            if member.role == Role::Api {
                process.serves_buyers().await;
                (roles.api, roles.admin) = (process.api_url(), format!("http://{}", process.admin()));
            }
        }
        roles
    }

    /// Kills and starts them again, by plan.
    pub async fn die(&mut self, world: &World, seed: u64, window: (i64, i64)) -> Kills {
        let mut kills = Kills::new();
        for (at_ms, role) in plan(seed, window) {
            until(at_ms).await;
            let member = self.members.iter_mut().find(|member| member.role == role).expect("one of each role");
            member.process.take().expect("it runs").kill();
            member.start(world, &self.faults);
            member.answers().await;
            *kills.entry(role.name()).or_default() += 1;
        }
        kills
    }
}

impl Member {
    fn start(&mut self, world: &World, failpoints: &str) {
        let sets: Vec<&str> = self.sets.iter().map(String::as_str).collect();
        let options = ProcessOptions { failpoints, sets: &sets, ..ProcessOptions::default() };
        self.process = Some(world.spawn(self.role.name(), options));
    }

    async fn answers(&self) {
        let process = self.process.as_ref().expect("it runs");
        eventually(&format!("{} answers", self.role.name()), async || process.is_alive().await).await;
    }
}

/// The same in a stack of `make run ARGS=--split`, which starts what died again; no death where all roles are one process.
pub async fn die_in_stack(folder: &Path, seed: u64, window: (i64, i64)) -> Kills {
    let pid = |role: Role| {
        let state = DevState::read(folder).ok().flatten()?;
        let pid = state.pids.get(role.name()).copied()?;
        let alone = state.pids.values().filter(|other| **other == pid).count() == 1;
        alone.then_some(pid)
    };
    let mut kills = Kills::new();
    for (at_ms, role) in plan(seed, window) {
        until(at_ms).await;
        let Some(old) = pid(role) else { continue };
        signal(old, libc::SIGKILL);
        eventually("it is started again", async || pid(role).is_some_and(|new| new != old)).await;
        *kills.entry(role.name()).or_default() += 1;
    }
    kills
}
