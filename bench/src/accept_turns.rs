//! The turns of `accept`: the crowd, the same crowd with double clicks, the same crowd at a plain handler, the bare script, and a
//! plain `SET`, one after the other. A machine whose speed changes from second to second is the same one for all of them. Each turn
//! has buyers of its own, whose access tokens are signed once for all three crowds.

use super::baseline::redis_script::BareScript;
use super::cost::us_of;
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::Environment;
use super::plain_process::{PlainProcess, PlainUsage};
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{self, ENOUGH, LIMIT, crowd};
use crate::loadgen::{self, LoadPlan, LoadReport};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;

/// Turns of each.
const TURNS: u32 = 5;
/// Of a hundred buyers, how many click twice: the second purchase follows the answer to the first one.
pub(super) const REPEAT_PERCENT: u8 = 5;

/// What the turns of all came to.
pub(super) struct Turns {
    pub crowd: BoughtTurns,
    pub repeats: BoughtTurns,
    pub plain: Option<PlainUsage>,
    /// Why there is none, for people.
    pub bare: Result<BareTurns, String>,
}

/// What a crowd got so far, and what that cost.
pub(super) struct BoughtTurns {
    pub report: LoadReport,
    pub usage: CpuUsage,
}

/// The turns of the bare script and of `SET` so far.
pub(super) struct BareTurns {
    commands: BareScript,
    pub script: BareUse,
    pub set: BareUse,
}

/// What `redis-benchmark` sent of one kind.
pub(super) struct BareUse {
    sent: u64,
    elapsed_s: f64,
    /// Processor time of Redis; `None` when it was not measured.
    redis_s: Option<f64>,
}

/// Measures them all.
pub(super) async fn in_turns(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Turns, Failure> {
    let sale = environment.sale("accept", ENOUGH, LIMIT).await?;
    let clicked = environment.sale("accept-repeats", ENOUGH, LIMIT).await?;
    let plain = PlainProcess::refusing(environment).await?;
    let mut bare = BareScript::load(environment.settings.redis.url.expose()).await.map(BareTurns::new);
    let each = Sizes {
        connections: sizes.crowd_connections(),
        lasting: sizes.lasting / TURNS,
        baseline_requests: sizes.baseline_requests / u64::from(TURNS),
        ..sizes.clone()
    };
    let (mut bought, mut repeats, mut refused) = (None, None, PlainUsage::default());
    for turn in 0..u64::from(TURNS) {
        let first_buyer = turn * each.buyers();
        let tokens = steady_crowd::tokens(environment, first_buyer..first_buyer + each.buyers()).await?;
        let plan = |sale: &SaleId| LoadPlan {
            first_buyer,
            access: Some(tokens.clone()),
            ..crowd(environment, &each, sale, spinner)
        };
        bought = Some(BoughtTurns::another(bought, environment, plan(&sale)).await?);
        spinner.say("with double clicks");
        let clicks = LoadPlan { other_retry_percent: REPEAT_PERCENT, ..plan(&clicked) };
        repeats = Some(BoughtTurns::another(repeats, environment, clicks).await?);
        spinner.say("plain handler");
        if let Some(plain) = &plain {
            refused = refused.and(plain.under_crowd(environment, plan(&sale)).await?);
        }
        spinner.say("bare script");
        bare = match bare {
            Ok(turns) => turns.another(environment, &each).await,
            Err(why) => Err(why),
        };
    }
    let bare = match bare {
        Ok(turns) => turns.commands.unlink().await.map(|()| turns),
        Err(why) => Err(why),
    };
    let none = || Failure::Failed("accept: no turn".to_owned());
    let (crowd, repeats) = bought.zip(repeats).ok_or_else(none)?;
    Ok(Turns { crowd, repeats, plain: plain.map(|_| refused), bare })
}

impl BoughtTurns {
    /// One more turn, after those before.
    pub async fn another(before: Option<Self>, environment: &Environment, plan: LoadPlan) -> Result<Self, Failure> {
        environment.go_on()?;
        let ready = loadgen::prepare(plan).await?;
        let watch = CpuMeter::start(environment);
        let (report, usage) = (ready.run().await?, watch.end());
        let Some(before) = before else { return Ok(Self { report, usage }) };
        let report = before.report.and(report).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Self { report, usage: before.usage.and(usage) })
    }
}

impl BareTurns {
    const fn new(commands: BareScript) -> Self {
        Self { commands, script: BareUse::NONE, set: BareUse::NONE }
    }

    async fn another(self, environment: &Environment, each: &Sizes) -> Result<Self, String> {
        let Self { commands, script, set } = self;
        let (connections, count) = (each.connections, each.baseline_requests);
        let watch = CpuMeter::start(environment);
        let per_s = commands.purchases(connections, count).await?;
        let script = script.and(count, per_s, &watch.end());
        let watch = CpuMeter::start(environment);
        let per_s = commands.sets(connections, count).await?;
        let set = set.and(count, per_s, &watch.end());
        Ok(Self { commands, script, set })
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people; 53 bits are enough")]
impl BareUse {
    const NONE: Self = Self { sent: 0, elapsed_s: 0.0, redis_s: Some(0.0) };

    /// With another `count`, which were sent at this rate.
    fn and(self, count: u64, per_s: f64, usage: &CpuUsage) -> Self {
        Self {
            sent: self.sent + count,
            elapsed_s: self.elapsed_s + count as f64 / per_s,
            redis_s: self.redis_s.zip(usage.seconds.get("redis")).map(|(before, now)| before + now),
        }
    }

    pub fn per_s(&self) -> f64 {
        self.sent as f64 / self.elapsed_s.max(0.001)
    }

    /// Processor time of Redis for each, µs.
    pub fn redis_us(&self) -> Option<f64> {
        us_of(self.redis_s?, self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(seconds: &[(&str, f64)]) -> CpuUsage {
        let seconds = seconds.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect();
        CpuUsage { seconds, elapsed_s: 1.0, machine: None }
    }

    #[test]
    fn turns_of_a_bare_command_are_counted_as_one() {
        let both = BareUse::NONE.and(1_000, 2_000.0, &usage(&[("redis", 0.01)])).and(
            3_000,
            2_000.0,
            &usage(&[("redis", 0.03)]),
        );
        assert_eq!((both.per_s(), both.redis_us()), (2_000.0, Some(10.0)));
        let given = BareUse::NONE.and(1_000, 2_000.0, &usage(&[])).and(1_000, 2_000.0, &usage(&[("redis", 0.03)]));
        assert_eq!(given.redis_us(), None, "not measured in every turn");
    }
}
