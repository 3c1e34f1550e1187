//! The tables of `docs/proof.md` on three hosts are made from the recorded runs (`RECORD=1 make hosts`).

use crate::markdown::{Page, root};
use serde_json::Value;
use std::fmt::Write;
use std::fs;

const PAGE: &str = "docs/proof.md";
const RECORDS: &str = "docs/data/hosts";
const BEGIN: &str = "<!-- three hosts: written by UPDATE_DOCS=1 cargo test --test docs -->\n";
const END: &str = "<!-- end of three hosts -->";

/// The recorded runs whose file ends like this, the newest last: path and content.
fn records(kind: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(RECORDS)).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.contains(kind) {
            let text = fs::read_to_string(entry.path()).unwrap();
            found.push((format!("{RECORDS}/{name}"), serde_json::from_str(&text).unwrap()));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn seconds(value: &Value) -> String {
    value.as_f64().map_or("–".to_owned(), |seconds| format!("{seconds:.1}"))
}

fn source(file: &str, run: &Value, command: &str) -> String {
    let text = |key: &str| run[key].as_str().unwrap_or_default().to_owned();
    let (date, commit, cores) = (text("date"), text("commit"), &run["cores"]);
    let link = file.trim_start_matches("docs/");
    let build = if run["program"] == "release" { "Release build" } else { "Debug build" };
    let loads = run["scenes"].as_array().unwrap().iter().filter_map(|scene| scene["load_1m"].as_f64());
    let (least, most) = loads.fold((f64::MAX, 0.0_f64), |(least, most), load| (least.min(load), most.max(load)));
    format!(
        "Source: `{command}`, {date}, commit {commit},\n[raw]({link}).\n{build}, {cores} cores with a load average of \
         {least:.0} to {most:.0} (other work beside it);\nbroker and database by {}.\n\n",
        way(run)
    )
}

/// How the processes reach the servers, and buyers the apis.
fn way(run: &Value) -> &'static str {
    if run["balancers"] == false { "lists of addresses" } else { "haproxy, as the apis" }
}

/// One row a scene.
fn scenes(file: &str, run: &Value) -> String {
    let command = match file {
        _ if file.contains("replicas") => "RECORD=1 make hosts ON=on_sentinel",
        _ if file.contains("balancer") => "RECORD=1 make hosts WAY=balancer SCENES=power-cut-",
        _ => "RECORD=1 make hosts",
    };
    let mut table = source(file, run, command);
    table.push_str(
        "| scene | lost | doubled | oversold | other | other shards | own shards | bought and landed | last late order | after its end | by hand |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for scene in run["scenes"].as_array().unwrap() {
        let count = |key: &str| scene[key].as_u64().unwrap();
        let times = &scene["seconds"];
        let by_hand: Vec<&str> = scene["by_hand"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let cells = [
            format!("`{}`", scene["scene"].as_str().unwrap()),
            count("lost").to_string(),
            count("doubled").to_string(),
            count("oversold").to_string(),
            count("other_violations").to_string(),
            seconds(&times["others"]),
            seconds(&times["own"]),
            seconds(&times["again"]),
            seconds(&times["landing"]),
            seconds(&times["back"]),
            by_hand.join("; "),
        ];
        writeln!(table, "| {} |", cells.join(" | ").replace("|  |", "| |")).unwrap();
    }
    table
}

/// Median and longest of all faults, a fault during which it never came counted as the longest; and how many these are.
fn median_and_longest(seconds: impl Iterator<Item = Option<f64>>) -> String {
    let mut found: Vec<f64> = seconds.map(|seconds| seconds.unwrap_or(f64::INFINITY)).collect();
    found.sort_by(f64::total_cmp);
    let shown = |seconds: Option<&f64>| match seconds {
        Some(seconds) if seconds.is_finite() => format!("{seconds:.1}"),
        Some(_) | None => "–".to_owned(),
    };
    let never = found.iter().filter(|seconds| seconds.is_infinite()).count();
    let longest = found.iter().rfind(|seconds| seconds.is_finite());
    let not = if never > 0 { format!(" · {never} not") } else { String::new() };
    format!("{} · {}{not}", shown(found.get(found.len() / 2)), shown(longest))
}

/// One row a run.
fn random(runs: &[(String, Value)]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut table = "\n| seed | way | minutes | host faults | accepted by the crowd | lost | doubled | oversold | other | by hand | other shards | own shards, median and longest | after its end | late orders after its end | whole after, median and longest | run |\n\
                     |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (file, run) in runs {
        let all = run["scenes"].as_array().unwrap();
        let sum = |key: &str| all.iter().map(|scene| scene[key].as_u64().unwrap()).sum::<u64>();
        let accepted: u64 = all.iter().map(|scene| scene["crowd"]["accepted"].as_u64().unwrap()).sum();
        let by_hand: usize = all.iter().map(|scene| scene["by_hand"].as_array().unwrap().len()).sum();
        let times = |key: &str| median_and_longest(all.iter().map(|scene| scene["seconds"][key].as_f64()));
        let whole = median_and_longest(all.iter().map(|scene| scene["whole_after_s"].as_f64()));
        // A fault of connections has no host, and so no shards elsewhere.
        let of_hosts = all.iter().filter(|scene| !scene["hosts"].as_array().unwrap().is_empty());
        let others = median_and_longest(of_hosts.map(|scene| scene["seconds"]["others"].as_f64()));
        let minutes = run["run_s"].as_u64().unwrap() / 60;
        let (date, commit) = (run["date"].as_str().unwrap(), run["commit"].as_str().unwrap());
        writeln!(
            table,
            "| {} | {} | {minutes} | {} | {accepted} | {} | {} | {} | {} | {by_hand} | {others} | {} | {} | {} | {whole} | [{date}, {commit}]({}) |",
            run["seed"],
            way(run),
            run["faults"],
            sum("lost"),
            sum("doubled"),
            sum("oversold"),
            sum("other_violations"),
            times("own"),
            times("back"),
            times("back_landing"),
            file.trim_start_matches("docs/")
        )
        .unwrap();
    }
    table
}

/// The seconds of one scene.
fn line(run: &Value, name: &str) -> String {
    let scene = run["scenes"].as_array().unwrap().iter().find(|scene| scene["scene"] == name);
    let Some(scene) = scene else { return String::new() };
    let each = scene["accepted_refused_confirmed_each_s"].as_array().unwrap();
    let column = |at: usize| {
        let counts: Vec<String> = each.iter().take(35).map(|second| second[at].to_string()).collect();
        counts.join(" ")
    };
    format!(
        "\n`{name}`, each second from five before the fault on, purchases of the probes:\n\n\
         ```text\naccepted  {}\nrefused   {}\nconfirmed {}\n```\n",
        column(0),
        column(1),
        column(2)
    )
}

#[test]
fn the_tables_of_three_hosts_are_made_from_their_records() {
    let page = Page::read(PAGE);
    let (before, rest) = page.text.split_once(BEGIN).expect("the tables' place");
    let (_, after) = rest.split_once(END).expect("the tables' end");
    let played = records("scenes");
    assert!(!played.is_empty(), "no recorded run of the scenes");
    let mut tables = String::new();
    for (file, run) in &played {
        tables += &scenes(file, run);
        tables.push_str(&line(run, "power-cut-redis"));
        tables.push('\n');
    }
    tables += random(&records("random")).trim_start();
    let printed = format!("{before}{BEGIN}\n{tables}\n{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // In one piece: other tests read the page meanwhile.
        let whole = root().join(format!("{PAGE}.new"));
        fs::write(&whole, &printed).unwrap();
        fs::rename(whole, root().join(PAGE)).unwrap();
    }
    let written = fs::read_to_string(root().join(PAGE)).unwrap();
    assert_eq!(written, printed, "UPDATE_DOCS=1 cargo test --test docs writes the tables of {PAGE}");
}

/// A record may be red: then the page says so beside the table, with the file's name and what became of it.
#[test]
fn a_recorded_run_that_is_red_is_explained_on_the_page() {
    let page = Page::read(PAGE);
    let (before, rest) = page.text.split_once(BEGIN).expect("the tables' place");
    let (_, after) = rest.split_once(END).expect("the tables' end");
    for (file, run) in [records("scenes"), records("random")].concat() {
        for scene in run["scenes"].as_array().unwrap() {
            let found = ["lost", "doubled", "oversold", "other_violations"].iter().any(|what| scene[*what] != 0);
            let late = scene["not_as_promised"].as_array().is_some_and(|broken| !broken.is_empty());
            let name = file.rsplit('/').next().unwrap();
            assert!(
                !(found || late || !scene["unrest"].is_null()) || before.contains(name) || after.contains(name),
                "{PAGE} has to explain {file}: {} {} {} {}",
                scene["scene"],
                scene["violations"],
                scene["unrest"],
                scene["not_as_promised"]
            );
        }
    }
}
