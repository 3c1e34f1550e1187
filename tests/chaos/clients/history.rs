//! The history: one JSON line per attempt, written when the attempt is over.

use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One attempt of one client and what it answer.
#[derive(Debug, Serialize)]
pub struct Attempt<'a> {
    /// Order of beginning.
    pub seq: u64,
    /// Who.
    pub client: u64,
    /// The buyer it acts for.
    pub user: &'a str,
    /// Where.
    pub sale: &'a str,
    /// The request, when the client knows it (before or by this answer).
    pub rid: Option<&'a str>,
    /// Whether a purchase token was sent.
    pub token: bool,
    /// buy, token, status, pay, cancel.
    pub kind: &'static str,
    /// The payment that is reported.
    pub payment: Option<&'a str>,
    /// Units wanted.
    pub quantity: u32,
    /// By the harness' clock.
    pub invoke_ms: u64,
    /// By the harness' clock.
    pub complete_ms: u64,
    /// What it comes to.
    pub result: &'a str,
    /// The answer's code.
    pub code: Option<&'a str>,
    /// The reason of a failure.
    pub reason: Option<&'a str>,
    /// The request that a refusal names, when it is another one.
    pub other_rid: Option<&'a str>,
}

/// The file.
pub struct History {
    seq: AtomicU64,
    file: Mutex<BufWriter<File>>,
}

impl History {
    /// An empty one.
    pub fn create(path: &Path) -> Self {
        let file = File::create(path).expect("the history's file");
        Self { seq: AtomicU64::new(0), file: Mutex::new(BufWriter::new(file)) }
    }

    /// The number of an attempt that begins now.
    pub fn begin(&self) -> u64 {
        self.seq.fetch_add(1, Relaxed)
    }

    /// Writes down an attempt that is over.
    pub fn write(&self, attempt: &Attempt<'_>) {
        let mut line = serde_json::to_vec(attempt).expect("json");
        line.push(b'\n');
        self.file.lock().unwrap().write_all(&line).expect("the history's file");
    }

    /// Everything is in the file.
    pub fn flush(&self) {
        self.file.lock().unwrap().flush().expect("the history's file");
    }
}
