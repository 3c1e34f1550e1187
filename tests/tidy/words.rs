//! Words of speech for technical acts, and subjects without a noun: a ratchet. STYLE of the project: *reports, gets, reads,
//! finds* instead of *tells, hears, looks*. The counts below may fall, never rise.

use super::{files, no_complaints, root};
use std::collections::BTreeMap;
use std::fs;

/// Words of one kind, and how often each folder has them. Frozen names are among them: metrics, columns, JSON fields.
struct BannedWords {
    words: &'static [&'static str],
    instead: &'static str,
    counts: [(&'static str, usize); FOLDERS.len()],
}

/// A folder, and the endings of its files that are counted.
const FOLDERS: [(&str, &[&str]); 4] =
    [("src", &["rs", "js"]), ("bench/src", &["rs"]), ("tests", &["rs"]), ("docs", &["md"])];

/// Pages beside the folder `docs`, counted with it.
const PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// This file names the words.
const LIST: &str = "tests/tidy/words.rs";

const BANNED: [BannedWords; 6] = [
    BannedWords {
        words: &["told", "tell", "tells", "telling", "untold"],
        instead: "report, notify, publish, deliver; of a reader: see, know",
        counts: [("src", 72), ("bench/src", 31), ("tests", 14), ("docs", 0)],
    },
    BannedWords {
        words: &["hear", "hears", "heard", "hearing"],
        instead: "get, receive",
        counts: [("src", 0), ("bench/src", 0), ("tests", 0), ("docs", 0)],
    },
    BannedWords {
        words: &["look", "looks", "looked", "looking"],
        instead: "read, check, find, search, seem (`look up` is not counted)",
        counts: [("src", 41), ("bench/src", 0), ("tests", 2), ("docs", 0)],
    },
    BannedWords {
        words: &["owe", "owes", "owed", "owing"],
        instead: "due, unpublished",
        counts: [("src", 1), ("bench/src", 0), ("tests", 0), ("docs", 0)],
    },
    BannedWords {
        words: &["whoever", "nobody", "stranger", "strangers"],
        instead: "the noun: no process, no buyer, the caller, an unknown message",
        counts: [("src", 5), ("bench/src", 0), ("tests", 28), ("docs", 0)],
    },
    BannedWords {
        words: &["let go", "lets go", "so many"],
        instead: "release, stop; this number of",
        counts: [("src", 1), ("bench/src", 0), ("tests", 1), ("docs", 0)],
    },
];

/// The words of a text in lower case; names are taken apart: `told_at`, `ToldAt` and `TOLD_AT` are two words each.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        let is_first = !before.is_alphanumeric() || before.is_lowercase() && c.is_uppercase();
        if c.is_alphanumeric() {
            if is_first {
                words.push(String::new());
            }
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// How often `words` has a word or a phrase of `banned`.
fn count(words: &[String], banned: &[&str]) -> usize {
    let is_at = |at: usize, phrase: &str| {
        let found = phrase.split(' ').enumerate().all(|(n, part)| words.get(at + n).is_some_and(|word| word == part));
        found && !(phrase.starts_with("look") && words.get(at + 1).is_some_and(|next| next == "up"))
    };
    (0..words.len()).filter(|at| banned.iter().any(|phrase| is_at(*at, phrase))).count()
}

/// What is counted of a file. A page has names of tests, metrics and columns in backticks; they are counted where they are made.
fn counted(file: &str, text: &str) -> Vec<String> {
    if !file.ends_with(".md") {
        return words(text);
    }
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    words(&prose.join(" "))
}

/// The files of a folder; with `docs` the pages beside it.
fn texts(folder: &str, endings: &[&str]) -> Vec<(String, Vec<String>)> {
    let beside = PAGES.iter().filter(|_| folder == "docs");
    let beside = beside.map(|page| (String::from(*page), fs::read_to_string(root().join(page)).unwrap()));
    let within = endings.iter().flat_map(|ending| files(folder, ending));
    let all = within.chain(beside).filter(|(file, _)| file != LIST);
    all.map(|(file, text)| {
        let words = counted(&file, &text);
        (file, words)
    })
    .collect()
}

#[test]
fn of_a_page_only_what_is_no_name_is_counted() {
    let page = "looks `told_at` over\n```\nlook\n```\nand tells";
    assert_eq!(count(&counted("docs/page.md", page), &["told", "look", "looks", "tells"]), 2);
    assert_eq!(count(&counted("src/file.rs", page), &["told", "look", "looks", "tells"]), 4);
}

#[test]
fn words_are_counted_in_names_and_sentences() {
    let of = |text: &str| count(&words(text), &["told", "look", "let go"]);
    for (text, wanted) in [
        ("what it told, and told_at", 2),
        ("ToldEvent", 1),
        ("TOLD_MAX: let_go(), LetGo", 3),
        ("look it up, look up, look-up, look_up, a look", 2),
        ("untold lookup outlook", 0),
    ] {
        assert_eq!(of(text), wanted, "{text}");
    }
}

#[test]
fn words_of_speech_become_fewer_and_never_more() {
    let mut complaints = Vec::new();
    for (folder, endings) in FOLDERS {
        let texts = texts(folder, endings);
        for BannedWords { words, instead, counts } in &BANNED {
            let by_file: BTreeMap<&str, usize> = texts
                .iter()
                .map(|(file, text)| (file.as_str(), count(text, words)))
                .filter(|(_, count)| *count > 0)
                .collect();
            let found: usize = by_file.values().sum();
            let written = counts.iter().find(|(of, _)| *of == folder).map_or(0, |(_, count)| *count);
            let names = words.join(", ");
            if found > written {
                complaints.push(format!(
                    "{folder}: {found} of \"{names}\", at most {written}. Write instead: {instead}. They are in {by_file:?}"
                ));
            } else if found < written {
                complaints.push(format!(
                    "{folder}: {found} of \"{names}\", fewer than the {written} in {LIST}: write {found} there, so that they do not come back"
                ));
            }
        }
    }
    no_complaints(&complaints);
}

/// The list is found by its name.
#[test]
fn the_list_of_words_is_where_it_says() {
    assert!(fs::exists(root().join(LIST)).unwrap());
}
