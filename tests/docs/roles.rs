//! Roles: `--help` and the pages of operations name the same phases for each.

use crate::markdown::root;
use clap::ValueEnum;
use seckill::roles::Role;
use std::collections::BTreeSet;
use std::fs;

/// The phases that a text names, `P1` to `P6`.
fn phases(text: &str) -> BTreeSet<&str> {
    let found = text.match_indices('P').filter_map(|(at, _)| text.get(at..at + 2));
    found.filter(|phase| ("P1"..="P6").contains(phase)).collect()
}

#[test]
fn the_help_of_a_role_names_the_phases_that_the_pages_name() {
    for page in ["docs/operations.md", "docs/operations.zh-CN.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for role in Role::value_variants() {
            let value = role.to_possible_value().unwrap();
            let help = value.get_help().unwrap().to_string();
            let row = format!("| `{}` | ", role.name());
            let cell = text.lines().find_map(|line| line.strip_prefix(&row)?.split(" | ").next()).unwrap_or("");
            assert!(
                !phases(cell).is_empty(),
                "{page}: the first row of {} is not that of the roles: {cell}",
                role.name()
            );
            assert_eq!(phases(&help), phases(cell), "{page}, {}: help {help:?}, page {cell:?}", role.name());
        }
    }
}
