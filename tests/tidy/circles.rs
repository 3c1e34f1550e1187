//! No circle between files: to change one file of a circle, a person has to understand all of them.
//!
//! A file imports the files to which its `use` lines lead, and the paths in its code that begin with `crate::` or `super::`; unit
//! tests are left out. What a `mod.rs` hands on is imported through that `mod.rs`. A module and the modules inside it are one thing in
//! parts, so what a file takes from a module that it lies in does not count; but what that module only hands on is an import of
//! the file that has it.

use super::{code, files, no_complaints};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Circles that stay: one of their files, and the reason.
const ALLOWED: [(&str, &str); 0] = [];

/// A path of names from the root of its crate, which has none.
type Names = Vec<String>;

/// Which files each file imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The module that a file is.
fn module_of(file: &str) -> Names {
    let mut names = names(&file.trim_end_matches(".rs").replace('/', "::"));
    names.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    names
}

fn names(path: &str) -> Names {
    path.split("::").map(|name| name.trim().to_owned()).collect()
}

/// The code of a file without what is compiled for tests only.
fn shipped_code(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = code(text).map(|(_, line)| line).peekable();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        // Unit tests are the end of their file.
        let is_module = |line: &&str| line.starts_with("mod ") || line.contains(" mod ");
        if lines.peek().is_some_and(is_module) {
            break;
        }
        while lines.next().is_some_and(|line| !line.ends_with(';') && line != "}") {}
    }
    kept
}

/// The ends of the tree of a `use` line: of `a::{b, c::{self, D as E}}` they are `a::b`, `a::c` and `a::c::D`, here called `b`, `c`, `E`.
fn ends(tree: &str) -> Vec<(Names, String)> {
    let Some((prefix, inside)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path = names(path);
        path.pop_if(|last| last == "self");
        let own = path.last().cloned().unwrap_or_default();
        return vec![(path, if name.is_empty() { own } else { name.trim().to_owned() })];
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let mut depth = 0_usize;
    let branches = inside.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let branches = branches.map(str::trim).filter(|branch| !branch.is_empty());
    branches.flat_map(|branch| ends(&format!("{}{branch}", prefix.trim_start()))).collect()
}

/// The paths that the code of a file uses, each with its name here; those that are not in a `use` line have none.
fn paths(code: &str) -> Vec<(Names, String)> {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some((_, tree)) = line.split_once("use ").filter(|(before, _)| is_visibility(before)) else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().unwrap_or(";"));
        }
        found.extend(ends(tree.split(';').next().unwrap_or_default()));
    }
    for start in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(start) {
            let is_begin = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c));
            let path = rest[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next();
            found.extend(path.filter(|_| is_begin).map(|path| (names(path.trim_end_matches(':')), String::new())));
        }
    }
    found
}

fn is_visibility(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || before == "pub" || before.starts_with("pub(") && before.ends_with(')')
}

/// The same path from the root of the crate; of another crate it leads nowhere.
fn from_root(module: &Names, path: &[String]) -> Names {
    match path.first().map(String::as_str) {
        Some("crate") => path[1..].to_vec(),
        Some("self") => [module.as_slice(), &path[1..]].concat(),
        Some("super") => {
            let up = path.iter().take_while(|name| *name == "super").count();
            [&module[..module.len().saturating_sub(up)], &path[up..]].concat()
        }
        _ => [module.as_slice(), path].concat(),
    }
}

/// Which files import which, of the files of one crate: their names from its root, and their texts.
fn imports(texts: &[(String, String)]) -> Imports {
    let homes: BTreeMap<Names, &String> = texts.iter().map(|(file, _)| (module_of(file), file)).collect();
    let read = |(file, text): &(String, String)| {
        let module = module_of(file);
        let paths = paths(&shipped_code(text)).into_iter();
        let paths: Vec<_> = paths.map(|(path, name)| (from_root(&module, &path), name)).collect();
        (module, paths)
    };
    let read: BTreeMap<Names, Vec<(Names, String)>> = texts.iter().map(read).collect();
    // How much of a path is a module with a file.
    let depth = |path: &Names| (0..=path.len()).rev().find(|end| homes.contains_key(&path[..*end])).unwrap_or(0);
    let mut found = Imports::new();
    for (module, paths) in &read {
        let mine = found.entry(homes[module].clone()).or_default();
        for (path, _) in paths {
            let mut path = path.clone();
            // A name that one of its own modules hands on stands for what it is there.
            for _ in 0..module.len() {
                let home = &path[..depth(&path)];
                let Some(name) = path.get(home.len()).filter(|_| module.starts_with(home) && module != home) else {
                    break;
                };
                let handed_on = read[home].iter().find(|(_, known)| known == name);
                let Some((whole, _)) = handed_on.filter(|(whole, _)| depth(whole) > home.len()) else { break };
                path = [whole.as_slice(), &path[home.len() + 1..]].concat();
            }
            let home = &path[..depth(&path)];
            if !module.starts_with(home) {
                mine.insert(homes[home].clone());
            }
        }
    }
    found
}

/// The shortest way from a file to another one, both included.
fn way(imports: &Imports, from: &str, to: &str) -> Option<Vec<String>> {
    let mut open = VecDeque::from([vec![from.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = open.pop_front() {
        for next in imports.get(way.last()?).into_iter().flatten() {
            if next == to {
                return Some([way, vec![next.clone()]].concat());
            }
            if seen.insert(next) {
                open.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

/// The shortest circle through a file of each set of files that all lead to each other, and the set.
fn circles(imports: &Imports) -> Vec<(Vec<String>, BTreeSet<String>)> {
    let mut imports = imports.clone();
    // A file that imports no file which is left is in no circle.
    while let Some(file) =
        imports.iter().find(|(_, to)| !to.iter().any(|to| imports.contains_key(to))).map(|(file, _)| file.clone())
    {
        imports.remove(&file);
    }
    let imports = &imports;
    let mut found: Vec<(Vec<String>, BTreeSet<String>)> = Vec::new();
    for file in imports.keys() {
        if found.iter().any(|(_, all)| all.contains(file)) {
            continue;
        }
        if let Some(circle) = way(imports, file, file) {
            let is_of_it = |other: &&String| {
                *other == file || way(imports, file, other).is_some() && way(imports, other, file).is_some()
            };
            found.push((circle, imports.keys().filter(is_of_it).cloned().collect()));
        }
    }
    found
}

#[test]
fn no_circle_between_files() {
    let mut complaints = Vec::new();
    let mut allowed = BTreeSet::new();
    for root in ["src/", "bench/src/"] {
        let texts = files(root.trim_end_matches('/'), "rs").into_iter();
        let texts: Vec<_> = texts.map(|(file, text)| (file.trim_start_matches(root).to_owned(), text)).collect();
        for (circle, all) in circles(&imports(&texts)) {
            if let Some((file, _)) = ALLOWED.iter().find(|(file, _)| all.contains(file.trim_start_matches(root))) {
                allowed.insert(*file);
                continue;
            }
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let circle = circle.join(" imports ");
            complaints.push(format!(
                "{} files of {root} form a circle: {}\n    the shortest: {circle}\n    move what two of them share to a file below both",
                all.len(),
                all.join(", ")
            ));
        }
    }
    let unneeded = ALLOWED.iter().filter(|(file, _)| !allowed.contains(file));
    complaints.extend(unneeded.map(|(file, _)| format!("{file} is in no circle and needs no reason")));
    no_complaints(&complaints);
}

#[test]
fn the_ends_of_a_use_line_are_read() {
    let read = |tree| -> Vec<String> {
        ends(tree).into_iter().map(|(path, name)| format!("{} {name}", path.join("::"))).collect()
    };
    assert_eq!(read("a::B"), ["a::B B"]);
    assert_eq!(
        read("crate::a::{self, b, c::{self as d, D as E,}, F}"),
        ["crate::a a", "crate::a::b b", "crate::a::c d", "crate::a::c::D E", "crate::a::F F"]
    );
    let code =
        "pub(crate) use a::{\n    B,\n    C,\n};\n    let x = crate::d::e(super::F);\n    reuse a::G;\n$crate::h::I";
    let found: Vec<String> = paths(code).into_iter().map(|(path, _)| path.join("::")).collect();
    assert_eq!(found, ["a::B", "a::C", "crate::d::e", "super::F"]);
}

#[test]
fn a_circle_is_found_with_its_shortest_way() {
    let made_up = |texts: &[(&str, &str)]| -> Vec<(String, usize)> {
        let texts: Vec<_> = texts.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        let found = circles(&imports(&texts)).into_iter();
        found.map(|(circle, all)| (circle.join(" "), all.len())).collect()
    };
    let long = [
        ("a.rs", "use crate::b::{self, B};\n"),
        ("b.rs", "use crate::c::C;\nuse super::d;\n"),
        ("c.rs", "fn c() {\n    crate::a::a();\n}\n"),
        ("d.rs", "use std::fmt;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
    ];
    assert_eq!(made_up(&long), [("a.rs b.rs c.rs a.rs".to_owned(), 3)]);
    assert_eq!(
        made_up(&[("a.rs", "use crate::b::B;\n"), ("b.rs", "// use crate::a::A;\n#[cfg(test)]\nuse crate::a::A;\n")]),
        []
    );
    // Through the file that hands it on.
    let handed =
        [("a/mod.rs", "mod b;\npub use b::B;\n"), ("a/b.rs", "use crate::c::C;\n"), ("c.rs", "use crate::a::B;\n")];
    assert_eq!(made_up(&handed), [("a/b.rs c.rs a/mod.rs a/b.rs".to_owned(), 3)]);
    // What a module has itself is its children's, too; what it hands on to them is another file's.
    let own = [("a/mod.rs", "use b::B;\npub struct A;\n"), ("a/b.rs", "use super::A;\n")];
    assert_eq!(made_up(&own), []);
    let between =
        [("a/mod.rs", "use b::B;\nuse c::C;\n"), ("a/b.rs", "use super::C;\n"), ("a/c.rs", "use super::{B, D};\n")];
    assert_eq!(made_up(&between), [("a/b.rs a/c.rs a/b.rs".to_owned(), 2)]);
}
