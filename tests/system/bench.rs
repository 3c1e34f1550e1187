//! `seckill bench` at a tiny scale, on servers and roles of its own: what it says about correctness must be right. Its speeds
//! mean nothing here and are not judged.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::bench::{bar, bench, compared, growth};
use crate::support::processes::own_redis;
use crate::support::processes::programs::Folder;
use crate::support::world::{eventually, run, run_waiting};
use seckill_bench::baseline::redis_info;

#[test]
fn the_bench_moves_every_entry_and_measures_what_it_compares_with() {
    run_waiting(async {
        let folder = Folder::new("bench-page");
        let page = folder.path().join("bench.html");
        let page = page.to_str().unwrap();
        let only = ["accept", "sold_out", "poll", "latency", "relay", "landing", "memory", "end_to_end"];
        let only: Vec<&str> = only.into_iter().flat_map(|name| ["--only", name]).collect();
        let report = bench(&[&only[..], &["--entries", "700", "--runs", "2", "--html", page]].concat());

        for name in ["accept", "sold_out", "relay", "landing", "landing_rows", "end_to_end", "end_to_end_plain"] {
            compared(&report, name, 2);
        }
        for name in ["cost_api", "cost_redis", "cost_redis_set", "cost_redis_repeats", "cost_poll", "latency_bare"] {
            compared(&report, name, 2);
        }
        let accept = &bar(&report, "accept")["more"];
        assert_eq!(accept["accepted"], accept["requests"], "each buyer buys once: {accept:#}");
        let repeats = &bar(&report, "cost_redis_repeats")["more"];
        assert!(repeats["accepted"].as_u64() < repeats["requests"].as_u64(), "some click twice: {repeats:#}");
        assert_eq!(bar(&report, "cost_poll")["more"]["queued"], 500, "nothing lands while it is asked about");
        assert!(bar(&report, "cost_end_to_end")["ratio"].is_null(), "no other build was named");
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
        let bare = &bar(&report, "latency_bare")["more"];
        assert_eq!((&bare["accepted"], &bare["accepted"]), (&bare["requests"], &bare["bare_accepted"]), "{bare:#}");
        assert_eq!(bar(&report, "latency_landed")["more"]["drained"], true);
        assert_eq!(bar(&report, "sold_out")["more"]["others"], 0, "everyone who came late got 410");

        // Each process is reported apart, and the load generator is one of them.
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
fn public_key_tokens_are_compared_with_secret_ones_by_buyers_who_ask_three_times() {
    run_waiting(async {
        // Nothing lands here, as intended: a bound that is reached at once, as the default is on a slow machine, refuses no buyer.
        let folder = Folder::new("bench-lag");
        let config = folder.path().join("seckill.toml");
        std::fs::write(&config, "[p1_entry]\nlag_max_ms = 2000\n").unwrap();
        let report = bench(&["--only", "accept_rs256", "--runs", "2", "--config", config.to_str().unwrap()]);
        compared(&report, "accept_rs256", 2);
        let bar = bar(&report, "accept_rs256");
        assert_eq!(bar["rule"], "at_least");
        for kind in ["rs256", "hs256"] {
            let asked = &bar["more"][kind];
            // Everyone was answered three times, and as hoped for. (On a slow machine there are fewer buyers.)
            let accepted = asked["accepted"].as_u64().unwrap();
            assert!(accepted >= 600, "{asked:#}");
            for (answers, status) in [("token_answers", 201), ("answers", 202), ("status_answers", 200)] {
                let answers = asked[answers].as_array().unwrap();
                let of_status = |row: &&serde_json::Value| row["status"] == status;
                let count: u64 = answers.iter().filter(of_status).map(|row| row["count"].as_u64().unwrap()).sum();
                assert_eq!((count, answers.len()), (accepted, 1), "{asked:#}");
            }
            assert!(asked["cpu"]["seconds"]["api"].as_f64().is_some_and(|s| s > 0.0), "{asked:#}");
            assert!(asked["cpu"]["machine"]["idle"].is_number(), "{asked:#}");
        }
    });
}

#[test]
fn a_role_a_server_and_a_host_that_vanish_are_survived_and_timed() {
    run_waiting(async {
        let report = bench(&["--only", "recovery"]);
        let names = [
            ("recovery", vec!["api", "consumer", "reconcile", "relay"]),
            ("recovery_server", vec!["mysql", "rabbitmq", "redis"]),
            ("recovery_host", vec!["mysql", "rabbitmq", "redis"]),
        ];
        for (name, victims) in names {
            let bar = bar(&report, name);
            let seconds = bar["more"]["seconds"].as_object().unwrap();
            assert_eq!(seconds.keys().map(String::as_str).collect::<Vec<_>>(), victims, "{bar:#}");
            // Each came back; how soon is not the subject here.
            assert!(seconds.values().all(serde_json::Value::is_number), "{bar:#}");
            assert!(bar["holds"].is_boolean() && bar["rule"] == "at_most", "{bar:#}");
        }
        let more = &bar(&report, "recovery_host")["more"];
        assert!(more["sold"].as_i64().is_some_and(|sold| sold > 0) && more["landed"] == more["sold"], "{more:#}");
    });
}

#[test]
fn what_an_order_costs_is_compared_with_another_build() {
    run_waiting(async {
        let same = env!("CARGO_BIN_EXE_seckill");
        let report = bench(&["--only", "end_to_end", "--against", same]);
        compared(&report, "cost_end_to_end", 1);
        assert_eq!(bar(&report, "cost_end_to_end")["rule"], "ratio_at_most");
    });
}

#[test]
fn a_rush_opens_its_connections_inside_the_measurement_and_is_shown_beside_another_build() {
    run_waiting(async {
        let same = env!("CARGO_BIN_EXE_seckill");
        let report = bench(&["--only", "rush", "--rush", "400", "--against", same]);
        let rush = bar(&report, "rush");
        assert!(rush["holds"].is_boolean() && rush["baseline"].is_number(), "{rush:#}");
        for run in ["rush", "other_build"] {
            let run = &rush["more"][run];
            let figures = &run["figures"];
            // A hundred kept their connection and asked again; each of the others had one of its own for one purchase.
            assert_eq!((&figures["buyers"], &figures["kept_asked"]), (&400.into(), &100.into()), "{run:#}");
            assert_eq!((&figures["answered"], &figures["kept"]), (&400.into(), &100.into()), "{run:#}");
            let answers = |outcomes: &str| -> u64 {
                let outcomes = figures[outcomes].as_object().unwrap();
                outcomes.values().map(|waits| waits["count"].as_u64().unwrap()).sum()
            };
            assert_eq!((answers("by_outcome"), answers("slowest")), (400, 4), "{run:#}");
            assert_eq!(run["landed_units"], figures["by_outcome"]["202"]["count"], "who got yes has an order: {run:#}");
            for counter in ["syn_retransmits", "listen_drops", "listen_overflows", "timeouts", "retransmits"] {
                assert!(run["tcp"][counter].is_u64(), "{counter}: {run:#}");
            }
            assert!(run["cpu"]["seconds"]["load generator"].as_f64().is_some_and(|s| s > 0.0), "{run:#}");
            assert!(run["api_peak_mib"].as_f64().is_some_and(|mib| mib > 1.0), "{run:#}");
        }
        for name in ["rush_within_1s", "rush_p99"] {
            assert!(bar(&report, name)["value"].is_number() && bar(&report, name)["holds"].is_null());
        }
    });
}

#[test]
fn those_who_wait_hold_their_polls_while_others_buy_and_a_replica_is_waited_for() {
    run_waiting(async {
        let report = bench(&["--only", "waiters", "--waiters", "60"]);
        for name in ["waiters", "waiters_replicated"] {
            let more = &bar(&report, name)["more"];
            let polls = ["waiters", "polls_early", "polls_broken"].map(|name| more[name].as_u64());
            assert_eq!(polls, [Some(60), Some(0), Some(0)], "{more:#}");
            for (accepted, requests) in [("accepted", "requests"), ("accepted_without", "requests_without")] {
                assert_eq!(more[accepted], more[requests], "{name}: everyone bought: {more:#}");
                assert!(more[accepted].as_u64().is_some_and(|count| count > 0), "{name}: {more:#}");
            }
            assert!(bar(&report, name)["baseline"].is_number(), "{name}");
        }
    });
}

#[test]
fn redis_rewrites_its_file_on_request() {
    run(async {
        let (_server, world) = own_redis::world("file-anew", &[], &[]).await;
        let mut raw = RawRedis::of(&world).await;
        for _ in 0..200 {
            raw.call(&["SET", "written-often", &"x".repeat(10_000)]).await;
        }
        let store = &world.servers.redis;
        let before = redis_info::file_bytes(store).await.unwrap();
        assert!(before > 2_000_000, "{before}");
        redis_info::rewrite_file(store).await.unwrap();
        assert_eq!(redis_info::file_rewrites_count(store).await.unwrap(), 1, "it is beside its other work");
        eventually("the rewrite is over", async || redis_info::file_rewrites_count(store).await.unwrap() == 0).await;
        let after = redis_info::file_bytes(store).await.unwrap();
        assert!(after < before / 10, "{after} of {before}");
    });
}

/// The short case; `tests/long` has larger ones.
#[test]
fn the_bench_reports_what_an_order_costs_as_everything_grows_a_little() {
    run_waiting(async { growth(1_000) });
}

#[test]
fn the_bench_fills_a_sale_in_bulk_and_runs_the_reconciler_beside_it() {
    run_waiting(async {
        let report = bench(&["--only", "growth_reconcile", "--orders", "30000"]);
        let bar = bar(&report, "growth_reconcile");
        let points = bar["more"]["points"].as_array().unwrap();
        assert_eq!(
            points.iter().map(|point| point["orders"].as_u64()).collect::<Vec<_>>(),
            [Some(10_000), Some(30_000)]
        );
        for point in points {
            let spent = |round: &serde_json::Value| round["cpu_ms"].as_f64().is_some_and(|ms| ms > 0.0);
            assert!(spent(&point["first"]) && spent(&point["later"]), "{point:#}");
            assert_eq!(point["rounds"].as_array().map(Vec::len), Some(7));
        }
        assert!(bar["value"].as_f64().is_some_and(|ratio| ratio > 0.0) && bar["holds"].is_boolean(), "{bar:#}");
    });
}
