//! `seckill buyer …`: what is done with all that is on record of a buyer.

use super::failure::Failure;
use super::{context, output};
use crate::buyers::forms::ForgetForm;
use crate::config::Layers;
use std::path::Path;

/// `seckill buyer …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum BuyerCommand {
    /// Forget a buyer: the id becomes a pseudonym in all servers; orders and units stay as they are
    ///
    /// Refused while something of the buyer is on its way: an order that is not paid, a request without an outcome, an event
    /// that is not sent. The buyer is blocked meanwhile, and may come back as a new one. Repeat it when it was cut off, or P5
    /// ends it.
    #[command(after_help = "Example:
  seckill buyer forget u4711 --reason \"asked to be forgotten, ticket 12\"")]
    Forget {
        #[command(flatten)]
        form: ForgetForm,
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(layers: &Layers, data_dir: &Path, command: BuyerCommand) -> Result<u8, Failure> {
    let BuyerCommand::Forget { form, json } = command;
    let wanted = form.checked()?;
    let settings = context::settings(layers, data_dir)?;
    let forget = context::servers(&settings).await?.buyer_forget(&settings);
    let forgotten = forget.forget(&context::operator(), &wanted).await?;
    if json {
        output::json(&forgotten);
    } else {
        // Not the id: a terminal's log outlives it.
        output::line(&format!(
            "the buyer is forgotten: {} orders are of {} now",
            forgotten.orders, forgotten.pseudonym
        ));
    }
    Ok(0)
}
