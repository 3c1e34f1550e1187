//! The real binary: what a person or a supervisor sees of it, and kill -9 of every part.

use crate::support::processes::programs::{Folder, Program, call, no_process_in, runs, signal};
use crate::support::world::{Answer, QUICK, World, eventually, run, run_waiting};
use seckill::config::Secret;
use seckill::dev::DevState;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use seckill_bench::loadgen::{self, LoadPlan, OnLoadProgress, Outcomes};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// `--set` for every setting.
fn sets<'a>(settings: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    settings.into_iter().flat_map(|set| ["--set", set]).collect()
}

/// A local stack in a folder, and the way to call the other subcommands on it.
struct Stack<'a> {
    dev: Program,
    dir: &'a str,
    state: DevState,
}

impl<'a> Stack<'a> {
    async fn start(folder: &'a Folder, args: &[&str]) -> Self {
        let dir = folder.path().to_str().unwrap();
        let quick = QUICK.into_iter().filter(|set| !set.contains("secret")).chain(["admin.listen=127.0.0.1:0"]);
        let mut all = sets(quick);
        all.extend(["dev", "--data-dir", dir]);
        all.extend(args);
        let mut stack = Self { dev: Program::start(folder.path(), &all), dir, state: DevState::default() };
        eventually("dev.json", async || {
            stack.dev.must_run();
            DevState::path(folder.path()).exists()
        })
        .await;
        stack.read();
        stack
    }

    fn read(&mut self) -> &DevState {
        self.state = DevState::read(Path::new(self.dir)).unwrap().expect("dev.json");
        &self.state
    }

    /// Calls a subcommand that has to succeed, and returns what it prints.
    fn call(&self, args: &[&str]) -> String {
        let all = [&["--data-dir", self.dir], args].concat();
        let (code, stdout, stderr) = call(&all);
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        stdout
    }

    fn create_sale(&self, id: &str, stock: &str) -> SaleId {
        let args = ["sale", "create", "--id", id, "--product", "p", "--title", "t", "--stock", stock, "--limit", "1"];
        let window = ["--starts-at", "2020-01-01T00:00:00Z", "--ends-at", "2099-01-01T00:00:00Z", "--warm"];
        let said = self.call(&[&args[..], &window].concat());
        assert!(said.contains(&format!("warmed {id}")), "{said}");
        SaleId::parse(id).unwrap()
    }

    fn crowd(&self, sale: &SaleId, buyers: u64) -> LoadPlan {
        let secret = Secret::new(self.state.jwt_secret.clone());
        LoadPlan {
            buyers,
            tokens: true,
            max_retries: 100,
            ..LoadPlan::new(self.state.api.clone(), sale.clone(), secret)
        }
    }

    async fn is_ready(&self, role: &str) -> bool {
        let url = format!("{}/readyz", self.state.admins[role]);
        reqwest::Client::new().get(url).send().await.is_ok_and(|answer| answer.status().is_success())
    }
}

fn all_confirmed(outcomes: &Outcomes, accepted: u64) {
    assert!(outcomes.all_final() && outcomes.confirmed == accepted, "{accepted} accepted: {outcomes:?}");
}

#[test]
fn a_split_stack_loses_nothing_by_kill_9_of_every_role_and_leaves_nothing_behind() {
    run(async {
        let folder = Folder::new("stack");
        let mut stack = Stack::start(&folder, &["--split", "--no-demo"]).await;
        everything_is_shown(&stack);
        the_pages_are_served(&stack).await;

        let sale = stack.create_sale("split", "100000");
        let token = stack.call(&["token", "mint", "--sub", "alice"]);
        let url = format!("{}/v1/sales/split/orders", stack.state.api);
        let buy = reqwest::Client::new().post(&url).bearer_auth(token.trim()).json(&serde_json::json!({}));
        assert_eq!(Answer::of(buy).await.status, 202);
        let many = stack.call(&["token", "mint", "--prefix", "crowd-", "--count", "3", "--csv"]);
        let many: Vec<(&str, &str)> = many.lines().filter_map(|line| line.split_once(',')).collect();
        assert_eq!(many.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["crowd-1", "crowd-2", "crowd-3"]);
        for (_, token) in many {
            let buy = reqwest::Client::new().post(&url).bearer_auth(token).json(&serde_json::json!({}));
            assert_eq!(Answer::of(buy).await.status, 202, "each is a buyer of their own");
        }
        let audit: Value = serde_json::from_str(&stack.call(&["audit", "--json"])).unwrap();
        assert_eq!((&audit["consistent"], audit["sales"].as_array().map(Vec::len)), (&Value::Bool(true), Some(1)));
        let (code, _, stderr) = call(&["dev", "--data-dir", stack.dir]);
        assert!(code == Some(1) && stderr.contains("in use by another"), "{code:?} {stderr}");

        kill_every_role_in_a_crowd(&mut stack, &sale).await;

        // An orderly stop, and the data are there for the next time.
        let pids = stack.read().pids.clone();
        let (code, took) = stack.dev.terminate().await;
        assert!(code == Some(0) && took < Duration::from_secs(25), "{code:?} after {took:?}: {}", stack.dev.stderr());
        assert!(pids.values().all(|pid| !runs(*pid)), "{pids:?}");
        no_process_in(folder.path()).await;
        assert!(!DevState::path(folder.path()).exists(), "no reader is to believe that it runs");

        let mut stack = Stack::start(&folder, &["--keep", "--no-demo"]).await;
        the_pages_are_served(&stack).await;
        let shown: Value = serde_json::from_str(&stack.call(&["sale", "show", "split", "--json"])).unwrap();
        let left = shown["sale"]["stock"].as_i64().unwrap();
        assert!(left < 100_000, "{shown}");
        let sold = loadgen::run(LoadPlan { first_buyer: 100_000, ..stack.crowd(&sale, 50) }).await.unwrap();
        assert_eq!(sold.accepted, 50, "{:?}", sold.by_status);
        let plan = stack.crowd(&sale, 50);
        all_confirmed(
            &loadgen::await_outcomes(&plan, &sold.accepted_requests, Duration::from_secs(20)).await.unwrap(),
            50,
        );
        // Its baselines write past everything, and leave the stack in balance all the same.
        let tiny = ["--quick", "--seconds", "0.3", "--connections", "8", "--only", "end_to_end"];
        stack.call(&[&["bench", "--here"], &tiny[..]].concat());
        stack.call(&["audit", "--now"]);
        let pids = stack.read().pids.clone();
        stack.dev.kill();
        eventually("all dead", async || pids.values().all(|pid| !runs(*pid))).await;
        no_process_in(folder.path()).await;
    });
}

fn everything_is_shown(stack: &Stack) {
    let state = &stack.state;
    let urls = [&state.api, &state.admin, &state.redis_url, &state.amqp_url, &state.mysql_url];
    assert!(urls.iter().all(|url| url.contains("127.0.0.1:")), "{urls:?}");
    assert!(state.admin_token.len() >= 16 && state.jwt_secret.len() >= 32);
    let roles = Role::ALL.map(Role::name);
    assert!(roles.iter().all(|role| state.admins.contains_key(*role)), "{:?}", state.admins);
    assert_eq!(state.admins["api"], state.admin);
    for name in roles.iter().chain(&["redis", "rabbitmq", "mysql"]) {
        assert!(state.pids.get(*name).is_some_and(|pid| runs(*pid)), "{name}: {:?}", state.pids);
    }
    let file = std::fs::metadata(DevState::path(Path::new(stack.dir))).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600, "it holds secrets");
}

/// F6: the console without a token for every client of the port, its data with the token, and the demo shop.
async fn the_pages_are_served(stack: &Stack<'_>) {
    let (get, state) = (|url: String| reqwest::Client::new().get(url), &stack.state);
    for page in [format!("{}/console/", state.admin), format!("{}/shop/", state.api)] {
        let answer = Answer::of(get(page)).await;
        assert!(answer.status == 200 && answer.body.contains("<script type=\"module\""), "{answer:?}");
    }
    let data = format!("{}/admin/v1/whoami", state.admin);
    assert_eq!(Answer::of(get(data.clone())).await.status, 401);
    assert_eq!(Answer::of(get(data).bearer_auth(&state.admin_token)).await.status, 200);
    let visit = reqwest::Client::new().post(format!("{}/shop/v1/visitors", state.api)).json(&serde_json::json!({}));
    assert!(!Answer::of(visit).await.text("token").is_empty(), "a visitor can buy");
}

async fn kill_every_role_in_a_crowd(stack: &mut Stack<'_>, sale: &SaleId) {
    let plan = stack.crowd(sale, 6_000);
    let accepted = Arc::new(AtomicU64::new(0));
    let shown = accepted.clone();
    let progress: OnLoadProgress = Arc::new(move |progress| shown.store(progress.accepted, Relaxed));
    let rate = LoadPlan { rate_per_s: Some(400.0), progress: Some(progress), ..plan.clone() };
    let selling = tokio::spawn(loadgen::run(rate));
    for role in Role::ALL.map(Role::name) {
        let sold_before = accepted.load(Relaxed);
        eventually("a load", async || accepted.load(Relaxed) > sold_before + 100).await;
        let before = stack.read().pids[role];
        signal(before, libc::SIGKILL);
        let killed = Instant::now();
        eventually("a new process of the role", async || stack.read().pids[role] != before).await;
        eventually("the role ready", async || stack.is_ready(role).await).await;
        assert!(killed.elapsed() < Duration::from_secs(10), "{role} was away for {:?}", killed.elapsed());
        stack.dev.must_run();
    }
    assert!(!selling.is_finished(), "the roles were to die under load");
    let sold = selling.await.unwrap().unwrap();
    assert!(sold.accepted >= 5_900 && sold.replays_broken == 0, "{} of 6,000: {:?}", sold.accepted, sold.by_status);
    let within = Duration::from_secs(25);
    all_confirmed(&loadgen::await_outcomes(&plan, &sold.accepted_requests, within).await.unwrap(), sold.accepted);
    let settled = Instant::now() + within;
    while call(&["--data-dir", stack.dir, "audit", "--now"]).0 != Some(0) {
        assert!(Instant::now() < settled, "{}", stack.call(&["audit", "--now"]));
    }
}

#[test]
fn a_role_waits_for_servers_that_are_not_there_says_so_and_stops_in_order() {
    run_waiting(async {
        let folder = Folder::new("alone");
        let settings = [
            "redis.url=redis://127.0.0.1:1",
            "rabbitmq.url=amqp://127.0.0.1:1",
            "mysql.url=mysql://root@127.0.0.1:1/x",
            "admin.listen=127.0.0.1:0",
        ];
        let args = sets(QUICK.into_iter().chain(settings));
        for (role, waits) in [("api", "redis"), ("relay", "redis"), ("consumer", "rabbitmq"), ("reconcile", "database")]
        {
            let mut program = Program::start(folder.path(), &[&args[..], &["--role", role]].concat());
            program.until_logged("role starts").await;
            // Redis is given a moment first, so the message about the other server comes a little later.
            eventually(&format!("{role} warns that it waits for {waits}"), async || {
                program.stderr().lines().any(|line| line.contains("WARN") && line.contains(waits))
            })
            .await;
            let (code, took) = program.terminate().await;
            assert!(
                code == Some(0) && took < Duration::from_secs(8),
                "{role}: {code:?} after {took:?}: {}",
                program.stderr()
            );
            assert!(program.stderr().contains("stopped"), "{}", program.stderr());
        }
    });
}

#[test]
fn a_split_stack_with_a_role_that_does_not_start_says_at_once_which_and_why() {
    run_waiting(async {
        let folder = Folder::new("split-refused");
        let key = ["auth.algorithm=RS256", "auth.key_file=/nonexistent/key.pem"];
        let args = [&["--data-dir", folder.path().to_str().unwrap()], &sets(key)[..]].concat();
        let mut stack = Program::start(folder.path(), &[&args[..], &["dev", "--split", "--no-demo"]].concat());
        assert_eq!(stack.ended().await, Some(1));
        let said = stack.stderr();
        assert!(said.contains("api ended with") && said.contains("/nonexistent/key.pem"), "{said}");
        assert!(!said.contains("is not ready"), "the reason, not what follows from it: {said}");
        no_process_in(folder.path()).await;
    });
}

#[test]
fn sigterm_in_a_load_drains_each_role_and_loses_nothing() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let sale = world.sale("drained", 100_000, Some(1)).await;
        let folder = Folder::new("drained");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        world.api = format!("http://{port}");
        let mut own = world.own_sets();
        own.extend([
            format!("runtime.node={}", world.settings.runtime.node),
            format!("http.listen={port}"),
            "admin.listen=127.0.0.1:0".to_owned(),
        ]);
        let args = sets(QUICK.into_iter().chain(own.iter().map(String::as_str)));
        let start = |role: &str| Program::start(folder.path(), &[&args[..], &["--role", role]].concat());
        let mut roles: Vec<(&str, Program)> = Role::ALL.map(|role| (role.name(), start(role.name()))).into();
        eventually("the api", async || world.http.get(format!("{}/v1/sales", world.api)).send().await.is_ok()).await;
        let plan = LoadPlan { tokens: true, max_retries: 100, ..world.crowd(&sale, 4_000) };
        let selling = tokio::spawn(loadgen::run(LoadPlan { rate_per_s: Some(500.0), ..plan.clone() }));
        let mut sold_before = 0;
        for (role, program) in &mut roles {
            eventually("a load", async || world.orders(&sale).await > sold_before + 100).await;
            let (code, took) = program.terminate().await;
            assert_eq!(code, Some(0), "{role}: {}", program.stderr());
            assert!(took < Duration::from_secs(8), "{role} took {took:?}: {}", program.stderr());
            assert!(*role == "api" || program.stderr().contains("drained"), "{role}: {}", program.stderr());
            *program = start(role);
            sold_before = world.orders(&sale).await;
        }
        let sold = selling.await.unwrap().unwrap();
        assert!(sold.accepted >= 3_950, "{} of 4,000: {:?}", sold.accepted, sold.by_status);
        let outcomes = loadgen::await_outcomes(&plan, &sold.accepted_requests, Duration::from_secs(20)).await.unwrap();
        all_confirmed(&outcomes, sold.accepted);
        world.finish().await;
        for (role, program) in &mut roles {
            assert_eq!(program.terminate().await.0, Some(0), "{role}");
        }
    });
}
