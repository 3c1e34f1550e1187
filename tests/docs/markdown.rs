//! Pages as text: headings, links, tables and code blocks of Markdown. As much of it as our pages use.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub struct Page {
    /// From the root: `docs/proof.md`.
    pub name: String,
    pub text: String,
}

pub enum Kind {
    Prose,
    Table,
    Code,
}

/// A Markdown link, with the line it is on.
pub struct Link {
    pub line: usize,
    pub target: String,
}

/// Every page that people read.
pub fn pages() -> Vec<Page> {
    let beside = ["migrations/README.md", "examples/shop/README.md", "examples/shop/README.zh-CN.md"];
    let mut paths: Vec<PathBuf> = beside.iter().map(|name| root().join(name)).collect();
    for folder in [root().to_owned(), root().join("docs")] {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    paths.sort();
    paths.into_iter().map(|path| Page::read(path.strip_prefix(root()).unwrap().to_str().unwrap())).collect()
}

impl Page {
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    /// Lines with their numbers and what they are.
    pub fn lines(&self) -> Vec<(usize, Kind, &str)> {
        let mut fenced = false;
        let lines = self.text.lines().enumerate().map(|(at, line)| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            let kind = match line {
                _ if fenced || fence => Kind::Code,
                _ if line.trim_start().starts_with('|') => Kind::Table,
                _ => Kind::Prose,
            };
            (at + 1, kind, line)
        });
        lines.collect()
    }

    /// Depth and words of each heading.
    pub fn headings(&self) -> Vec<(usize, &str)> {
        let lines = self.lines().into_iter().filter(|(_, kind, _)| matches!(kind, Kind::Prose));
        let headings = lines.filter_map(|(_, _, line)| {
            let depth = line.chars().take_while(|&c| c == '#').count();
            line[depth..].strip_prefix(' ').filter(|_| depth > 0).map(|words| (depth, words.trim()))
        });
        headings.collect()
    }

    /// The addresses of the headings, as GitHub makes them.
    pub fn anchors(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut anchors = Vec::new();
        for (_, words) in self.headings() {
            let slug = slug(words);
            let count = seen.entry(slug.clone()).and_modify(|count| *count += 1).or_default();
            anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
        }
        anchors
    }

    /// The links of prose and tables. What stands in backticks is none.
    pub fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (line, kind, text) in self.lines() {
            if !matches!(kind, Kind::Code) {
                let plain: String = text.split('`').step_by(2).collect();
                let targets = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
                links.extend(targets.map(|(target, _)| Link { line, target: target.to_owned() }));
            }
        }
        links
    }

    /// What stands in backticks in prose and tables, with its line.
    pub fn spans(&self) -> Vec<(usize, &str)> {
        let lines = self.lines().into_iter().filter(|(_, kind, _)| !matches!(kind, Kind::Code));
        lines.flat_map(|(at, _, line)| line.split('`').skip(1).step_by(2).map(move |span| (at, span))).collect()
    }
}

/// Lower case, without marks, blanks as hyphens. Of a link in a heading only its words count.
fn slug(heading: &str) -> String {
    let mut words = String::new();
    for (at, part) in heading.split("](").enumerate() {
        words.push_str(if at == 0 { part } else { part.split_once(')').map_or(part, |(_, rest)| rest) });
    }
    let kept = words.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

pub fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
