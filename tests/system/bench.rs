//! `seckill bench` at a tiny scale, on servers and roles of its own: what it says about correctness must be right. Its speeds
//! mean nothing here and are not looked at.

use crate::support::own_redis;
use crate::support::procs::{Folder, call};
use crate::support::resp::RawRedis;
use crate::support::world::{World, eventually, run};
use serde_json::Value;

/// Runs the bench to its end with `--json`.
fn bench(args: &[&str]) -> Value {
    let (code, out, err) =
        call(&[&["bench", "--quick", "--json", "--seconds", "0.3", "--connections", "8"], args].concat());
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_eq!((code, &report["consistent"]), (Some(0), &Value::Bool(true)), "{report:#}{err}");
    let audits = report["audits"].as_array().expect("audits");
    assert!(!audits.is_empty() && audits.iter().all(|audit| audit["consistent"] == true), "{audits:#?}");
    report
}

fn bar<'a>(report: &'a Value, name: &str) -> &'a Value {
    let bars = report["bars"].as_array().expect("bars");
    bars.iter().find(|bar| bar["name"] == name).unwrap_or_else(|| panic!("no bar {name}: {report:#}"))
}

/// Everything was counted, and what it is compared with was really measured.
fn compared(report: &Value, name: &str, runs: usize) {
    let bar = bar(report, name);
    let positive = |field: &str| bar[field].as_f64().is_some_and(|value| value > 0.0);
    assert!(positive("value") && positive("baseline") && positive("ratio") && positive("bar"), "{bar:#}");
    assert_eq!((bar["runs"].as_array().map(Vec::len), bar["holds"].is_boolean()), (Some(runs), true), "{bar:#}");
}

#[test]
fn the_bench_moves_every_entry_and_measures_what_it_compares_with() {
    run(async {
        let folder = Folder::new("bench-page");
        let page = folder.path().join("bench.html");
        let page = page.to_str().unwrap();
        let only = ["accept", "sold_out", "latency", "relay", "landing", "memory", "end_to_end"];
        let only: Vec<&str> = only.into_iter().flat_map(|name| ["--only", name]).collect();
        let report = bench(&[&only[..], &["--entries", "700", "--runs", "2", "--html", page]].concat());

        for name in ["accept", "sold_out", "relay", "landing", "landing_rows", "end_to_end", "end_to_end_plain"] {
            compared(&report, name, 2);
        }
        let relay = &bar(&report, "relay")["more"];
        assert_eq!((&relay["entries"], &relay["left"]), (&700.into(), &0.into()), "{relay:#}");
        // The warm-up of 500 entries landed before.
        let landing = &bar(&report, "landing")["more"];
        assert_eq!((&landing["landed_units"], &landing["sold_units"]), (&1_200.into(), &1_200.into()), "{landing:#}");
        assert_eq!(bar(&report, "memory_settled")["more"]["trimmed"], 700, "every settled record went");
        let end_to_end = &bar(&report, "end_to_end")["more"];
        assert_eq!(end_to_end["drained"], true, "{end_to_end:#}");
        let latency = &bar(&report, "latency")["more"];
        assert_eq!(
            latency["accepted"], latency["requests"],
            "an open loop below the peak is never refused: {latency:#}"
        );
        assert_eq!(bar(&report, "latency_landed")["more"]["drained"], true);
        assert_eq!(bar(&report, "sold_out")["more"]["others"], 0, "everyone who came late heard 410");

        // Each process is told apart, and the load generator is one of them.
        for process in ["load generator", "api", "redis"] {
            assert!(bar(&report, "accept")["more"]["cpu"]["seconds"][process].is_number(), "{process}");
        }
        for role in ["api", "relay", "consumer", "reconcile"] {
            let peak = bar(&report, "memory_role")["more"]["peak_mib"][role].as_f64();
            assert!(peak.is_some_and(|mib| mib > 1.0), "{role}: {peak:?}");
        }
        let html = std::fs::read_to_string(page).unwrap();
        assert!(html.contains("end_to_end_plain") && html.contains("<polyline"), "{html}");
    });
}

#[test]
fn redis_writes_its_file_anew_when_it_is_asked() {
    run(async {
        let redis = own_redis::start("file-anew").await;
        let world = World::on_redis(&redis.url(), "file-anew", &[], &[]).await;
        let mut raw = RawRedis::of(&world).await;
        for _ in 0..200 {
            raw.call(&["SET", "written-often", &"x".repeat(10_000)]).await;
        }
        let store = &world.servers.redis;
        let before = store.file_bytes().await.unwrap();
        assert!(before > 2_000_000, "{before}");
        store.rewrite_file().await.unwrap();
        assert_eq!(store.file_rewrites_count().await.unwrap(), 1, "it is beside its other work");
        eventually("the rewrite is over", async || store.file_rewrites_count().await.unwrap() == 0).await;
        let after = store.file_bytes().await.unwrap();
        assert!(after < before / 10, "{after} of {before}");
    });
}

#[test]
fn the_bench_sells_a_crowd_exactly_its_units_and_survives_every_kill() {
    run(async {
        let report = bench(&["--only", "crowd", "--only", "recovery", "--users", "900"]);
        let crowd = &bar(&report, "crowd")["more"];
        assert_eq!((&crowd["users"], &crowd["landed_units"]), (&900.into(), &500.into()), "{crowd:#}");
        assert_eq!(crowd["crowd"]["accepted"], 500, "{crowd:#}");
        let answers = crowd["crowd"]["by_status"].as_array().unwrap();
        let told = |status: u64| -> u64 {
            answers.iter().filter(|row| row["status"] == status).map(|row| row["count"].as_u64().unwrap()).sum()
        };
        assert_eq!((told(202), told(410)), (500, 400), "everyone heard yes or sold out: {answers:#?}");
        assert_eq!(bar(&report, "crowd_exact")["holds"], true);
        for (name, killed) in [
            ("recovery", &["api", "relay", "consumer", "reconcile"][..]),
            ("recovery_server", &["redis", "rabbitmq", "mysql"]),
        ] {
            let seconds = &bar(&report, name)["more"]["seconds"];
            for victim in killed {
                assert!(seconds[*victim].is_number(), "{victim} did not come back: {seconds:#}");
            }
        }
    });
}

#[test]
fn the_bench_counts_what_each_strategy_sold() {
    run(async {
        let report = bench(&["--only", "strategies", "--entries", "2000"]);
        for exact in ["decr_first", "script", "lock", "watch", "db_guarded", "db_skip_locked", "ours", "ours_in_groups"]
        {
            let more = &bar(&report, &format!("strategy_{exact}"))["more"];
            // SKIP LOCKED may turn a buyer away while the last free rows are locked, and DECR first while others give back.
            let all = ["script", "watch", "db_guarded", "ours", "ours_in_groups"].contains(&exact);
            assert_eq!(
                (&more["stock"], &more["tries"], &more["oversold"]),
                (&200.into(), &1_000.into(), &0.into()),
                "{exact}: {more:#}"
            );
            assert!(!all || more["sold"] == 200, "{exact}: {more:#}");
        }
        let exact = bar(&report, "strategies_exact");
        assert_eq!((&exact["unit"], &exact["value"]), (&"violations".into(), &0.0.into()), "ours is exact: {exact:#}");
        for other in ["get_then_decr", "segments"] {
            assert!(bar(&report, &format!("strategy_{other}"))["more"]["sold"].as_u64() > Some(0), "{other}");
        }
        kills(&report);
    });
}

/// What a kill -9 of the application left of each strategy's sale, whose buyers were told yes 300 times and more.
///
/// That the field's script loses some is not a matter of luck: 16 buyers at once make orders with one command each, 4
/// writers at once write them with a transaction of four statements and a commit that is on the disk. However slow the
/// machine is, both are slowed, and the queue grows by far more than it shrinks from the first order to the kill. For
/// nothing to be lost it would have to be empty, with no transaction open, while everybody still buys.
fn kills(report: &Value) {
    let kill = |name: &str| bar(report, &format!("strategy_{name}"))["more"]["kill"].clone();
    // Not of the lock: on a slow machine it runs out under its holder, and two buyers share a unit.
    for name in ["get_then_decr", "decr_first", "script", "watch", "segments"] {
        let (kill, count) = (kill(name), |kill: &Value, field: &str| kill[field].as_i64().expect("a count"));
        assert!(count(&kill, "told") >= 300, "{name}: {kill:#}");
        assert!(count(&kill, "stranded") >= count(&kill, "lost"), "a lost order's unit is nobody's, {name}: {kill:#}");
    }
    let script = kill("script");
    assert!(script["lost"].as_u64() > Some(0), "what was in memory only is gone: {script:#}");
    for name in ["db_guarded", "db_skip_locked", "ours", "ours_in_groups"] {
        let kill = kill(name);
        assert_eq!((&kill["lost"], &kill["stranded"]), (&0.into(), &0.into()), "{name}: {kill:#}");
        assert!(kill["told"].as_u64() >= Some(300) && kill["orders"].as_u64() >= kill["told"].as_u64(), "{kill:#}");
    }
}

#[test]
fn the_bench_tells_what_an_order_costs_as_everything_grows() {
    run(async {
        let report = bench(&["--only", "growth", "--entries", "2000"]);
        let sizes = |name: &str| -> Vec<u64> {
            let points = bar(&report, &format!("growth_{name}"))["more"]["points"].as_array().unwrap();
            points.iter().map(|point| point["size"].as_u64().unwrap()).collect()
        };
        for name in ["backlog", "ledger", "memory"] {
            assert_eq!(sizes(name), [20, 200, 2_000], "{name}");
        }
        assert_eq!((sizes("sales"), sizes("shards")), (vec![1, 10, 100], vec![1, 8, 64]));
        assert_eq!(sizes("stock"), [200, 2_000, 20_000, 200_000], "twice the orders of a probe, and by tens");
        for name in ["backlog", "ledger", "stock", "sales", "shards"] {
            let bar = bar(&report, &format!("growth_{name}"));
            // Each step has its servers' work in it, and the ratio is told and judged.
            for (step, process) in [("reserve", "redis"), ("relay", "rabbitmq"), ("landing", "mysql")] {
                for point in bar["more"]["points"].as_array().unwrap() {
                    let us = |field: &serde_json::Value| field.as_f64().is_some_and(|us| us > 0.0);
                    let cost = &point[step];
                    let worked = us(&cost["by_process_us"][process]) && us(&cost["by_process_us"]["seckill"]);
                    assert!(worked && us(&cost["elapsed_us"]), "{name}: {point:#}");
                }
            }
            assert!(bar["value"].as_f64().is_some_and(|ratio| ratio > 0.0) && bar["holds"].is_boolean(), "{bar:#}");
        }
        // What stays of a settled request is its buyer, far less than it took in flight.
        let memory = bar(&report, "growth_memory")["more"]["points"].as_array().unwrap().clone();
        let largest = memory.last().unwrap();
        let bytes = |field: &str| largest[field].as_f64().unwrap();
        assert!(bytes("in_flight") > 100.0, "{largest:#}");
        assert!(bytes("settled") < bytes("in_flight") / 2.0, "{largest:#}");
        assert!(bytes("closed") < bytes("settled") / 2.0, "a closed sale's keys go: {largest:#}");
        assert_eq!(bar(&report, "growth_shards_exact")["holds"], true);
    });
}
