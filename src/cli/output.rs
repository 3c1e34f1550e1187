//! Printing: tables for people, one JSON document for programs.
//!
//! Output that cannot be written stops no command in the middle of its work: what is printed after that is dropped, and the exit
//! code says it, unless only the reader has gone (`… | head`).

use super::failure::FAILED;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why standard output took no more.
static LOST: OnceLock<io::Error> = OnceLock::new();

fn print(text: &impl Display) {
    if !is_lost() {
        let mut out = io::stdout().lock();
        note(writeln!(out, "{text}").and_then(|()| out.flush()));
    }
}

/// Remembers the first error of standard output.
pub(super) fn note(written: io::Result<()>) {
    if let Err(error) = written {
        LOST.get_or_init(|| error);
    }
}

/// Whether standard output takes no more: a command that does nothing but print may end.
pub(super) fn is_lost() -> bool {
    LOST.get().is_some()
}

/// The exit code of a command that ends with `code`, when nothing more is printed. A reader that has gone has what it wanted.
pub(super) fn ended(code: u8) -> u8 {
    match LOST.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            complain(&format!("standard output cannot be written, what was printed is not whole: {error}"));
            code.max(FAILED)
        }
        Some(_) | None => code,
    }
}

/// Standard error is the last place there is: what it does not take is lost.
fn print_aside(text: &impl Display) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// A line for a person, on standard output.
pub fn line(text: &str) {
    print(&text);
}

/// A complaint, on standard error.
pub(crate) fn complain(text: &str) {
    print_aside(&format_args!("error: {text}"));
}

/// A remark that is not the answer, on standard error.
pub fn remark(text: &str) {
    print_aside(&text);
}

/// Below a page that is not the last one: the argument that shows the next one.
pub(crate) fn more(argument: &str, next: Option<impl Display>) {
    if let Some(next) = next {
        remark(&format!("there are more: --{argument} {next}"));
    }
}

/// One JSON document on standard output, nothing else.
pub fn json(value: &impl Serialize) {
    print(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A table with a header.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    print(&table);
}
