//! The pages themselves: what they link to and name is there, and a reader finds the way.

use crate::markdown::{Kind, Page, no_complaints, pages, root};
use std::fs;
use std::path::Path;

const WIDTH_MAX: usize = 120;
const WITHOUT_CONTENTS_MAX: usize = 150;
const README_MAX: usize = 150;

/// `path`, `path:line` or `path:from-to`; no line for anything else after the colon.
fn split_line(named: &str) -> (&str, Option<usize>) {
    let Some((path, line)) = named.split_once(':') else { return (named, None) };
    (path, line.split('-').next().and_then(|line| line.parse().ok()))
}

/// What is wrong with `line` of the file at `path`, if anything is.
fn missing(path: &Path, line: Option<usize>) -> Option<String> {
    let Some(line) = line else { return (!path.exists()).then(|| "is not there".to_owned()) };
    let Ok(text) = fs::read_to_string(path) else { return Some("is not there".to_owned()) };
    let count = text.lines().count();
    (line == 0 || line > count).then(|| format!("has {count} lines"))
}

#[test]
fn every_relative_link_leads_to_a_file_and_to_a_heading_of_it() {
    let mut complaints = Vec::new();
    for page in pages() {
        let folder = root().join(&page.name).parent().unwrap().to_owned();
        for link in page.links().iter().filter(|link| !link.target.contains("://")) {
            let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let path = if path.is_empty() { root().join(&page.name) } else { folder.join(path) };
            let line = anchor.strip_prefix('L').and_then(|line| line.parse().ok());
            if let Some(wrong) = missing(&path, line) {
                complaints.push(format!("{}:{}: {} {wrong}", page.name, link.line, link.target));
            } else if !anchor.is_empty() && line.is_none() {
                let target = path.canonicalize().unwrap();
                let target = Page::read(target.strip_prefix(root().canonicalize().unwrap()).unwrap().to_str().unwrap());
                if !target.anchors().iter().any(|known| known == anchor) {
                    complaints.push(format!("{}:{}: {} is no heading there", page.name, link.line, link.target));
                }
            }
        }
    }
    no_complaints(&complaints);
}

/// Whether `span` can be nothing but a path of ours: it begins with a folder of the root or of `src/`, and not with one that a
/// command makes there: `make run` leaves `.seckill`, cargo `target`.
fn is_path(root: &Path, span: &str) -> bool {
    let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c));
    let (first, rest) = span.split_once('/').unwrap_or((span, ""));
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let ours = !first.starts_with("..") && !ignored.lines().any(|line| line.trim_matches('/') == first);
    let folder = !first.is_empty() && [root.to_owned(), root.join("src")].iter().any(|at| at.join(first).is_dir());
    plain && ours && folder && !rest.is_empty()
}

/// As after `make run` and Ctrl-C: its folder is there, and `dev.json` is not.
#[test]
fn the_pages_are_judged_alike_before_and_after_make_run() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("docs-root-{}", std::process::id()));
    for made in [".seckill", "target", "src/cli", "docs"] {
        fs::create_dir_all(folder.join(made)).unwrap();
    }
    fs::copy(root().join(".gitignore"), folder.join(".gitignore")).unwrap();
    let paths = [".seckill/dev.json", "target/chaos/report.md", "docs/proof.md", "cli/run.rs:7", "deploy/x.toml"];
    let judged: Vec<&str> = paths.into_iter().filter(|path| is_path(&folder, path)).collect();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(judged, ["docs/proof.md", "cli/run.rs:7"]);
}

#[test]
fn every_path_in_backticks_names_a_file_and_a_line_within_it() {
    let mut complaints = Vec::new();
    // The changelog says what was where, then.
    for page in pages().iter().filter(|page| page.name != "CHANGELOG.md") {
        for (at, span) in page.spans().into_iter().filter(|(_, span)| is_path(root(), span)) {
            let (path, line) = split_line(span);
            let wrong = [root().join(path), root().join("src").join(path)].map(|path| missing(&path, line));
            if let [Some(wrong), Some(_)] = wrong {
                complaints.push(format!("{}:{at}: {span} {wrong}", page.name));
            }
        }
    }
    no_complaints(&complaints);
}

/// Whether a line is one word or one link, which nothing can break.
fn unbreakable(line: &str) -> bool {
    let words = line.trim_start_matches([' ', '-', '>']);
    !words.contains(' ') || (words.starts_with('[') && words.matches("](").count() == 1 && words.ends_with(')'))
}

#[test]
fn prose_is_narrow_enough_for_an_editor() {
    let mut complaints = Vec::new();
    for page in pages() {
        for (at, kind, line) in page.lines() {
            let width = line.chars().count();
            if matches!(kind, Kind::Prose) && width > WIDTH_MAX && !unbreakable(line) {
                complaints.push(format!("{}:{at}: {width} characters", page.name));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn a_long_page_begins_with_links_to_its_sections() {
    let mut complaints = Vec::new();
    // The changelog is sorted by version.
    for page in pages().into_iter().filter(|page| page.name != "CHANGELOG.md") {
        if page.text.lines().count() <= WITHOUT_CONTENTS_MAX {
            continue;
        }
        let first = page.text.split("\n## ").next().unwrap();
        let contents = Page { name: page.name.clone(), text: first.to_owned() };
        let linked: Vec<String> = contents.links().into_iter().map(|link| link.target).collect();
        for ((depth, words), anchor) in page.headings().iter().zip(page.anchors()) {
            if *depth == 2 && !linked.contains(&format!("#{anchor}")) {
                complaints.push(format!("{}: no link to “{words}” (#{anchor}) before the first section", page.name));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn the_readme_is_short() {
    for page in pages().into_iter().filter(|page| page.name.starts_with("README")) {
        let count = page.text.lines().count();
        assert!(count <= README_MAX, "{} has {count} lines, {README_MAX} are enough", page.name);
    }
}
