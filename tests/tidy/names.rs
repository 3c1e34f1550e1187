//! Names: a type name means one thing in a room, parameters that belong together have names, rooms form no circle,
//! and imports go down.

use super::{code, files, no_complaints, own_imports, shipped};
use std::collections::{BTreeMap, BTreeSet};

/// The product and the benchmark, without their unit tests.
fn product() -> impl Iterator<Item = (String, String)> {
    let all = shipped().into_iter();
    all.map(|(file, text)| {
        let kept = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
        (file, kept)
    })
}

/// The name of the type that a line declares. An indented `type` is an associated one, which may be called as others are.
fn declared(line: &str) -> Option<&str> {
    let indented = line.starts_with(' ');
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let (kind, rest) = line.trim_start().split_once(' ')?;
    if !(["struct", "enum", "trait", "union"].contains(&kind) || kind == "type" && !indented) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[test]
fn a_declaration_is_recognised() {
    for line in [
        "struct Hand {",
        "pub enum Hand {",
        "    pub(crate) struct Hand;",
        "pub(super) type Hand<T> = T;",
        "pub(in crate::a) struct Hand {",
    ] {
        assert_eq!(declared(line), Some("Hand"), "{line}");
    }
    for line in ["    type Output = u8;", "let structure = 1;", "impl Hand {", "use a::Hand;"] {
        assert_eq!(declared(line), None, "{line}");
    }
}

#[test]
fn a_type_name_means_one_thing_in_a_room() {
    let mut homes: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (file, text) in product() {
        for (at, line) in code(&text) {
            if let Some(name) = declared(line) {
                let room = file.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default();
                homes.entry((room.to_owned(), name.to_owned())).or_default().push(format!("{file}:{at}"));
            }
        }
    }
    let twice = homes.into_iter().filter(|(_, homes)| homes.len() > 1);
    no_complaints(&twice.map(|((_, name), homes)| format!("{name}: {}", homes.join(", "))).collect::<Vec<_>>());
}

/// The types of the outermost tuples among the parameters of a signature, whose text may be of several lines.
fn tuples(parameters: &str) -> impl Iterator<Item = Vec<&str>> {
    parameters.match_indices(": (").filter_map(|(at, found)| {
        let inside = &parameters[at + found.len()..];
        let (mut depth, mut from, mut types) = (0_usize, 0, vec![]);
        for (place, c) in inside.char_indices() {
            match c {
                '(' | '<' | '[' => depth += 1,
                ')' if depth == 0 => {
                    types.push(inside[from..place].trim());
                    return Some(types);
                }
                ')' | '>' | ']' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    types.push(inside[from..place].trim());
                    from = place + 1;
                }
                _ => {}
            }
        }
        None
    })
}

#[test]
fn no_parameter_is_a_tuple_of_equal_types() {
    let mut complaints = Vec::new();
    for (file, text) in product() {
        for (at, _) in text.match_indices("fn ") {
            let signature = text[at..].split(['{', ';']).next().unwrap_or_default();
            let parameters = signature.split(" -> ").next().unwrap_or_default();
            for types in tuples(parameters) {
                let types: Vec<&str> = types.into_iter().filter(|name| !name.is_empty()).collect();
                let different: BTreeSet<&&str> = types.iter().collect();
                if different.len() < types.len() {
                    let line = text[..at].lines().count();
                    complaints.push(format!("{file}:{line}: ({}) wants a struct with names", types.join(", ")));
                }
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn no_circle_between_rooms() {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in product().filter(|(file, _)| file.starts_with("src/")) {
        let room = file.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default().to_owned();
        for (_, line) in code(&text) {
            for wanted in own_imports(line).filter(|wanted| *wanted != room) {
                arrows.entry(room.clone()).or_default().insert(wanted.to_owned());
            }
        }
    }
    // Rooms without an arrow to a room that is left go first, until none is left or only circles are.
    while let Some(bottom) =
        arrows.iter().find(|(_, to)| !to.iter().any(|to| arrows.contains_key(to))).map(|(room, _)| room.clone())
    {
        arrows.remove(&bottom);
    }
    let circles =
        arrows.iter().map(|(room, to)| format!("{room} imports {}", to.iter().cloned().collect::<Vec<_>>().join(", ")));
    no_complaints(&circles.collect::<Vec<_>>());
}

#[test]
fn imports_go_one_way() {
    const PHASES: [&str; 6] = ["p1_entry", "p2_reserve", "p3_relay", "p4_persist", "p5_reconcile", "p6_fulfil"];
    // From the ground up.
    const BELOW_PHASES: [&str; 4] = ["http", "sales", "events", "orders"];
    const ABOVE: [&str; 4] = ["roles", "admin", "console", "dev"];
    let mut complaints = Vec::new();
    for (file, text) in files("src", "rs") {
        let module = file.trim_start_matches("src/").split(['/', '.']).next().unwrap_or("");
        for (at, line) in code(&text) {
            for wanted in own_imports(line) {
                let allowed = match module {
                    "domain" => wanted == "domain",
                    "store" => ["domain", "config", "store", "runtime", "telemetry", "faults", "trace_points"]
                        .contains(&wanted),
                    room if BELOW_PHASES.contains(&room) => {
                        let own = BELOW_PHASES.iter().position(|below| *below == room);
                        let floor = BELOW_PHASES.iter().position(|below| *below == wanted);
                        floor <= own && !(PHASES.contains(&wanted) || ABOVE.contains(&wanted))
                    }
                    // P1 calls P2, and P6 for a buyer's own orders; every other hand-over is data in a server.
                    "p1_entry" if ["p2_reserve", "p6_fulfil"].contains(&wanted) => true,
                    phase if PHASES.contains(&phase) => {
                        wanted == phase || !(PHASES.contains(&wanted) || ABOVE.contains(&wanted))
                    }
                    _ => true,
                };
                let allowed = allowed && (wanted != "cli" || module == "cli");
                if !allowed {
                    complaints.push(format!("{file}:{at}: {module} must not import {wanted}"));
                }
            }
        }
    }
    no_complaints(&complaints);
}
