//! `seckill token mint`: access tokens for trying things out. Real buyers get theirs from the gateway's issuer.

use super::failure::Failure;
use super::{context, output};
use crate::config::Layers;
use crate::domain::ids::UserId;
use crate::token_issuer::{IssueError, TokenIssuer};
use std::path::Path;
use std::time::Duration;

/// `seckill token …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum TokenCommand {
    /// Print one access token (HS256) for a buyer, or many for a load generator
    #[command(group = clap::ArgGroup::new("who").required(true).args(["sub", "prefix"]))]
    Mint {
        #[arg(long, value_name = "USER")]
        sub: Option<UserId>,
        /// Instead of one buyer as many as --count: this name with 1, 2, … behind it
        #[arg(long, value_name = "NAME")]
        prefix: Option<String>,
        /// How many buyers
        #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "sub",
              value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        count: u32,
        /// Lines of buyer,token instead of the token alone
        #[arg(long)]
        csv: bool,
        /// How long it is valid, e.g. 30m, 1h, 2days
        #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
        ttl: Duration,
    },
}

pub(super) fn run(layers: &Layers, data_dir: &Path, command: TokenCommand) -> Result<u8, Failure> {
    let TokenCommand::Mint { sub, prefix, count, csv, ttl } = command;
    let auth = context::settings(layers, data_dir)?.auth;
    if !auth.uses_secrets() || auth.secrets_in_use().is_empty() {
        return Err(Failure::Usage(
            "auth.secret: tokens are minted with HS256 and its secret only; start seckill dev, or give --set auth.secret=…".to_owned(),
        ));
    }
    let failed = |error: IssueError| Failure::Failed(error.to_string());
    let issuer = TokenIssuer::new(auth.signing_secret(), &auth.issuer, &auth.audience).map_err(failed)?;
    for number in 1..=count {
        let user = match (&sub, &prefix) {
            (Some(sub), _) => sub.clone(),
            (None, prefix) => numbered(prefix.as_deref().unwrap_or_default(), number)?,
        };
        let token = issuer.sign(user.as_str(), ttl.as_secs()).map_err(failed)?;
        output::line(&if csv { format!("{user},{token}") } else { token });
    }
    Ok(0)
}

/// A buyer's name that also stands in a CSV as it is.
fn numbered(prefix: &str, number: u32) -> Result<UserId, Failure> {
    let wrong = |why: String| Failure::Usage(format!("--prefix {prefix}: {why}"));
    if prefix.contains([',', '"']) {
        return Err(wrong("commas and quotes would break the CSV".to_owned()));
    }
    UserId::parse(&format!("{prefix}{number}")).map_err(|error| wrong(error.to_string()))
}
