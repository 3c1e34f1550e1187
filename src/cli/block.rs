//! `seckill block …`: buyers who may not buy.

use super::failure::Failure;
use super::{context, output};
use crate::buyers::forms::{self, BlockForm};
use crate::buyers::rows::{Block, BlockDocument, PAGE_MAX};
use crate::config::Layers;
use crate::http::times::shown_time;
use crate::roles::Servers;
use chrono::Utc;
use serde_json::json;
use std::path::Path;

/// `seckill block …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum BlockCommand {
    /// Block a buyer: no purchase, no purchase token, no place in a waiting room; orders that exist stay
    #[command(after_help = "Examples:
  seckill block add u4711 --reason \"resells tickets\"
  seckill block add u4711 --reason \"under review\" --ends-at 2027-03-01T12:00:00+01:00")]
    Add {
        #[command(flatten)]
        form: BlockForm,
    },
    /// Let a blocked buyer buy again
    Remove {
        /// The buyer: the sub of the access tokens
        #[arg(value_name = "BUYER")]
        buyer: String,
    },
    /// List blocked buyers, in the order of their ids
    List {
        /// Only buyers behind this one
        #[arg(long, value_name = "BUYER")]
        after: Option<String>,
        /// At most this many
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(i64).range(1..=PAGE_MAX))]
        limit: i64,
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: BlockCommand) -> Result<u8, Failure> {
    // Redis and the broker are not needed.
    let blocks = Servers::new(&context::settings(layers, data_dir)?)?.rows.blocks;
    match command {
        BlockCommand::Add { form } => {
            let block = form.checked(Utc::now())?;
            let said = match blocks.add(&context::operator(), &block).await {
                Ok(true) => "is blocked; every api process refuses this buyer within two seconds",
                Ok(false) => "was blocked before, in the same way",
                Err(error) => return Err(Failure::Failed(error.to_string())),
            };
            output::line(&format!("{} {said}", block.buyer.as_str()));
        }
        BlockCommand::Remove { buyer } => {
            let buyer = forms::buyer(&buyer)?;
            let lifted = blocks.remove(&context::operator(), &buyer).await?;
            let said = if lifted { "may buy again, within two seconds" } else { "is not blocked" };
            output::line(&format!("{} {said}", buyer.as_str()));
        }
        BlockCommand::List { after, limit, json } => {
            let after = after.as_deref().map(forms::buyer).transpose()?;
            show(blocks.page(after.as_ref(), limit).await?, limit, json);
        }
    }
    Ok(0)
}

fn show(page: Vec<Block>, limit: i64, json: bool) {
    let is_full = i64::try_from(page.len()).is_ok_and(|count| count == limit);
    let found: Vec<BlockDocument> = page.into_iter().filter_map(BlockDocument::of).collect();
    if json {
        return output::json(&json!({ "blocks": found }));
    }
    if found.is_empty() {
        return output::line("no buyer is blocked");
    }
    output::table(
        ["buyer", "since", "until", "reason"],
        found.iter().map(|block| {
            let until = block.ends_at_ms.map_or_else(|| "it is lifted".to_owned(), shown_time);
            [block.buyer.clone(), shown_time(block.blocked_at_ms), until, block.reason.clone()]
        }),
    );
    output::more("after", found.last().filter(|_| is_full).map(|block| &block.buyer));
}
