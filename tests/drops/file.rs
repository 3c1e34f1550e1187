//! The shop's file, and the move of its times to now.
//!
//! The file of a drop has the times that a shop would write. For a run every moment in it (starts, releases, ends) keeps its order:
//! the first one is [`LEAD_MS`] from now ([`ENTRIES_LEAD_MS`] where it is the close of a raffle), each of the others [`STEP_MS`] or more after the one before, so that hours of waiting become
//! seconds. Where a payment is due, it is due within [`PAY_WITHIN_S`] seconds, with a grace of one. Nothing else is changed; on a stack
//! that goes on living the ids get a suffix.

use chrono::{DateTime, SecondsFormat};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Time to create and warm the drop, and to come too early.
const LEAD_MS: i64 = 5_000;
/// Between two moments of a file.
const STEP_MS: i64 = 4_000;
/// All of them together, at least: room for a death of each role.
const SELLING_MS: i64 = 10_000;
/// What is unsold moves two seconds after the end, and is to be bought then.
const AFTER_ROLLOVER_MS: i64 = 9_000;
/// Where a line is: room for offers that are not paid, and for those that follow.
const OFFERS_MS: i64 = 14_000;
/// Time to create a drop with a raffle, and to enter it.
const ENTRIES_LEAD_MS: i64 = 10_000;
/// Seconds to pay.
const PAY_WITHIN_S: u32 = 3;

/// The folder of the files.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drops")
}

/// The names of all drops, by their files.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("a folder").flatten();
    let names = files.filter_map(|file| file.file_name().to_str()?.strip_suffix(".json").map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The file of a drop, as the shop wrote it: a name of ours, or a path.
pub fn read(name: &str) -> Value {
    let path = if name.contains('/') { PathBuf::from(name) } else { folder().join(format!("{name}.json")) };
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; a path, or one of {}", path.display(), names().join(", ")));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The places of a file that are moments.
fn moments(file: &mut Value) -> Vec<&mut Value> {
    let mut found = Vec::new();
    for sale in file["sales"].as_array_mut().expect("sales") {
        for (field, value) in sale.as_object_mut().expect("a sale") {
            match field.as_str() {
                "starts_at" | "ends_at" | "line_closes_at" => found.push(value),
                "releases" => {
                    found.extend(value.as_array_mut().expect("releases").iter_mut().map(|one| &mut one["at"]));
                }
                _ => {}
            }
        }
    }
    found
}

fn unix_ms(moment: &Value) -> i64 {
    DateTime::parse_from_rfc3339(moment.as_str().expect("a time")).expect("RFC 3339").timestamp_millis()
}

/// The file with its times moved to `now_ms`, and `suffix` behind each id.
pub fn moved(mut file: Value, now_ms: i64, suffix: &str) -> Value {
    let mut known: Vec<i64> = moments(&mut file).into_iter().map(|moment| unix_ms(moment)).collect();
    known.sort_unstable();
    known.dedup();
    let any = |field: &str| file["sales"].as_array().expect("sales").iter().any(|sale| sale[field].is_string());
    let lead = if any("line_closes_at") { ENTRIES_LEAD_MS } else { LEAD_MS };
    let at_least = match (any("rollover_to"), any("line")) {
        (_, true) => OFFERS_MS,
        (true, false) => AFTER_ROLLOVER_MS,
        (false, false) => 0,
    };
    let gaps = i64::try_from(known.len()).expect("few") - 1;
    let step = STEP_MS.max(SELLING_MS / gaps);
    let place = |moment: i64| -> i64 {
        let at = i64::try_from(known.binary_search(&moment).expect("known")).expect("few");
        let more = if at == gaps { (at_least - step).max(0) } else { 0 };
        now_ms + lead + at * step + more
    };
    for moment in moments(&mut file) {
        let time = DateTime::from_timestamp_millis(place(unix_ms(moment))).expect("a time");
        *moment = time.to_rfc3339_opts(SecondsFormat::Millis, true).into();
    }
    let renamed = |id: &mut Value| {
        if let Some(known) = id.as_str() {
            *id = format!("{known}{suffix}").into();
        }
    };
    renamed(&mut file["drop_id"]);
    for sale in file["sales"].as_array_mut().expect("sales") {
        renamed(&mut sale["sale_id"]);
        if sale.get("rollover_to").is_some() {
            renamed(&mut sale["rollover_to"]);
        }
        if sale["pay_within_s"].is_u64() {
            (sale["pay_within_s"], sale["pay_grace_s"]) = (PAY_WITHIN_S.into(), 1.into());
        }
    }
    file
}

#[test]
fn times_keep_their_order_and_only_their_distances_change() {
    let file = moved(read("members"), 1_000_000, "-x");
    let at = |sale: usize, field: &str| unix_ms(&file["sales"][sale][field]);
    assert_eq!(at(0, "starts_at"), 1_000_000 + LEAD_MS);
    assert_eq!(at(0, "ends_at"), at(1, "starts_at"));
    assert!(
        at(1, "ends_at") - at(1, "starts_at") >= AFTER_ROLLOVER_MS
            && at(1, "starts_at") - at(0, "starts_at") >= STEP_MS
    );
    let rolls_to = file["sales"][0]["rollover_to"].as_str();
    assert_eq!((file["drop_id"].as_str(), rolls_to), (Some("members-x"), Some("jacket-x")));
    for name in names() {
        let (shop, run) = (read(&name), moved(read(&name), 1_000_000, ""));
        let fields = |file: &Value, field: &str| -> Vec<Value> {
            file["sales"].as_array().unwrap().iter().map(|sale| sale[field].clone()).collect()
        };
        for field in
            ["sale_id", "stock", "limit", "needs", "price_cents", "rollover_to", "hidden", "token_required", "line"]
        {
            assert_eq!(fields(&shop, field), fields(&run, field), "{name}");
        }
    }
}
