//! `seckill bench` at a tiny scale: runs of it, and what its report says.

use super::programs::call;
use serde_json::Value;
use std::path::Path;

/// Runs it to its end with `--json`; every sale of it added up.
pub fn bench(args: &[&str]) -> Value {
    let program = Path::new(env!("CARGO_BIN_EXE_seckill")).with_file_name("seckill-bench");
    assert!(program.exists(), "{} is not there: run cargo build --features faults", program.display());
    let (code, out, err) =
        call(&[&["bench", "--quick", "--json", "--seconds", "0.3", "--connections", "8"], args].concat());
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_eq!((code, &report["consistent"]), (Some(0), &Value::Bool(true)), "{report:#}{err}");
    let audits = report["audits"].as_array().expect("audits");
    assert!(!audits.is_empty() && audits.iter().all(|audit| audit["consistent"] == true), "{audits:#?}");
    report
}

/// One of its bars.
pub fn bar<'a>(report: &'a Value, name: &str) -> &'a Value {
    let bars = report["bars"].as_array().expect("bars");
    bars.iter().find(|bar| bar["name"] == name).unwrap_or_else(|| panic!("no bar {name}: {report:#}"))
}

/// Everything was counted, and what it is compared with was really measured. `end_to_end` may be 0: in a third of a second on a
/// busy machine nothing need have landed yet, and its `drained` says that all did afterwards.
pub fn compared(report: &Value, name: &str, runs: usize) {
    let bar = bar(report, name);
    let positive = |field: &str| bar[field].as_f64().is_some_and(|value| value > 0.0);
    let measured = name.starts_with("end_to_end") || positive("value") && positive("ratio");
    assert!(measured && positive("baseline") && positive("bar"), "{bar:#}");
    assert_eq!((bar["runs"].as_array().map(Vec::len), bar["holds"].is_boolean()), (Some(runs), true), "{bar:#}");
}

/// `growth` up to this many orders: every kind and size is there, and what it is judged by.
pub fn growth(entries: u64) {
    let report = bench(&["--only", "growth", "--entries", &entries.to_string()]);
    let sizes = |name: &str| -> Vec<u64> {
        let points = bar(&report, &format!("growth_{name}"))["more"]["points"].as_array().unwrap();
        points.iter().map(|point| point["size"].as_u64().unwrap()).collect()
    };
    for name in ["backlog", "ledger", "memory"] {
        assert_eq!(sizes(name), [entries / 100, entries / 10, entries], "{name}");
    }
    assert_eq!((sizes("sales"), sizes("shards")), (vec![1, 10, 100], vec![1, 8, 64]));
    let probe = (entries / 20).max(100);
    assert_eq!(
        sizes("stock"),
        [2, 20, 200, 2_000].map(|each| each * probe),
        "twice the orders of a probe, and by tens"
    );
    for name in ["backlog", "ledger", "stock", "sales", "shards"] {
        let bar = bar(&report, &format!("growth_{name}"));
        // Each step has its servers' work in it, and the ratio is reported and judged.
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
    // What stays of a settled request is its buyer: about half of what it took in flight.
    let memory = bar(&report, "growth_memory")["more"]["points"].as_array().unwrap().clone();
    let largest = memory.last().unwrap();
    let bytes = |field: &str| largest[field].as_f64().unwrap();
    assert!(bytes("in_flight") > 100.0, "{largest:#}");
    assert!(bytes("settled") < bytes("in_flight") * 0.6, "{largest:#}");
    assert!(bytes("closed") < bytes("settled") / 2.0, "a closed sale's keys go: {largest:#}");
    assert_eq!(bar(&report, "growth_shards_exact")["holds"], true);
}
