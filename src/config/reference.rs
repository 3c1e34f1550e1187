//! The reference of all settings as Markdown, printed from what the program itself goes by: the comments and defaults of
//! `config/default.toml`, the bounds and relations of [`super::bounds`], the choices of the enums.
//!
//! `docs/configuration.md` is this text; a test holds the two together.

use super::bounds::{bounds, relations};
use super::layers::{ConfigError, DEFAULT_TOML, defaults};
use super::sections::{
    Algorithm, Compensate, Durability, LogFormat, OnRiskFailure, OutboxKind, QueueType, RedisMode, Settings,
};
use std::collections::BTreeMap;

const PREAMBLE: &str = include_str!("preamble.md");

/// The whole page.
pub fn reference() -> Result<String, ConfigError> {
    let defaults = defaults()?;
    let mut ranges = BTreeMap::new();
    bounds(&defaults, &mut |key, _default, low, high| {
        ranges.insert(key, format!("{} to {}", grouped(low), grouped(high)));
    });
    let mut page = PREAMBLE.replace("RELATIONS", &relations_table(&defaults));
    let keys = keys();
    let names: Vec<String> = keys.iter().map(SettingEntry::full).collect();
    let mut section = "";
    for key in &keys {
        if key.section != section {
            section = key.section;
            page.push_str(&format!("\n### {section}\n\n| key | default | values | meaning |\n|---|---|---|---|\n"));
        }
        let full = key.full();
        let values = ranges.get(full.as_str()).cloned().unwrap_or_else(|| values_of(&full, key.default));
        let meaning = marked(&key.comment, &names).replace('|', "\\|");
        page.push_str(&format!("| `{full}` | `{}` | {values} | {meaning} |\n", key.default));
    }
    Ok(page)
}

fn relations_table(defaults: &Settings) -> String {
    let rows = relations(defaults).into_iter().map(|relation| {
        let sign = if relation.strictly { "<" } else { "≤" };
        format!("| `{}` {sign} `{}` | {} |", relation.low.0, relation.high.0, relation.why)
    });
    let rows: Vec<String> = rows.collect();
    format!("| rule | because |\n|---|---|\n{}", rows.join("\n"))
}

/// A key as it stands in the defaults.
struct SettingEntry {
    section: &'static str,
    name: &'static str,
    default: &'static str,
    comment: String,
}

impl SettingEntry {
    fn full(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }
}

fn keys() -> Vec<SettingEntry> {
    let (mut keys, mut section, mut comment) = (Vec::new(), "", Vec::new());
    for line in DEFAULT_TOML.lines() {
        if let Some(text) = line.strip_prefix('#') {
            comment.push(text.trim());
        } else if let Some(name) = line.strip_prefix('[') {
            (section, comment) = (name.trim_end_matches(']'), Vec::new());
        } else if let Some((name, default)) = line.split_once(" = ") {
            keys.push(SettingEntry { section, name, default, comment: std::mem::take(&mut comment).join(" ") });
        } else {
            comment.clear();
        }
    }
    keys
}

/// What a key takes that is no number.
fn values_of(full: &str, default: &str) -> String {
    let choices = match full {
        "log.format" => LogFormat::NAMES,
        "auth.algorithm" => Algorithm::NAMES,
        "risk.on_failure" => OnRiskFailure::NAMES,
        "redis.mode" => RedisMode::NAMES,
        "redis.outbox" => OutboxKind::NAMES,
        "redis.durability" => Durability::NAMES,
        "rabbitmq.queue_type" => QueueType::NAMES,
        "p5_reconcile.compensate" => Compensate::NAMES,
        _ if matches!(default, "true" | "false") => &["true", "false"],
        "auth.algorithms" => return "list of `RS256`, `ES256`, `EdDSA`; or `HS256` alone".to_owned(),
        "webhook_delivery.retry_ms" => return "1–30 numbers, each 10–604,800,000".to_owned(),
        "rabbitmq.urls" | "mysql.urls" => return "URLs".to_owned(),
        "auth.facts" => return "table of claims".to_owned(),
        "auth.secrets" | "passes.secrets" | "risk.secrets" | "p1_entry.token_secrets" => return "secrets".to_owned(),
        "auth.secret" | "p1_entry.token_secret" | "admin.token" => return "secret".to_owned(),
        _ if full.ends_with(".listen") => return "ip:port".to_owned(),
        _ if full.ends_with(".url") || full.ends_with("_url") => return "URL".to_owned(),
        _ if full.ends_with("_file") => return "path".to_owned(),
        _ => return "text".to_owned(),
    };
    choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ")
}

/// The text with the names of keys as code.
fn marked(text: &str, names: &[String]) -> String {
    let words = text.split(' ').map(|word| {
        let plain = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_key =
            names.iter().any(|name| name == plain || (plain.contains('_') && name.ends_with(&format!(".{plain}"))));
        if is_key && !word.contains('`') { word.replace(plain, &format!("`{plain}`")) } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_own_comment_and_every_number_its_bounds() {
        let page = reference().unwrap();
        for key in keys() {
            let full = key.full();
            assert!(!key.comment.is_empty(), "{full} has no comment above it");
            let row = page.lines().find(|line| line.starts_with(&format!("| `{full}` |"))).unwrap();
            let number = key.default.parse::<i64>().is_ok();
            assert_eq!(number, row.split(" | ").nth(2).unwrap().contains(" to "), "{row}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [grouped(0), grouped(999), grouped(1_000), grouped(1 << 40)],
            ["0", "999", "1,000", "1,099,511,627,776"]
        );
    }
}
