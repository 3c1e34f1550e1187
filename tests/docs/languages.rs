//! A page and its Chinese one say the same: headings, rows of tables, commands, links.

use crate::markdown::{Kind, Page};

/// Pages that have a Chinese one.
const IN_BOTH: [&str; 4] = ["README.md", "docs/guarantees.md", "docs/operations.md", "examples/shop/README.md"];

/// What a line of a code block that is a command begins with.
const COMMANDS: [&str; 14] = [
    "cargo",
    "curl",
    "docker",
    "export",
    "git",
    "kubectl",
    "make",
    "mariadb",
    "rabbitmqctl",
    "redis-cli",
    "seckill",
    "sudo",
    "systemctl",
    "target/",
];

fn chinese(name: &str) -> String {
    name.replace(".md", ".zh-CN.md")
}

fn both() -> impl Iterator<Item = (Page, Page)> {
    IN_BOTH.into_iter().map(|name| (Page::read(name), Page::read(&chinese(name))))
}

fn commands(page: &Page) -> Vec<String> {
    let code = page.lines().into_iter().filter(|(_, kind, _)| matches!(kind, Kind::Code));
    // What stands behind `#` is for people, and in their language.
    let lines = code.map(|(_, _, line)| line.split(" #").next().unwrap_or(line).trim().trim_start_matches("$ "));
    lines.filter(|line| COMMANDS.iter().any(|command| line.starts_with(command))).map(str::to_owned).collect()
}

/// The files that a page links to, the Chinese ones as the English ones; headings of the page itself as `#`.
fn links(page: &Page) -> Vec<String> {
    let targets = page.links().into_iter().map(|link| {
        let file = link.target.split_once('#').map_or(link.target.as_str(), |(file, _)| file);
        if file.is_empty() { "#".to_owned() } else { file.replace(".zh-CN.md", ".md") }
    });
    let mut links: Vec<String> = targets.collect();
    links.sort();
    links
}

/// Depth of each heading and how many rows its tables have.
fn outline(page: &Page) -> Vec<(usize, usize)> {
    let mut sections = Vec::new();
    for (_, kind, line) in page.lines() {
        match kind {
            Kind::Prose if line.starts_with('#') => sections.push((line.chars().take_while(|&c| c == '#').count(), 0)),
            Kind::Table => sections.last_mut().map(|(_, rows)| *rows += 1).unwrap_or_default(),
            Kind::Prose | Kind::Code => (),
        }
    }
    sections
}

#[test]
fn both_languages_have_the_same_headings_and_rows() {
    for (english, chinese) in both() {
        let titles = chinese.headings();
        for (at, (one, other)) in outline(&english).into_iter().zip(outline(&chinese)).enumerate() {
            assert_eq!(one, other, "{}: depth of heading and rows of tables, {:?}", chinese.name, titles.get(at));
        }
        assert_eq!(english.headings().len(), titles.len(), "{}: headings", chinese.name);
    }
}

#[test]
fn both_languages_have_the_same_commands() {
    for (english, chinese) in both() {
        assert_eq!(commands(&english), commands(&chinese), "{}", chinese.name);
    }
}

#[test]
fn both_languages_link_to_the_same_files() {
    for (english, chinese) in both() {
        assert_eq!(links(&english), links(&chinese), "{}", chinese.name);
    }
}
