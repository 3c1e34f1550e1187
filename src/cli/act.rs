//! `seckill act …`: what people did, as `operator_acts` has it.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::domain::ids::SaleId;
use crate::http::times::shown_time;
use crate::roles::Servers;
use crate::sales::rows::acts::{self, RecordedAct};
use std::path::Path;

/// Longest words of a cell, characters; `--json` has all of them.
const WORDS_CHARS_MAX: usize = 80;

/// The highest number of an act: what the admin API's document calls int64.
const ACT_ID_MAX: u64 = i64::MAX.unsigned_abs();

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
        /// Only acts before this one: the last act_id of the page before
        #[arg(long, value_name = "ACT", value_parser = clap::value_parser!(u64).range(1..=ACT_ID_MAX))]
        before: Option<u64>,
        /// As JSON, with what was there before and after
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: ActCommand) -> Result<u8, Failure> {
    let ActCommand::List { sale, limit, before, json } = command;
    // Redis and the broker are not needed: acts can be read while they are down.
    let servers = Servers::new(&context::settings(layers, data_dir)?)?;
    let found = servers.rows.acts.list(&acts::ActFilter { sale_id: sale, before, limit }).await?;
    if json {
        output::json(&found);
    } else if found.is_empty() {
        output::line("nothing was done yet");
    } else {
        output::table(["when", "who", "what", "to", "sale", "outcome", "reason"], found.iter().map(row));
        let is_full = u32::try_from(found.len()).is_ok_and(|count| count == limit);
        output::more("before", found.last().filter(|_| is_full).map(|act| act.act_id));
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
        shown_time(act.at_ms),
        who,
        act.action.clone(),
        format!("{} {}", act.target_type, act.target_id),
        act.sale_id.as_ref().map_or_else(dash, ToString::to_string),
        act.code.as_ref().map_or_else(|| act.outcome.clone(), |code| format!("{}: {code}", act.outcome)),
        act.reason.as_ref().map_or_else(dash, |reason| reason.chars().take(WORDS_CHARS_MAX).collect()),
    ]
}
