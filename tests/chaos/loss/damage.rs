//! Damage to a server's files while it is dead: a bit that is another one, an end that is missing, a block that is half old.

use rand::Rng;
use rand::rngs::StdRng;
use seckill::dev::ServerKind;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that a disk writes at once: a torn write leaves the rest of such a block as it was.
const BLOCK: usize = 4096;
/// What is at the end was written last. This many bytes count as the end.
const TAIL: usize = 4 * BLOCK;

/// How a file is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageKind {
    /// One bit is another one.
    Flip,
    /// The end is missing.
    Cut,
    /// Half of a block is as it was before, or was never written.
    Torn,
}

impl DamageKind {
    /// As it stands in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flip => "a bit flipped",
            Self::Cut => "the end cut off",
            Self::Torn => "a block torn",
        }
    }
}

/// A damaged file.
#[derive(Debug, Clone)]
pub struct Damage {
    /// How.
    pub kind: DamageKind,
    /// Which, within the server's folder, and where in it.
    pub place: String,
}

/// Files of a server that hold its data, with how often each is drawn.
fn candidates(server: ServerKind, dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let has_data = entry.metadata().is_ok_and(|meta| meta.len() > 0);
            let weight = if has_data { weight(server, &path, name) } else { 0 };
            if weight > 0 {
                found.push((path, weight));
            }
        }
    }
    found.sort();
    found
}

fn weight(server: ServerKind, path: &Path, name: &str) -> u32 {
    let ends = |ending: &str| path.extension().is_some_and(|extension| extension == ending);
    match server {
        ServerKind::Redis if ends("aof") => 10,
        ServerKind::Redis if ends("manifest") || ends("rdb") => 1,
        // A quorum queue's log and its index, and what the node knows of its queues.
        ServerKind::Rabbitmq if ends("wal") => 10,
        ServerKind::Rabbitmq if ends("segment") || ends("index") || ends("qs") => 6,
        ServerKind::Rabbitmq if name == "meta.dets" || name == "names.dets" => 3,
        ServerKind::Rabbitmq if name.starts_with("rabbit_durable_") || name == "LATEST.LOG" => 1,
        ServerKind::Mysql if path.parent().is_some_and(|parent| parent.ends_with("seckill")) && ends("ibd") => 4,
        ServerKind::Mysql if name == "ib_logfile0" => 30,
        ServerKind::Mysql if name == "ibdata1" || name.starts_with("undo") => 8,
        ServerKind::Redis | ServerKind::Rabbitmq | ServerKind::Mysql => 0,
    }
}

/// Damages one file of the server in `dir`. `old`: its files as they were a moment before, for blocks that are half old.
pub fn damage(server: ServerKind, dir: &Path, old: &Path, dice: &mut StdRng) -> Damage {
    let files = candidates(server, dir);
    let total: u32 = files.iter().map(|(_, weight)| weight).sum();
    let mut ticket = dice.random_range(0..total.max(1));
    let drawn = files.iter().find(|(_, weight)| match ticket.checked_sub(*weight) {
        Some(rest) => {
            ticket = rest;
            false
        }
        None => true,
    });
    let (path, _) = drawn.unwrap_or_else(|| panic!("no data of {server} in {}", dir.display()));
    let inner = path.strip_prefix(dir).expect("within the folder");
    let mut bytes = fs::read(path).expect("a file of the server");
    let before = fs::read(old.join(inner)).unwrap_or_default();
    let kind = [DamageKind::Flip, DamageKind::Cut, DamageKind::Torn][dice.random_range(0..3)];
    let at = place(server, &bytes, &before, dice);
    let at = match kind {
        DamageKind::Flip => {
            bytes[at] ^= 1 << dice.random_range(0..8);
            at
        }
        // Pages have their place in a file: only a log is written at its end.
        DamageKind::Cut if server == ServerKind::Mysql => {
            bytes.truncate(bytes.len().saturating_sub(BLOCK * dice.random_range(1..=4)));
            bytes.len()
        }
        DamageKind::Cut => {
            bytes.truncate(at);
            at
        }
        DamageKind::Torn => torn(&mut bytes, &before, at, dice),
    };
    fs::write(path, &bytes).expect("a file of the server");
    Damage { kind, place: format!("{} at {at}", inner.display()) }
}

/// Half of the block around `at` is the old one, or zeros; returns its beginning.
fn torn(bytes: &mut [u8], before: &[u8], at: usize, dice: &mut StdRng) -> usize {
    let begin = at / BLOCK * BLOCK;
    let (half, end) = (begin + BLOCK / 2, (begin + BLOCK).min(bytes.len()));
    // A short block: the part behind `at`.
    let from = if half < end { half } else { at };
    let zeros = dice.random_bool(0.5);
    for (index, byte) in bytes.iter_mut().enumerate().take(end).skip(from) {
        *byte = if zeros { 0 } else { before.get(index).copied().unwrap_or(0) };
    }
    from
}

/// Somewhere that matters: half of the time where something was written since the older files, or at the end.
fn place(server: ServerKind, bytes: &[u8], before: &[u8], dice: &mut StdRng) -> usize {
    let last = bytes.len() - 1;
    if dice.random_bool(0.6) {
        if server != ServerKind::Mysql {
            return dice.random_range(bytes.len().saturating_sub(TAIL)..=last);
        }
        let changed = |block: &usize| {
            let range = block * BLOCK..((block + 1) * BLOCK).min(bytes.len());
            before.get(range.clone()).is_none_or(|old| *old != bytes[range])
        };
        let changed: Vec<usize> = (0..=last / BLOCK).filter(changed).collect();
        if !changed.is_empty() {
            let block = changed[dice.random_range(0..changed.len())];
            return (block * BLOCK + dice.random_range(0..BLOCK)).min(last);
        }
    }
    // Not in the room that a server keeps for later.
    for _ in 0..64 {
        let at = dice.random_range(0..=last);
        let block = at / BLOCK * BLOCK;
        if bytes[block..(block + BLOCK).min(bytes.len())].iter().any(|byte| *byte != 0) {
            return at;
        }
    }
    last
}
