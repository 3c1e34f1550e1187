//! What `/metrics` of a process exports against the table in `docs/operations.md`: names, labels and kinds.

use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, webhook};
use crate::support::processes::killable::KillableProcess;
use crate::support::processes::programs::{Folder, Program};
use crate::support::world::{QUICK, World, eventually, run};
use seckill::roles::Role;
use std::collections::{BTreeMap, BTreeSet};

/// Names with their labels, as the table says; those that appear only after something happened are in the second set.
fn documented() -> (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) {
    let text = include_str!("../../../docs/operations.md");
    let section = text.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let (mut table, mut later) = (BTreeMap::new(), BTreeSet::new());
    let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        // Values in parentheses are no labels.
        let labels: BTreeSet<String> = quoted(cells[1].split('(').next().unwrap()).into_iter().collect();
        for name in quoted(cells[0]) {
            if cells[2].contains("absent until") {
                later.insert(name.clone());
            }
            table.insert(name, labels.clone());
        }
    }
    (table, later)
}

/// Names with the labels of each of their series. A histogram's parts count as its name.
fn exported(text: &str) -> BTreeMap<String, BTreeSet<BTreeSet<String>>> {
    let histograms: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" histogram")).collect();
    let mut found: BTreeMap<String, BTreeSet<BTreeSet<String>>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let series = line.rsplit_once(' ').unwrap().0;
        let (full, labels) = series.split_once('{').unwrap_or((series, ""));
        let parts = ["_bucket", "_sum", "_count"].into_iter().filter_map(|part| full.strip_suffix(part));
        let name = parts.into_iter().find(|name| histograms.contains(name)).unwrap_or(full);
        let keys = labels.split("\",").filter_map(|pair| Some(pair.split_once("=\"")?.0.to_owned()));
        found.entry(name.to_owned()).or_default().insert(keys.filter(|key| key != "le").collect());
    }
    found
}

#[test]
fn a_process_with_all_roles_exports_what_the_table_says_and_nothing_else() {
    run(async {
        // With a webhook: its series have its name.
        let receiver = HookReceiver::start().await;
        let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
        let mut world = World::with_config(&[], &[], &text).await;
        let sale = world.sale("measured", 10, Some(1)).await;
        let folder = Folder::new("metrics");
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (port, admin) = (free(), free());
        world.api = format!("http://{port}");
        let mut own = world.own_sets();
        own.extend([
            format!("runtime.node={}", world.settings.runtime.node),
            format!("http.listen={port}"),
            format!("admin.listen={admin}"),
        ]);
        let sets = QUICK.into_iter().chain(own.iter().map(String::as_str)).flat_map(|set| ["--set", set]);
        let roles = Role::ALL.into_iter().flat_map(|role| ["--role", role.name()]);
        let config = world.config_file().unwrap();
        let args: Vec<&str> = sets.chain(roles).chain(["--config", config.to_str().unwrap()]).collect();
        let mut program = Program::start(folder.path(), &args);
        program.until_logged("role starts").await;
        eventually("the api", async || world.http.get(format!("{}/v1/sales", world.api)).send().await.is_ok()).await;
        let id = world.bought(&sale, "alice").await;
        assert_eq!(world.status(&sale, "alice", &id.to_string(), 20).await.status, 200);

        let (table, later) = documented();
        let metrics = format!("http://{admin}/metrics");
        let mut text = String::new();
        let mut missing: Vec<String> = Vec::new();
        eventually("every documented metric", async || {
            text = world.http.get(&metrics).send().await.unwrap().text().await.unwrap();
            let found = exported(&text);
            missing =
                table.keys().filter(|name| !found.contains_key(*name) && !later.contains(*name)).cloned().collect();
            missing.is_empty()
        })
        .await;
        for (name, series) in exported(&text) {
            let labels = table.get(&name).unwrap_or_else(|| panic!("{name} is exported and not documented"));
            assert_eq!(series, BTreeSet::from([labels.clone()]), "labels of {name}");
        }
        // The transaction above was timed.
        let timed =
            text.lines().find_map(|line| line.strip_prefix("seckill_p4_persist_accept_to_landed_seconds_count "));
        assert_eq!(timed, Some("1"));
        assert_eq!(program.terminate().await.0, Some(0), "{}", program.stderr());
        world.finish().await;
    });
}

/// The series of single sales on the page of a process.
async fn of_sales(process: &KillableProcess) -> String {
    let Ok(page) = reqwest::get(format!("http://{}/metrics", process.admin())).await else { return String::new() };
    let page = page.text().await.unwrap_or_default();
    page.lines().filter(|line| line.contains("sale=\"")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_sale_that_is_over_has_no_series_left() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &[]).await;
        let (over, live) = (world.sale("a-over", 10, None).await, world.sale("b-live", 10, None).await);
        world.bought(&over, "alice").await;
        world.bought(&live, "alice").await;
        world.settled(&over).await;
        let sets = ["p5_reconcile.interval_ms=100", "p5_reconcile.ledger_retention_s=2", "p1_entry.token_ttl_s=1"];
        let first = world.process("reconcile", "", &sets);
        let units = |sale: &str| format!("seckill_p5_reconcile_units{{sale=\"{sale}\",what=\"granted\"}} 10\n");
        eventually("series of both", async || {
            let text = of_sales(&first).await;
            text.contains(&units("a-over")) && text.contains(&units("b-live"))
        })
        .await;
        world.cli(&["sale", "close", "a-over"]).exits(0);
        eventually("they are taken back", async || !of_sales(&first).await.contains("a-over")).await;
        assert!(of_sales(&first).await.contains(&units("b-live")));
        first.kill();

        // A new leader audits what is over once more. Sales come in the order of their ids.
        let second = world.process("reconcile", "", &sets);
        eventually("its series", async || of_sales(&second).await.contains(&units("b-live"))).await;
        assert!(!of_sales(&second).await.contains("a-over"));
        second.kill();
        world.finish().await;
    });
}
