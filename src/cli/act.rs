//! `seckill act …`: what people did, as `operator_acts` has it.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::domain::ids::SaleId;
use crate::roles::Servers;
use crate::store::mysql::acts::{self, RecordedAct};
use std::path::Path;

/// Longest words of a cell, characters; `--json` has all of them.
const WORDS_CHARS_MAX: usize = 80;

/// `seckill act …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum ActCommand {
    /// List the last acts, newest first
    List {
        /// Only those about this sale
        #[arg(long)]
        sale: Option<SaleId>,
        /// At most this many
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// As JSON, with what was there before and after
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: ActCommand) -> Result<u8, Failure> {
    let ActCommand::List { sale, limit, json } = command;
    // Redis and the broker are not needed: acts can be read while they are down.
    let servers = Servers::new(&context::settings(layers, data_dir)?)?;
    let found = acts::list(&servers.db, &acts::ActFilter { sale_id: sale, before: None, limit }).await?;
    if json {
        output::json(&found);
    } else if found.is_empty() {
        output::line("nothing was done yet");
    } else {
        output::table(["when", "who", "what", "to", "sale", "outcome", "reason"], found.iter().map(row));
    }
    Ok(0)
}

fn row(act: &RecordedAct) -> [String; 7] {
    let dash = || "-".to_owned();
    let who = if act.actor_name.is_empty() || act.actor_name == act.actor_id {
        act.actor_id.clone()
    } else {
        format!("{} ({})", act.actor_name, act.actor_id)
    };
    [
        output::time(act.at_ms),
        who,
        act.action.clone(),
        format!("{} {}", act.target_type, act.target_id),
        act.sale_id.as_ref().map_or_else(dash, ToString::to_string),
        act.code.as_ref().map_or_else(|| act.outcome.clone(), |code| format!("{}: {code}", act.outcome)),
        act.reason.as_ref().map_or_else(dash, |reason| reason.chars().take(WORDS_CHARS_MAX).collect()),
    ]
}
