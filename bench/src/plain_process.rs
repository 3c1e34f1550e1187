//! What the entry is compared with: a plain Actix handler that checks the access token as the product does. One refuses everybody:
//! what any front on this machine has to do for a request, with nothing behind it. The other sells by one bare script call a
//! purchase: what a user would write instead.
//!
//! It runs in a process of its own, as the api does, so that its processor time can be distinguished from the load generator's. A
//! crash of this process kills it (the kernel does).

use super::closed_loop::closed_loop;
use super::cost::us_of;
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::sizes::Sizes;
use crate::baseline;
use crate::loadgen::{self, Answers, LoadPlan, LoadReport};
use seckill::cli::Failure;
use seckill::config::{Layers, Settings};
use seckill::dev::{Child, ports::free_port};
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::roles;
use seckill::runtime::Stopper;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// The name of the plain handler among the processes.
const PLAIN: &str = "plain handler";
/// It must take connections within this time.
const READY: Duration = Duration::from_secs(15);
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// The running handler; killed when dropped.
pub(super) struct PlainProcess {
    child: Child,
    /// `http://host:port`.
    url: String,
    /// The status of each of its answers.
    status: u16,
}

/// What the plain handler answered, and what it used for it.
#[derive(Clone, Copy, Default)]
pub(super) struct PlainUsage {
    answered: u64,
    elapsed: Duration,
    /// Its processor time, seconds.
    used_s: f64,
}

impl PlainProcess {
    /// Starts one that refuses everybody, on a free port; `None` on a stack that was there before.
    pub async fn refusing(environment: &Environment) -> Result<Option<Self>, Failure> {
        Self::start(environment, 410, &[]).await
    }

    /// The same of one that sells by the bare script, which has to be in the environment's Redis with its stock: so the address
    /// has no password, and may stand on a command line.
    pub async fn selling(environment: &Environment) -> Result<Option<Self>, Failure> {
        Self::start(environment, 202, &["--redis", environment.settings.redis.url.expose()]).await
    }

    async fn start(environment: &Environment, status: u16, more: &[&str]) -> Result<Option<Self>, Failure> {
        let Some(role_processes) = environment.role_processes() else { return Ok(None) };
        let address = format!("127.0.0.1:{}", free_port()?);
        let words: Vec<String> =
            [&["plain", "--listen", &address][..], more].concat().into_iter().map(str::to_owned).collect();
        let child = role_processes.child("plain", &words).await?;
        takes_connections(&address).await?;
        Ok(Some(Self { child, url: format!("http://{address}"), status }))
    }

    /// What this crowd sees of it.
    pub async fn crowd(&self, crowd: LoadPlan) -> Result<LoadReport, Failure> {
        let report = loadgen::run(LoadPlan { api_url: self.url.clone(), ..crowd }).await?;
        let count = report.by_status.status(self.status);
        if count == 0 || count < report.requests {
            return Err(answered_otherwise(&report.by_status));
        }
        Ok(report)
    }

    /// What it uses under a crowd that buys: with the same generator on both sides, its own work for a purchase is no part of a ratio.
    pub async fn under_crowd(&self, environment: &Environment, crowd: LoadPlan) -> Result<PlainUsage, Failure> {
        let watch = self.watch(environment);
        let report = self.crowd(crowd).await?;
        Ok(PlainUsage::of(&watch, report.requests, Duration::from_millis(report.elapsed_ms)))
    }

    /// What it uses under a few buyers' requests again and again, for the time of a measurement.
    pub async fn under_requests(
        &self,
        environment: &Environment,
        requests: &[String],
        sizes: &Sizes,
    ) -> Result<PlainUsage, Failure> {
        let watch = self.watch(environment);
        let requests = requests.to_vec();
        let responses = closed_loop(&self.url, requests, sizes.connections, sizes.lasting, &environment.stop).await?;
        if responses.others(self.status) > 0 {
            return Err(answered_otherwise(&responses.answers));
        }
        Ok(PlainUsage::of(&watch, responses.answers.total(), responses.elapsed))
    }

    fn watch(&self, environment: &Environment) -> CpuMeter {
        CpuMeter::start_with(environment, (PLAIN, self.child.pid()))
    }
}

impl PlainUsage {
    fn of(watch: &CpuMeter, answered: u64, elapsed: Duration) -> Self {
        let used_s = watch.end().seconds.get(PLAIN).copied().unwrap_or_default();
        Self { answered, elapsed, used_s }
    }

    /// Both together.
    pub fn and(self, later: Self) -> Self {
        Self {
            answered: self.answered + later.answered,
            elapsed: self.elapsed + later.elapsed,
            used_s: self.used_s + later.used_s,
        }
    }

    /// Answers a second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    pub fn per_s(self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Processor time for each answer, µs; `None` when it was not measured.
    pub fn us(self) -> Option<f64> {
        us_of(self.used_s, self.answered).filter(|us| *us > 0.0)
    }
}

/// It did something else than it is there for.
fn answered_otherwise(answers: &Answers) -> Failure {
    Failure::Failed(format!("the plain handler answered otherwise: {:?}", answers.rows()))
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

/// The process: serves until it is killed. With `redis_url` it sells by the bare script there.
pub(super) async fn serve(layers: &Layers, listen: &str, redis_url: Option<&str>) -> Result<u8, Failure> {
    let settings = Settings::load(layers)?;
    let auth = Authenticator::new(&settings.auth).map_err(|error| Failure::Failed(error.to_string()))?;
    let listener = roles::bind("--listen", listen)?;
    let (http, stopper) = (&settings.http, Stopper::new());
    match redis_url {
        Some(url) => baseline::http_script::serve(auth, url, listener, http, stopper)?.await?,
        None => baseline::http::serve(auth, listener, http, stopper)?.await?,
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_several_turns_is_that_of_one() {
        let one = PlainUsage { answered: 1_000, elapsed: Duration::from_millis(500), used_s: 0.01 };
        let both = one.and(PlainUsage { answered: 3_000, elapsed: Duration::from_millis(1_500), used_s: 0.07 });
        assert_eq!((both.per_s(), both.us()), (2_000.0, Some(20.0)));
        assert_eq!(PlainUsage::default().us(), None);
    }
}
