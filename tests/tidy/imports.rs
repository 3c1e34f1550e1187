//! Who may import what: servers' crates, frameworks, and the handles instead of the stores.

use super::{code, files, no_complaints, shipped, uses};

/// Whether a file lies in a folder from the root, or in a room's folder or file of this name (`/rows/`, `/rows.rs`).
fn is_home(file: &str, home: &str) -> bool {
    if home.starts_with('/') { file.contains(home) } else { file.starts_with(home) }
}

#[test]
fn each_server_and_framework_is_imported_by_one_place_only() {
    let places: [(&[&str], &[&str]); 7] = [
        (&["fred"], &["src/store/redis/", "bench/src/baseline/"]),
        (&["rustls", "tokio_rustls", "rustls_native_certs", "pkcs8"], &["src/store/", "src/dev/readiness.rs"]),
        (&["amqprs"], &["src/store/rabbit/", "bench/src/baseline/"]),
        (
            &["diesel", "diesel_async", "diesel_migrations", "mysql_async"],
            &["src/store/mysql/", "/rows/", "/rows.rs", "/persist/", "bench/src/baseline/", "bench/src/lags.rs"],
        ),
        (
            &["actix_web", "actix_cors"],
            &["src/http/", "src/p1_entry/http/", "src/admin/", "src/console/", "bench/src/baseline/"],
        ),
        (&["hyper", "hyper_util", "hyper_rustls", "http_body_util", "tower"], &["src/http/client.rs"]),
        (&["clap"], &["src/cli/", "src/roles/", "/forms.rs", "/forms/", "bench/src/"]),
    ];
    let mut complaints = Vec::new();
    for (file, text) in shipped() {
        for (at, line) in code(&text) {
            for (names, homes) in &places {
                let foreign = names.iter().find(|name| uses(line, name));
                if let Some(name) = foreign.filter(|_| !homes.iter().any(|home| is_home(&file, home))) {
                    complaints.push(format!("{file}:{at}: {name} is for {} only", homes.join(", ")));
                }
            }
        }
    }
    no_complaints(&complaints);
}

/// What a phase may touch is written in its constructors: the handles by family, never the bundle of all of them.
#[test]
fn no_phase_is_given_all_of_redis() {
    let phases =
        ["p1_entry", "p2_reserve", "p3_relay", "p4_persist", "p5_reconcile", "p6_fulfil", "sales", "events", "orders"];
    let mut complaints = Vec::new();
    for (file, text) in phases.iter().flat_map(|phase| files(&format!("src/{phase}"), "rs")) {
        let named = code(&text).filter(|(_, line)| line.contains("RedisStore"));
        complaints.extend(named.map(|(at, _)| format!("{file}:{at}: takes the handles it uses, not RedisStore")));
    }
    no_complaints(&complaints);
}

/// The same of the database: the pool stays in the handles, which stand beside the tables.
#[test]
fn no_phase_is_given_the_database() {
    let rooms =
        ["p1_entry", "p2_reserve", "p3_relay", "p4_persist", "p5_reconcile", "p6_fulfil", "sales", "events", "orders"];
    let mut complaints = Vec::new();
    for (file, text) in rooms.iter().flat_map(|room| files(&format!("src/{room}"), "rs")) {
        if file.contains("/rows/") || file.contains("/persist/") {
            continue;
        }
        let is_pool = |line: &str| {
            line.contains("DatabaseRows")
                || line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "Db")
                    && !line.contains("SaleError::Db")
        };
        let named = code(&text).filter(|(_, line)| is_pool(line));
        complaints.extend(named.map(|(at, _)| format!("{file}:{at}: takes the handles it uses, not the database")));
    }
    no_complaints(&complaints);
}
