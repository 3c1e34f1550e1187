//! What is shipped beside the code says the same as the code. Needs no server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use seckill::config::{DEFAULT_TOML, Layers, Settings, reference};
use seckill::domain::states_page;
use seckill::faults::{CrashPoint, Mechanism};
use seckill::http::problem::Kind;
use seckill::p1_entry::http::document;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::markdown::root;

#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../support/basics/asyncapi.rs"]
mod asyncapi;
mod bars;
mod capacity;
mod compatibility;
mod constants;
mod events;
mod figures;
mod hosts;
mod languages;
mod markdown;
mod pages;
mod roles;
mod typed_documents;

/// Files with this ending, in a folder and the folders in it.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn the_state_table_is_printed_from_the_code() {
    let path = root().join("docs/states.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(root().join("docs")).unwrap();
        fs::write(&path, states_page::markdown()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, states_page::markdown(), "UPDATE_DOCS=1 cargo test --test docs writes docs/states.md");
}

#[test]
fn every_shipped_configuration_can_be_used() {
    let shipped = [files("config", "toml"), files("deploy", "toml")].concat();
    assert!(!shipped.is_empty());
    for file in shipped {
        let loaded = Settings::load(&Layers { files: vec![file.clone()], set: vec![] });
        assert!(loaded.is_ok(), "{}: {}", file.display(), loaded.unwrap_err());
    }
}

/// Every `section.key` of the defaults.
fn keys() -> Vec<String> {
    let mut section = "";
    let mut keys = Vec::new();
    for line in DEFAULT_TOML.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            keys.push(format!("{section}.{key}"));
        }
    }
    keys
}

#[test]
fn every_setting_is_in_the_defaults() {
    let keys = keys();
    let settings = serde_json::to_value(Settings::load(&Layers::default()).unwrap()).unwrap();
    let sections = settings.as_object().unwrap();
    let known: BTreeSet<String> = sections
        .iter()
        // A list of tables, which no default has.
        .filter(|(section, _)| *section != "webhooks")
        .flat_map(|(section, keys)| keys.as_object().unwrap().keys().map(move |key| format!("{section}.{key}")))
        .collect();
    assert_eq!(keys.iter().cloned().collect::<BTreeSet<_>>(), known, "default.toml has every key the code has");
}

#[test]
fn the_configuration_reference_is_printed_from_the_code() {
    let path = root().join("docs/configuration.md");
    let printed = reference().unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        printed,
        "`cargo run -- config reference > docs/configuration.md` (or UPDATE_DOCS=1 cargo test --test docs) writes it"
    );
    // What the program takes and what the page lists are the same: each listed choice is accepted.
    for row in printed.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [key, default, values, _meaning] = cells.as_slice() else { continue };
        let (key, default) = (key.trim_start_matches("| ").trim_matches('`'), default.trim_matches('`'));
        // A list or a table stands as one text on the command line, an empty one as nothing.
        let default = default.trim_matches(['[', ']', '{', '}']);
        for value in values.split('`').skip(1).step_by(2).chain([default.trim_matches('"')]) {
            let set = vec![format!("{key}={value}")];
            let refused = Settings::load(&Layers { files: vec![], set }).map_err(|error| error.to_string()).err();
            // A sentinel or cluster needs its own kind of address, and so says the check.
            assert!(refused.as_ref().is_none_or(|why| why.contains("redis.url")), "{key}={value}: {refused:?}");
        }
    }
}

/// Addresses that the public server routes and its document need not list.
const BESIDE_THE_CONTRACT: [&str; 1] = ["/openapi.json"];

#[test]
fn the_contract_lists_exactly_the_routes_of_the_server() {
    let source = fs::read_to_string(root().join("src/p1_entry/http/server.rs")).unwrap();
    let literals = ["web::resource(\"", ".route(\"", "web::scope(\""].into_iter().flat_map(|opening| {
        source.match_indices(opening).map(|(at, found)| source[at + found.len()..].split('"').next().unwrap())
    });
    let routed: BTreeSet<&str> = literals.filter(|route| !BESIDE_THE_CONTRACT.contains(route)).collect();
    let document = document();
    let listed: BTreeSet<&str> = document.paths.paths.keys().map(String::as_str).collect();
    assert_eq!(listed, routed);
}

/// Method, path and description of each call in an OpenAPI document.
fn calls(document: &serde_json::Value) -> impl Iterator<Item = (&str, &str, &serde_json::Value)> {
    document["paths"].as_object().unwrap().iter().flat_map(|(path, calls)| {
        calls.as_object().unwrap().iter().map(move |(method, call)| (method.as_str(), path.as_str(), call))
    })
}

#[test]
fn the_admin_document_lists_exactly_the_routes_of_the_admin_api() {
    let source = fs::read_to_string(root().join("src/admin/routes.rs")).unwrap();
    let routed: BTreeSet<(String, String)> = source
        .split("(\"/")
        .skip(1)
        .flat_map(|rest| {
            let path = format!("/{}", rest.split('"').next().unwrap());
            let handlers = rest.split_once("vec![").and_then(|(_, rest)| rest.split_once("])")).unwrap().0;
            let handlers = handlers.split(", ").map(|one| (one.split('(').next().unwrap().to_owned(), path.clone()));
            handlers.collect::<Vec<_>>()
        })
        .collect();
    let document = serde_json::to_value(seckill::admin::document()).unwrap();
    let listed: BTreeSet<_> = calls(&document)
        .map(|(method, path, _)| (method.to_owned(), path.strip_prefix("/admin/v1").unwrap().to_owned()))
        .collect();
    assert_eq!(listed, routed);
}

/// A segment of a path that the document does not describe, and a parameter that is described twice, mislead a client.
#[test]
fn every_variable_of_a_path_is_described_once() {
    for document in [document(), seckill::admin::document()] {
        let document = serde_json::to_value(document).unwrap();
        for (method, path, call) in calls(&document) {
            let variables: Vec<&str> = path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
            let none = Vec::new();
            let described = call["parameters"].as_array().unwrap_or(&none).iter();
            let described: Vec<&str> =
                described.filter(|of| of["in"] == "path").map(|of| of["name"].as_str().unwrap()).collect();
            assert_eq!(described, variables, "{method} {path}");
        }
    }
}

#[test]
fn every_call_of_the_contract_has_a_name_of_its_own() {
    for document in [document(), seckill::admin::document()] {
        let document = serde_json::to_value(document).unwrap();
        let names: Vec<&str> = calls(&document).map(|(_, _, call)| call["operationId"].as_str().unwrap()).collect();
        // Client generators make functions of them.
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}

#[test]
fn the_contract_names_every_problem_code() {
    let document = serde_json::to_value(document()).unwrap();
    let listed = &document["components"]["schemas"]["ProblemBody"]["properties"]["code"]["anyOf"][0]["enum"];
    let listed: BTreeSet<&str> =
        listed.as_array().expect("the codes").iter().map(|code| code.as_str().unwrap()).collect();
    let known: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.code()).collect();
    assert_eq!(listed, known);
    for kind in Kind::ALL {
        assert!((400..600).contains(&kind.status()) && !kind.english().is_empty() && !kind.chinese().is_empty());
    }
}

/// Cells of the Markdown table rows below the heading `title` of a page, without the headers.
fn rows_below(page: &str, title: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let section = text.split(&format!("\n## {title}\n")).nth(1).unwrap_or_else(|| panic!("no section {title}"));
    let section = section.split("\n## ").next().unwrap();
    let rows =
        section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #") && !line.starts_with("|--"));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Names of the tests that exist, in the sources and in `tests/`.
fn tests() -> BTreeSet<String> {
    let sources = [files("src", "rs"), files("bench/src", "rs"), files("tests", "rs")].concat();
    let texts: String = sources.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let names = texts.match_indices("fn ").map(|(at, _)| texts[at + 3..].split(['(', '<']).next().unwrap().to_owned());
    names.collect()
}

#[test]
fn every_loss_window_names_what_closes_it_and_a_test_that_exists() {
    let (rows, known) = (rows_below("docs/register.md", "Loss windows"), tests());
    let numbers: Vec<u32> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    // Comments name windows by number: none is left out, and none changes its place.
    assert!(numbers.len() >= 128 && numbers.iter().zip(1..).all(|(number, place)| *number == place), "{numbers:?}");
    for row in &rows {
        let [number, window, harm, closed_by, shown_by] = row.as_slice() else { panic!("{row:?}") };
        assert!([window, harm, closed_by, shown_by].iter().all(|cell| !cell.is_empty()), "window {number}");
        let named: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        let check =
            closed_by.starts_with("check") || closed_by.starts_with("open") || closed_by.starts_with("not used");
        assert!(!named.is_empty() || check, "window {number} names no test");
        for name in named {
            assert!(known.contains(name), "window {number}: there is no test {name}");
        }
    }
}

#[test]
fn every_crash_point_and_every_mechanism_is_in_the_pages() {
    let codes = |title: &str| -> Vec<String> {
        rows_below("docs/proof.md", title).into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
    };
    let points: Vec<&str> = CrashPoint::ALL.iter().map(|point| point.code()).collect();
    assert_eq!(codes("Crash points"), points);
    let mut controls = codes("Negative controls");
    let mutations = rows_below("docs/model.md", "Mutations of the product");
    controls.extend(mutations.into_iter().map(|row| row[1].trim_matches('`').to_owned()));
    for mechanism in Mechanism::ALL {
        assert!(controls.iter().any(|code| code == mechanism.code()), "{}", mechanism.code());
    }
}

/// What the compiler says about `src/faults.rs` alone, with the feature `faults`. Other errors come from what is not there.
fn compiled_with_faults(debug_assertions: &str) -> String {
    let source = root().join("src/faults.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cfg", "feature=\"faults\"", "-C"]);
    rustc.arg(format!("debug-assertions={debug_assertions}")).arg("-o").arg("/dev/null").arg(source);
    String::from_utf8(rustc.output().expect("rustc").stderr).unwrap()
}

#[test]
fn no_release_has_the_fault_points() {
    const REFUSED: &str = "is for the quick profile only";
    assert!(compiled_with_faults("off").contains(REFUSED), "a build without debug assertions");
    assert!(!compiled_with_faults("on").contains(REFUSED), "the quick profile");
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let releases = manifest.split("[profile.").filter(|part| part.starts_with("release]") || part.starts_with("dist]"));
    for profile in releases {
        assert!(!profile.contains("debug-assertions"), "{profile}");
    }
    assert!(manifest.contains("default = []"), "faults is asked for by name");
}

/// Every crate of a build with its features, `edges` of the tree followed.
fn crates(edges: &str) -> BTreeSet<String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--locked", "--features", "faults", "--prefix", "none", "--format", "{p} [{f}]"]);
    tree.args(["--edges", edges, "--target", &target]).current_dir(root());
    let output = tree.output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// A dependency of the tests that asks for another feature of a shared crate has it built twice, with all that use it.
#[test]
fn the_tests_share_every_dependency_with_make_run() {
    let (run, test) = (crates("normal,build"), crates("normal,build,dev"));
    let again: Vec<&String> = run.difference(&test).collect();
    assert!(run.len() > 200 && again.is_empty(), "built with other features for the tests: {again:?}");
}
