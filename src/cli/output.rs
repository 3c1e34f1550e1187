//! Printing: tables for people, one JSON document for programs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the only place that prints")]

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

/// A line for a person, on standard output.
pub fn line(text: &str) {
    println!("{text}");
}

/// A complaint, on standard error.
pub(crate) fn complain(text: &str) {
    eprintln!("error: {text}");
}

/// A remark that is not the answer, on standard error.
pub fn remark(text: &str) {
    eprintln!("{text}");
}

/// Below a page that is not the last one: the argument that shows the next one.
pub(crate) fn more(argument: &str, next: Option<impl std::fmt::Display>) {
    if let Some(next) = next {
        remark(&format!("there are more: --{argument} {next}"));
    }
}

/// One JSON document on standard output, nothing else.
pub fn json(value: &impl Serialize) {
    println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A table with a header.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    println!("{table}");
}

/// Unix milliseconds as RFC 3339.
#[must_use]
pub(crate) fn time(unix_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(unix_ms)
        .map_or_else(|| unix_ms.to_string(), |time| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
}
