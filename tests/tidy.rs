//! House rules that a compiler cannot check. Reads the sources as text; imports nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/programs.rs"]
mod programs;
#[path = "tidy/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 300;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files under `folder` with this ending: path from the root, and text.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no .{ending} files in {folder}");
    found.sort();
    found
}

fn rust() -> Vec<(String, String)> {
    [shipped(), files("tests", "rs")].concat()
}

/// What is shipped: the product, and the program that loads and measures it.
fn shipped() -> Vec<(String, String)> {
    [files("src", "rs"), files("bench/src", "rs")].concat()
}

/// Lines of code: without comments, with their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.split("// ").next().unwrap_or(line)));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Whether `line` uses the crate `name`, as `name::` or `use name;`.
fn uses(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let own_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        own_word && line[at + name.len()..].starts_with("::")
    })
}

/// The module that a line imports from this crate, as often as it does.
fn own_imports(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("crate::")
        .map(|(at, found)| {
            line[at + found.len()..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
        })
        .filter(|module| !module.is_empty())
}

/// What judges the product may share nothing with it, nor with the harness that drives it.
#[test]
fn the_checker_shares_no_code_with_what_it_checks() {
    let mut complaints = Vec::new();
    for (file, text) in files("tests/chaos/checker", "rs") {
        for (at, line) in code(&text) {
            let product = uses(line, "seckill") || line.contains("#[path");
            let harness = own_imports(line).any(|module| module != "checker");
            if product || harness {
                complaints.push(format!("{file}:{at}: the checker reads files and uses nothing else"));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn every_file_says_what_it_is_and_stays_short() {
    let mut complaints = Vec::new();
    for (file, text) in rust() {
        if !text.starts_with("//! ") {
            complaints.push(format!("{file}: opens without //!"));
        }
        // Unit tests stand below the code of the product, and are not counted: a reader of the code does not read them.
        let lines = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default().lines().count();
        if lines > LINES_MAX {
            complaints.push(format!("{file}: {lines} lines, at most {LINES_MAX}"));
        }
    }
    no_complaints(&complaints);
}

#[test]
fn nothing_unfinished_is_left_and_no_test_sleeps() {
    // In halves, so that this file passes itself.
    let unfinished = [concat!("todo", "!"), concat!("dbg", "!"), concat!("FIX", "ME"), concat!("unimplemented", "!")];
    let sleep = concat!("sleep", "(");
    let mut complaints = Vec::new();
    for (file, text) in rust() {
        for (at, line) in text.lines().enumerate() {
            if let Some(word) = unfinished.iter().find(|word| line.contains(*word)) {
                complaints.push(format!("{file}:{}: {word}", at + 1));
            }
            if file.starts_with("tests/")
                && file != "tests/support/basics/time.rs"
                && line.contains(sleep)
                && !line.contains("SLEEP(")
            {
                complaints.push(format!("{file}:{}: wait for something with `eventually`, not for time", at + 1));
            }
        }
    }
    no_complaints(&complaints);
}

/// Highest n of `KEYS[n]`.
fn highest_key(text: &str) -> usize {
    let numbers = text.match_indices("KEYS[").map(|(at, found)| {
        let rest = &text[at + found.len()..];
        rest.split(']').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    });
    numbers.max().unwrap_or(0)
}

#[test]
fn every_script_says_what_it_takes_and_gives() {
    let mut complaints = Vec::new();
    for (file, text) in files("lua", "lua") {
        let (header, body): (Vec<&str>, Vec<&str>) = text.lines().skip(1).partition(|line| line.starts_with("--"));
        let (header, body) = (header.join("\n"), body.join("\n"));
        if !text.starts_with("#!lua") {
            complaints.push(format!("{file}: no #!lua line, so memory is not checked before it starts"));
        }
        for part in ["KEYS[1]", "ARGV", "Returns"] {
            if !header.contains(&format!("-- {part}")) {
                complaints.push(format!("{file}: its header has no {part}"));
            }
        }
        // `KEYS[i]`: any number of keys of one kind, reported as the first.
        let many = usize::from(body.contains("KEYS[i]"));
        let (named, used) = (highest_key(&header), highest_key(&body).max(many));
        if named != used {
            complaints.push(format!("{file}: its header names {named} keys, its code uses {used}"));
        }
        for word in ["pcall", "redis.replicate"] {
            if body.contains(word) {
                complaints.push(format!("{file}: {word} would hide a half-done write"));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn every_migration_goes_up_and_down() {
    let mut complaints = Vec::new();
    for entry in fs::read_dir(root().join("migrations")).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        for file in ["up.sql", "down.sql"] {
            let text = fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            if text.trim().is_empty() {
                complaints.push(format!("{}: no {file}", entry.path().display()));
            } else if !text.starts_with("-- ") {
                complaints.push(format!("{}/{file}: opens without a comment", entry.path().display()));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn every_setting_is_explained_and_every_duration_has_its_unit() {
    const TIMES: [&str; 9] =
        ["timeout", "interval", "delay", "backoff", "ttl", "idle", "retention", "deadline", "alive"];
    let text = fs::read_to_string(root().join("config/default.toml")).unwrap();
    let mut complaints = Vec::new();
    // The comment above a key; keys that follow one another share theirs.
    let mut comment = String::new();
    let mut last_was_key = false;
    for (at, line) in text.lines().enumerate() {
        if let Some(words) = line.strip_prefix('#') {
            if last_was_key {
                comment.clear();
            }
            comment.push_str(words);
            last_was_key = false;
        } else if line.is_empty() || line.starts_with('[') {
            comment.clear();
            last_was_key = false;
        } else if let Some((key, _)) = line.split_once(" = ") {
            last_was_key = true;
            if comment.is_empty() {
                complaints.push(format!("config/default.toml:{}: {key} is not explained", at + 1));
            }
            let has_unit = key.ends_with("_ms") || key.ends_with("_s");
            if TIMES.iter().any(|word| key.contains(word)) && !has_unit {
                complaints.push(format!("config/default.toml:{}: {key} has no unit: _ms or _s", at + 1));
            }
            if key.ends_with("_ms") && comment.contains(" seconds.") {
                complaints.push(format!("config/default.toml:{}: {key} is explained in seconds", at + 1));
            }
        } else {
            complaints.push(format!("config/default.toml:{}: cannot read {line:?}", at + 1));
        }
    }
    no_complaints(&complaints);
}

/// Flags and commands that lose entries or messages without a word (windows 22, 33, 34, 48; 36 for the alternate exchange).
#[test]
fn nothing_loses_by_a_flag() {
    let forbidden = ["NOACK", "XTRIM", "MAXLEN", "\"DELCONSUMER\"", "SETID", "alternate-exchange", "drop-head"];
    let mut complaints = Vec::new();
    for (file, text) in [shipped(), files("lua", "lua")].concat() {
        let comment = if file.ends_with(".lua") { "--" } else { "//" };
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with(comment)) {
            for word in forbidden.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{file}:{}: {word} loses what was not read", at + 1));
            }
            if line.contains("CREATE") && line.contains("'$'") {
                complaints.push(format!("{file}:{}: a group begins at 0", at + 1));
            }
        }
    }
    // One group a stream: an entry is deleted when that one is done with it.
    let groups: Vec<String> = files("src", "rs")
        .into_iter()
        .flat_map(|(file, text)| {
            let lines = text.lines().filter(|line| line.contains("const GROUP: &str")).count();
            std::iter::repeat_n(file, lines)
        })
        .collect();
    assert_eq!(groups.len(), 1, "{groups:?}");
    no_complaints(&complaints);
}
