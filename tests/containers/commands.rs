//! Every command of the program in the image, which has no shell, no home and a root that nothing can be written to.

use crate::engine::{Given, for_the_image, until_ok};
use crate::support::processes::command_line::CommandOutput;
use crate::support::processes::programs::Folder;
use crate::support::world::{World, run};
use seckill::dev::ports::free_port;
use std::collections::BTreeSet;

/// The commands that `--help` lists.
fn listed(help: &str) -> BTreeSet<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// Runs commands in containers on a world's servers, and notes which of them ran.
struct Desk {
    sets: Vec<String>,
    ran: BTreeSet<String>,
}

impl Desk {
    fn run(&mut self, args: &[&str]) -> CommandOutput {
        self.run_with(&[], args)
    }

    fn run_with(&mut self, options: &[&str], args: &[&str]) -> CommandOutput {
        self.ran.insert(args[0].to_owned());
        Given { sets: &self.sets, options }.runs(args)
    }
}

#[test]
fn every_command_runs_in_the_image_and_bench_says_where_it_is() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("cmd", 10, Some(1)).await;
        let id = world.bought(&sale, "alice").await.to_string();
        assert_eq!(world.status(&sale, "alice", &id, 30).await.text("status"), "CONFIRMED");
        let mut desk = Desk { sets: world.container_sets(), ran: BTreeSet::new() };
        desk.run(&["migrate"]).exits(0);
        assert!(desk.run(&["topology"]).exits(0).out.contains("orders.0"));
        sales(&mut desk);
        let audit = desk.run(&["audit", "--json"]).exits(0).json();
        assert!(audit.to_string().contains("\"cmd\""), "{audit}");
        assert!(desk.run(&["order", "show", &id]).exits(0).out.contains("CONFIRMED"));
        desk.run(&["order", "cancel", &id, "--reason", "a test"]).exits(0);
        desk.run(&["dlq", "list", "--json"]).exits(0);
        desk.run(&["dlq", "replay", "--all", "--dry-run"]).exits(0);
        // There is no such finding: it is searched for in the database and refused.
        let closed = desk.run(&["finding", "close", "cmd", "--gap", "1:0:97-99", "--reason", "a test"]);
        assert_eq!(closed.code, Some(1), "{closed:?}");
        assert!(desk.run(&["act", "list", "--json"]).exits(0).out.contains("cmd"));
        let doctor = desk.run(&["doctor", "--json"]);
        assert!(matches!(doctor.code, Some(0 | 2)) && doctor.out.contains("appendfsync"), "{doctor:?}");
        assert_eq!(desk.run(&["token", "mint", "--sub", "u"]).exits(0).out.trim().split('.').count(), 3);
        desk.run(&["config", "check"]).exits(0);
        assert!(desk.run(&["config", "reference"]).exits(0).out.contains("p3_relay.window_max"));
        archive(&mut desk, &world).await;
        dev(&mut desk, &world).await;
        let bench = desk.run(&["bench", "--quick"]).exits(1);
        for word in ["seckill-bench", "image", "cargo build"] {
            assert!(bench.err.contains(word), "{word}: {}", bench.err);
        }
        let help = desk.run(&["help"]).exits(0).out;
        assert_eq!(desk.ran, listed(&help), "every command was run");
        world.finish().await;
    });
}

/// The life of a sale by commands.
fn sales(desk: &mut Desk) {
    let window = ["--starts-at", "2020-01-01T10:00:00Z", "--ends-at", "2099-01-01T12:00:00Z"];
    let what = ["sale", "create", "--id", "made", "--product", "p", "--title", "t", "--stock", "5"];
    desk.run(&[&what[..], &window].concat()).exits(0);
    for step in ["warm", "pause", "resume"] {
        desk.run(&["sale", step, "made"]).exits(0);
    }
    desk.run(&["sale", "top-up", "made", "3", "--grant", "more"]).exits(0);
    desk.run(&["sale", "reclaim", "made"]).exits(0);
    let shown = desk.run(&["sale", "show", "made", "--json"]).exits(0).json();
    assert!(shown.to_string().contains("8"), "{shown}");
    assert!(desk.run(&["sale", "list"]).exits(0).out.contains("made"));
    desk.run(&["sale", "close", "made"]).exits(0);
}

/// An archive needs a place to write to, which is mounted.
async fn archive(desk: &mut Desk, world: &World) {
    let folder = Folder::new("image-archive");
    for_the_image(folder.path(), 0o755);
    world.draft("gone", 1, |_| {}).await;
    desk.run(&["sale", "close", "gone"]).exits(0);
    let mount = format!("--volume={}:/archive", folder.path().display());
    let archived = desk.run_with(&[&mount], &["sale", "archive", "gone", "--to", "/archive"]);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(archived.code == Some(0) && files > 0, "{archived:?}, {files} files");
}

/// `dev` finds none of the servers' programs and names one that it lacks; on servers that run already it works.
async fn dev(desk: &mut Desk, world: &World) {
    let place = ["--tmpfs=/tmp"];
    let words = ["dev", "--no-demo", "--data-dir", "/tmp/dev"];
    let alone = Given { options: &place, sets: &[] }.runs(&words);
    assert!(alone.code == Some(1) && alone.err.contains("-server not found"), "{alone:?}");
    let admin = format!("127.0.0.1:{}", free_port().unwrap());
    let mut sets = desk.sets.clone();
    sets.push(format!("admin.listen={admin}"));
    let settings = &world.settings;
    let servers = [
        ("REDIS", settings.redis.url.expose()),
        ("AMQP", settings.rabbitmq.url.expose()),
        ("MYSQL", settings.mysql.url.expose()),
    ];
    let urls = servers.map(|(name, url)| format!("--env=SECKILL_{name}_URL={url}"));
    let options: Vec<&str> = place.into_iter().chain(urls.iter().map(String::as_str)).collect();
    let on_servers = Given { options: &options, sets: &sets }.starts(&words);
    until_ok(&format!("http://{admin}/readyz")).await;
    on_servers.terminate();
    assert_eq!(on_servers.ended().await, 0, "{}", on_servers.log());
    desk.ran.insert("dev".to_owned());
}
