//! `seckill doctor`, run with settings only.

use super::programs::call;
use serde_json::Value;

/// Runs the doctor: exit code, and `server name` of the lines with a verdict.
pub fn doctor(set: &[String]) -> (Option<i32>, impl Fn(&str) -> Vec<String> + use<>, String) {
    let mut args = vec!["--data-dir", "/nonexistent"];
    // The queues of `QUICK`.
    args.extend(["--set", "p4_persist.retry_delay_ms=200", "--set", "p4_persist.retry_delay_max_ms=400"]);
    // What any machine allows.
    args.extend(["--set", "http.listen_backlog=128"]);
    for set in set {
        args.extend(["--set", set.as_str()]);
    }
    args.push("doctor");
    let (_, text, _) = call(&args);
    args.push("--json");
    let (code, out, err) = call(&args);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let checks = answer["checks"].as_array().expect("checks").clone();
    let found = move |verdict: &str| {
        let lines = checks.iter().filter(|line| line["verdict"] == verdict);
        lines.map(|line| format!("{} {}", line["server"].as_str().unwrap(), line["name"].as_str().unwrap())).collect()
    };
    (code, found, text)
}
