//! What a purchase costs in processor time, against the least that could be called one. Rates depend on what else the machine
//! does; processor time for each purchase does much less.
//!
//! The plain handler runs in a process of its own here, so that its processor time can be distinguished from the load generator's. A
//! crash of this process kills it (the kernel does).

use super::cpu::{CpuMeter, CpuUsage, LOAD};
use super::environment::Environment;
use super::plain_handler;
use super::request_texts::purchase_in;
use super::sizes::Sizes;
use crate::baseline;
use crate::loadgen::{self, LoadPlan, buyer_name};
use seckill::cli::Failure;
use seckill::config::{Layers, Settings};
use seckill::dev::{Child, ports::free_port};
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::roles;
use seckill::runtime::Stopper;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// The name of the plain handler among the processes.
const PLAIN: &str = "plain handler";
/// It must take connections within this time.
const READY: Duration = Duration::from_secs(15);
const CHECK_EVERY: Duration = Duration::from_millis(10);
/// Buyers whose tokens are used in turn.
const BUYERS: u64 = 1_000;

/// Of these seconds for each of `count` things, µs; `None` when there were none.
#[expect(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are enough")]
pub(super) fn us_of(seconds: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| seconds * 1e6 / count as f64)
}

/// Processor time of a process for each of `count` things, µs; `None` when it was not measured.
pub(super) fn us_each(usage: &CpuUsage, process: &str, count: u64) -> Option<f64> {
    usage.seconds.get(process).and_then(|seconds| us_of(*seconds, count))
}

/// Processor time of an order, in all processes but the load generator.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndToEndCost {
    /// µs by process.
    by_process: BTreeMap<String, f64>,
}

impl EndToEndCost {
    /// For each of `count` orders; `None` when nothing was measured.
    pub fn of(usage: &CpuUsage, count: u64) -> Option<Self> {
        let by_process = usage.seconds.iter().filter(|(name, _)| name.as_str() != LOAD);
        let by_process =
            by_process.filter_map(|(name, seconds)| Some((name.clone(), us_of(*seconds, count)?))).collect();
        let cost = Self { by_process };
        (cost.us() > 0.0).then_some(cost)
    }

    /// µs of all processes.
    pub fn us(&self) -> f64 {
        self.by_process.values().sum()
    }

    pub fn json(&self) -> Value {
        json!(self.by_process)
    }

    /// For people: the dearest first.
    pub fn note(&self) -> String {
        let mut parts: Vec<_> = self.by_process.iter().filter(|(_, us)| **us >= 0.05).collect();
        parts.sort_by(|one, other| other.1.total_cmp(one.1));
        parts.iter().map(|(name, us)| format!("{name} {us:.1}")).collect::<Vec<_>>().join(", ")
    }
}

/// The plain handler in a process of its own; killed when dropped.
pub(super) struct PlainProcess {
    child: Child,
    /// `http://host:port`.
    url: String,
}

/// What the plain handler refused, and what it used for it.
#[derive(Clone, Copy, Default)]
pub(super) struct PlainUsage {
    refused: u64,
    elapsed: Duration,
    /// Its processor time, seconds.
    used_s: f64,
}

/// What a load says of a plain handler.
struct Refusals {
    count: u64,
    elapsed: Duration,
}

impl PlainProcess {
    /// Starts it on a free port; `None` on a stack that was there before.
    pub async fn start(environment: &Environment) -> Result<Option<Self>, Failure> {
        let Some(role_processes) = environment.role_processes() else { return Ok(None) };
        let address = format!("127.0.0.1:{}", free_port()?);
        let words = ["plain", "--listen", &address].map(str::to_owned);
        let child = role_processes.child("plain", &words).await?;
        takes_connections(&address).await?;
        Ok(Some(Self { child, url: format!("http://{address}") }))
    }

    /// What it uses while `load` asks it.
    async fn under(
        &self,
        environment: &Environment,
        load: impl Future<Output = Result<Refusals, Failure>>,
    ) -> Result<PlainUsage, Failure> {
        let watch = CpuMeter::start_with(environment, (PLAIN, self.child.pid()));
        let refusals = load.await?;
        let used_s = watch.end().seconds.get(PLAIN).copied().unwrap_or_default();
        Ok(PlainUsage { refused: refusals.count, elapsed: refusals.elapsed, used_s })
    }

    /// The load of a crowd that buys: with the same generator on both sides, its own work for a purchase is no part of a ratio.
    pub async fn under_crowd(&self, environment: &Environment, crowd: LoadPlan) -> Result<PlainUsage, Failure> {
        let load = async {
            let report = loadgen::run(LoadPlan { api_url: self.url.clone(), ..crowd }).await?;
            let count = report.by_status.status(410);
            if count == 0 || count < report.requests {
                return Err(plain_handler::answered_otherwise(&report.by_status));
            }
            Ok(Refusals { count, elapsed: Duration::from_millis(report.elapsed_ms) })
        };
        self.under(environment, load).await
    }

    /// The load of a few buyers' purchases again and again.
    pub async fn under_refusals(&self, environment: &Environment, sizes: &Sizes) -> Result<PlainUsage, Failure> {
        let requests = purchases(environment, self.url.trim_start_matches("http://"))?;
        let load = async {
            let responses = plain_handler::refusals(&self.url, requests, environment, sizes).await?;
            Ok(Refusals { count: responses.answers.status(410), elapsed: responses.elapsed })
        };
        self.under(environment, load).await
    }
}

impl PlainUsage {
    /// Both together.
    pub fn and(self, later: Self) -> Self {
        Self {
            refused: self.refused + later.refused,
            elapsed: self.elapsed + later.elapsed,
            used_s: self.used_s + later.used_s,
        }
    }

    /// Answers a second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    pub fn per_s(self) -> f64 {
        self.refused as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Processor time for each answer, µs; `None` when it was not measured.
    pub fn us(self) -> Option<f64> {
        us_of(self.used_s, self.refused).filter(|us| *us > 0.0)
    }
}

async fn takes_connections(address: &str) -> Result<(), Failure> {
    let end = Instant::now() + READY;
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > end {
            return Err(Failure::Failed(format!("the plain handler does not listen on {address}")));
        }
        tokio::time::sleep(CHECK_EVERY).await;
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
