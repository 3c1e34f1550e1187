//! The lines of a run, read from the files that `src/trace_points.rs` writes.
//!
//! Input: the folder. Output: each process with its lines, in its own order. Lines of after the moment at which the reading began
//! are left out, so that no line is there whose cause is not.

use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// A word that many lines share.
pub type Word = Arc<str>;

/// One line. Which fields there are depends on the point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    pub n: u64,
    pub at: u64,
    pub point: Option<Word>,
    pub rid: Option<u64>,
    pub sale: Option<Word>,
    pub user: Option<Word>,
    pub qty: Option<u64>,
    pub shard: Option<u16>,
    pub epoch: Option<u32>,
    pub no: Option<u64>,
    pub attempts: Option<u32>,
    pub units: Option<i64>,
    /// The entry of the outbox, or the tag of a delivery.
    pub thing: Option<Word>,
    /// The verdict, the state or the event.
    pub verdict: Option<Word>,
    pub outcome: Option<Word>,
    pub reason: Option<Word>,
    pub by: Option<Word>,
    /// The grant, the transfer or the payment.
    pub about: Option<Word>,
    pub replicated: Option<bool>,
}

#[derive(Deserialize)]
struct Written {
    n: u64,
    at: u64,
    point: String,
    rid: Option<String>,
    sale: Option<String>,
    user: Option<String>,
    qty: Option<u64>,
    shard: Option<u16>,
    epoch: Option<u32>,
    no: Option<u64>,
    attempts: Option<u32>,
    units: Option<i64>,
    entry: Option<String>,
    tag: Option<String>,
    verdict: Option<serde_json::Value>,
    state: Option<String>,
    event: Option<String>,
    outcome: Option<String>,
    reason: Option<String>,
    by: Option<String>,
    grant: Option<String>,
    transfer: Option<String>,
    payment: Option<String>,
    replicated: Option<bool>,
}

/// Keeps each word once: a run has a million lines, and few words.
#[derive(Default)]
pub struct Words(HashSet<Word>);

impl Words {
    fn keep(&mut self, word: Option<String>) -> Option<Word> {
        let word = word?;
        if let Some(known) = self.0.get(word.as_str()) {
            return Some(known.clone());
        }
        let word: Word = word.into();
        self.0.insert(word.clone());
        Some(word)
    }
}

impl Line {
    /// Reads a line.
    pub fn read(text: &str, words: &mut Words) -> Result<Self, String> {
        let written: Written = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
        let rid = written.rid.map(|rid| rid.parse().map_err(|_| format!("rid: {text}"))).transpose()?;
        let verdict = written
            .verdict
            .filter(|value| !value.is_null())
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        Ok(Self {
            n: written.n,
            at: written.at,
            point: words.keep(Some(written.point)),
            rid,
            sale: words.keep(written.sale),
            user: words.keep(written.user),
            qty: written.qty,
            shard: written.shard,
            epoch: written.epoch,
            no: written.no,
            attempts: written.attempts,
            units: written.units,
            thing: words.keep(written.entry.or(written.tag)),
            // An order's event has a verdict of its own beside it.
            reason: words.keep(written.reason.or(written.event.is_some().then(|| verdict.clone()).flatten())),
            verdict: words.keep(written.event.or(written.state).or(verdict)),
            outcome: words.keep(written.outcome),
            by: words.keep(written.by),
            about: words.keep(written.grant.or(written.transfer).or(written.payment)),
            replicated: written.replicated,
        })
    }

    /// The step, as written.
    pub fn point(&self) -> &str {
        self.point.as_deref().unwrap_or_default()
    }

    /// The verdict, as written; empty without one.
    pub fn verdict(&self) -> &str {
        self.verdict.as_deref().unwrap_or_default()
    }
}

/// A process, with its lines in their order.
#[derive(Debug, Clone, Default)]
pub struct Traced {
    pub name: String,
    pub lines: Vec<Line>,
}

impl Traced {
    /// Reads the text of a file. The last line may lack its end: the process died while it wrote.
    pub fn read(name: &str, text: &str, before: u64, words: &mut Words) -> Result<Self, String> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = Vec::new();
        for text in whole.lines() {
            let line = Line::read(text, words).map_err(|wrong| format!("{name}: {wrong}"))?;
            if line.at < before {
                lines.push(line);
            }
        }
        Ok(Self { name: name.to_owned(), lines })
    }
}

/// Reads all processes of a folder.
pub fn read(dir: &Path) -> Result<Vec<Traced>, String> {
    let path = |error: std::io::Error| format!("{}: {error}", dir.display());
    let order = std::fs::read(dir.join("order")).map_err(path)?;
    let before = u64::from_ne_bytes(order.try_into().map_err(|_| "the file `order` is no number".to_owned())?);
    let mut files: Vec<_> = std::fs::read_dir(dir).map_err(path)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let mut words = Words::default();
    let mut traced = Vec::with_capacity(files.len());
    for file in files {
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read(&file).map_err(path)?;
        traced.push(Traced::read(&name, &String::from_utf8_lossy(&text), before, &mut words)?);
    }
    Ok(traced)
}
