//! The results: JSON below `target/hosts`, written after each scene, and a line for people. `RECORD=1 make hosts` copies the files
//! to `docs/data/hosts`, from which the tables of `docs/proof.md` are made.

use crate::play::Played;
use crate::servers::roles;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Results of one run, written after each scene.
pub struct Results {
    file: PathBuf,
    head: Value,
    scenes: Vec<Value>,
    red: Vec<String>,
}

impl Results {
    /// None yet.
    pub fn begin(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("hosts");
        std::fs::create_dir_all(&folder).expect("a folder");
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let commit = std::env::var("HOSTS_COMMIT").unwrap_or_default();
        let date = std::env::var("HOSTS_DATE").unwrap_or_default();
        let balancers = roles::through_balancers();
        let head =
            json!({ "commit": commit, "cores": cores, "balancers": balancers, "date": date, "program": "release" });
        Self { file: folder.join(format!("{name}.json")), head, scenes: Vec::new(), red: Vec::new() }
    }

    /// Writes one down.
    pub fn add(&mut self, played: &Played) {
        let record = played.record();
        eprintln!(
            "hosts: {}: lost {}, doubled {}, oversold {}, others {}; {}; whole {} s after it; by hand {}; accepted {}; \
             payments reported {} times; of all scenes: payments {}, orders {}",
            played.scene.name,
            record["lost"],
            record["doubled"],
            record["oversold"],
            record["other_violations"],
            record["seconds"],
            record["whole_after_s"],
            record["by_hand"],
            played.totals.accepted,
            played.totals.payments,
            record["payments"],
            record["orders_by_state"],
        );
        if !played.is_green() {
            let found = format!(
                "{}: {} {:?} {} {}",
                played.scene.name,
                record["violations"],
                played.unrest,
                record["not_as_promised"],
                record["traces"]["unexplained"]
            );
            eprintln!("hosts: RED {found}");
            self.red.push(found);
        }
        self.scenes.push(record);
        self.write(&json!({}));
    }

    /// Writes the file, with more about the run.
    pub fn write(&self, more: &Value) {
        let mut all = self.head.clone();
        all["scenes"] = json!(self.scenes);
        if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        std::fs::write(&self.file, serde_json::to_string_pretty(&all).expect("json") + "\n").expect("written");
    }

    /// Nothing was red.
    pub fn assert_green(&self) {
        eprintln!("hosts: results are in {}", self.file.display());
        assert!(self.red.is_empty(), "{}", self.red.join("\n"));
        assert!(!self.scenes.is_empty(), "no scene was played");
    }

    /// Whether something was red.
    pub fn is_red(&self) -> bool {
        !self.red.is_empty()
    }
}
