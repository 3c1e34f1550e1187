//! What a purchase costs in processor time, against the least that could be called one. Rates depend on what else the machine
//! does; processor time for each purchase does much less.
//!
//! The plain handler runs in a process of its own here, so that its processor time can be told from the load generator's. A
//! crash of this process kills it (the kernel does).

use super::cpu::{CpuMeter, CpuUsage, LOAD};
use super::environment::Environment;
use super::plain_handler;
use super::sizes::Sizes;
use super::sold_out::purchase_in;
use crate::baseline;
use crate::loadgen::{self, buyer_name};
use seckill::cli::Failure;
use seckill::config::{Layers, Settings};
use seckill::dev::{Child, ports::free_port};
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::roles;
use seckill::runtime::Stopper;
use seckill::token_issuer::TokenIssuer;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// The name of the plain handler among the processes.
const PLAIN: &str = "plain handler";
/// It must take connections within this time.
const READY: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);
/// Buyers whose tokens are used in turn.
const BUYERS: u64 = 1_000;

/// Processor time of a process for each of `count` things, µs; `None` when it was not measured.
#[expect(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are enough")]
pub(super) fn us_each(usage: &CpuUsage, process: &str, count: u64) -> Option<f64> {
    usage.seconds.get(process).filter(|_| count > 0).map(|seconds| seconds * 1e6 / count as f64)
}

/// Processor time of all processes but the load generator for each of `count` things, µs.
#[expect(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are enough")]
pub(super) fn us_of_all(usage: &CpuUsage, count: u64) -> Option<f64> {
    let all: f64 = usage.seconds.iter().filter(|(name, _)| name.as_str() != LOAD).map(|(_, seconds)| seconds).sum();
    (count > 0 && all > 0.0).then(|| all * 1e6 / count as f64)
}

/// The plain handler under the load of a crowd.
pub(super) struct PlainCost {
    /// Answers a second.
    pub per_s: f64,
    /// Its processor time for each answer, µs.
    pub us: Option<f64>,
}

/// Measures the plain handler with as many connections as the crowd has; `None` on a stack that was there before.
pub(super) async fn of_plain_handler(environment: &Environment, sizes: &Sizes) -> Result<Option<PlainCost>, Failure> {
    let Some(role_processes) = environment.role_processes() else { return Ok(None) };
    let address = format!("127.0.0.1:{}", free_port()?);
    let words = ["plain", "--listen", &address].map(str::to_owned);
    let child = role_processes.child("plain", &words).await?;
    takes_connections(&address).await?;
    let requests = purchases(environment, &address)?;
    let watch = CpuMeter::start_with(environment, (PLAIN, child.pid()));
    let responses = plain_handler::refusals(&format!("http://{address}"), requests, environment, sizes).await?;
    let usage = watch.end();
    drop::<Child>(child);
    let answers = responses.answers.status(410);
    Ok(Some(PlainCost { per_s: responses.per_s(410), us: us_each(&usage, PLAIN, answers) }))
}

async fn takes_connections(address: &str) -> Result<(), Failure> {
    let end = Instant::now() + READY;
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > end {
            return Err(Failure::Failed(format!("the plain handler does not listen on {address}")));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Purchases as a crowd sends them.
fn purchases(environment: &Environment, host: &str) -> Result<Vec<String>, Failure> {
    let auth = &environment.settings.auth;
    let issuer = TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?;
    let purchase = |buyer| {
        let access = issuer.sign(&buyer_name(buyer), loadgen::access_tokens::ACCESS_TTL_S)?;
        Ok(purchase_in("bench", host, &access, ""))
    };
    (0..BUYERS).map(purchase).collect()
}

/// The process: serves until it is killed.
pub(super) async fn serve_plain(layers: &Layers, listen: &str) -> Result<u8, Failure> {
    let settings = Settings::load(layers)?;
    let auth = Authenticator::new(&settings.auth).map_err(|error| Failure::Failed(error.to_string()))?;
    let listener = roles::bind("--listen", listen)?;
    baseline::http::serve(auth, listener, &settings.http, Stopper::new())?.await?;
    Ok(0)
}
