//! `seckill token mint`: an access token for trying things out. Real buyers get theirs from the gateway's issuer.

use super::{Failure, context, output};
use crate::config::{Algorithm, Layers};
use crate::crowd::Minter;
use crate::domain::ids::UserId;
use std::path::Path;
use std::time::Duration;

/// `seckill token …`
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print one access token (HS256) for a buyer
    Mint {
        /// The buyer
        #[arg(long, value_name = "USER")]
        sub: UserId,
        /// How long it is valid, e.g. 30m, 1h, 2days
        #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
        ttl: Duration,
    },
}

pub(super) fn run(layers: &Layers, data_dir: &Path, command: Command) -> Result<u8, Failure> {
    let Command::Mint { sub, ttl } = command;
    let auth = context::settings(layers, data_dir)?.auth;
    if auth.algorithm != Algorithm::Hs256 || auth.secret.expose().is_empty() {
        return Err(Failure::Usage(
            "auth.secret: tokens are minted with HS256 and its secret only; start seckill dev, or give --set auth.secret=…".to_owned(),
        ));
    }
    let minter = Minter::new(&auth.secret, &auth.issuer, &auth.audience);
    let minted = minter.and_then(|minter| minter.sign(sub.as_str(), ttl.as_secs()));
    output::line(&minted.map_err(|error| Failure::Failed(error.to_string()))?);
    Ok(0)
}
