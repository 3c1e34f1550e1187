//! Where a drop is played: a system of its own, or the stack of `make run`.

use crate::support::processes::programs::call;
use seckill::config::{Layers, Settings};
use seckill::dev::DevState;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the private system adds to the quick settings of tests. Facts by access token and by pass.
pub const FACTS: &str = "auth.facts=tier=membership,person=pid,channel=channel";
/// The claim of each fact.
pub const CLAIMS: [(&str, &str); 3] = [("tier", "membership"), ("person", "pid"), ("channel", "channel")];

/// A system, by its addresses and secrets.
pub struct Target {
    /// `http://…`, for buyers.
    pub api: String,
    /// `http://…`, for the shop's backend.
    pub admin: String,
    /// Of the admin API.
    pub admin_token: String,
    /// Signs access tokens.
    pub secret: String,
    /// Signs passes; none: the system reads no passes.
    pub pass_secret: Option<String>,
    /// Whether access tokens have the facts of [`CLAIMS`].
    pub facts_by_token: bool,
    pub mysql: String,
    pub redis: String,
    /// Of Redis' keys.
    pub prefix: String,
    pub shards: u16,
    /// The first arguments of each command.
    pub arguments: Vec<String>,
    /// Of a running stack: the folder of its `dev.json`.
    pub stack: Option<PathBuf>,
}

impl Target {
    /// The stack of `make run` in `folder`, as its `dev.json` says.
    pub fn running(folder: &Path) -> Self {
        let state = DevState::read(folder).expect("dev.json").unwrap_or_else(|| {
            panic!(
                "no stack runs in {}: start one in another terminal, make run, or make run ARGS=--split",
                folder.display()
            )
        });
        let layers = Layers { files: state.config.clone(), set: state.set.clone() };
        let settings = Settings::load(&layers).expect("the settings that the stack was started with");
        let folder = std::path::absolute(folder).expect("a folder");
        Self {
            api: state.api,
            admin: state.admin,
            admin_token: state.admin_token,
            secret: state.jwt_secret,
            pass_secret: Some(state.pass_secret).filter(|secret| !secret.is_empty()),
            facts_by_token: state.set.iter().any(|set| set == FACTS),
            mysql: state.mysql_url,
            redis: state.redis_url,
            prefix: settings.redis.prefix.clone(),
            shards: settings.redis.shards,
            arguments: vec!["--data-dir".to_owned(), folder.display().to_string()],
            stack: Some(folder),
        }
    }

    /// Runs a command of the product, as an operator does: exit code, standard output, standard error.
    pub fn call(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let all: Vec<&str> = self.arguments.iter().map(String::as_str).chain(args.iter().copied()).collect();
        tokio::task::block_in_place(|| call(&all))
    }

    /// The same; it has to succeed.
    pub fn must_call(&self, args: &[&str]) {
        let (code, out, err) = self.call(args);
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    }

    /// Fails when the system cannot know what the file needs.
    pub fn can_play(&self, file: &Value) {
        let sales = file["sales"].as_array().expect("sales");
        let facts = file["limit_by"] == "person" || sales.iter().any(|sale| sale["needs"].is_object());
        assert!(
            !facts || self.pass_secret.is_some(),
            "this drop needs facts of its buyers, and the stack reads no passes: it is of an earlier version"
        );
    }
}
