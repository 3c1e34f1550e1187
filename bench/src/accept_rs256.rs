//! `accept_rs256`: accepted purchases where the access tokens are RS256, as most login services sign them. Each buyer comes once
//! and asks three times (purchase token, purchase, status) with an access token that the api sees for the first time. Compared
//! with the same crowd where the tokens are HS256, which cost next to nothing to check.
//!
//! The RS256 tokens are signed once, before any clock starts. Each run has an api of its own, which has seen none of them. The two
//! crowds take turns, each at its own api: a machine whose speed changes from second to second is the same one for both. The
//! environments are private; a crash leaves what they leave.

use super::bar::Bar;
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::{Difference, Environment};
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{ENOUGH, LIMIT};
use crate::loadgen::access_tokens::{AccessTokens, SignsTokens};
use crate::loadgen::rs256::{PUBLIC_PEM, Rs256Issuer};
use crate::loadgen::{self, LoadError, LoadPlan, LoadReport, buyer_name};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The least ratio to the same with HS256.
const BAR: f64 = 0.8;
/// Buyers for each second of a measurement; signing for them takes about as long again.
const BUYERS_PER_S: f64 = 4_000.0;
const BUYERS_MIN: f64 = 10.0;
const BUYERS_MAX: f64 = 100_000.0;
/// Buyers before them, unmeasured: connections, caches, memory, the script in Redis. As many as in a turn: the api with HS256 has
/// served other crowds before.
const WARM_UP: u64 = 4_000;
/// Turns of each crowd.
const TURNS: u64 = 5;

/// The crowd with its RS256 tokens, for every run.
pub(super) struct Rs256Crowd {
    crowd: AskingCrowd,
    /// In all turns.
    buyers: u64,
    /// The key that the api checks them with.
    public_key: PathBuf,
}

/// Buyers with one kind of token.
struct AskingCrowd {
    warm_up: AskingBuyers,
    turns: Vec<AskingBuyers>,
}

/// Buyers who come together.
struct AskingBuyers {
    numbers: Range<u64>,
    tokens: Arc<AccessTokens>,
}

/// What one of the two kinds of token came to.
struct Asked {
    report: LoadReport,
    usage: CpuUsage,
}

impl Rs256Crowd {
    /// Signs for everybody. `None` where there is no private environment.
    pub async fn sign(environment: &Environment, sizes: &Sizes) -> Result<Option<Self>, Failure> {
        let Some(folder) = environment.folder() else { return Ok(None) };
        let buyers = (sizes.lasting.as_secs_f64() * BUYERS_PER_S).clamp(BUYERS_MIN, BUYERS_MAX);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 10 … 100,000")]
        let buyers = buyers as u64;
        let public_key = folder.join("rs256.pem");
        std::fs::write(&public_key, PUBLIC_PEM)?;
        let auth = &environment.settings.auth;
        let crowd = AskingCrowd::sign(buyers, || Rs256Issuer::new(&auth.issuer, &auth.audience)).await?;
        Ok(Some(Self { crowd, buyers, public_key }))
    }

    /// One run of both. `environment` has the api role only. `None`: a server was given.
    pub async fn measure(
        &self,
        environment: &mut Environment,
        sizes: &Sizes,
        spinner: &Spinner,
    ) -> Result<Option<Bar>, Failure> {
        let Some(mut other) = environment.another(Difference::Rs256(&self.public_key)).await? else { return Ok(None) };
        let auth = environment.settings.auth.clone();
        let issuer = || Ok(TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?);
        let asked = match AskingCrowd::sign(self.buyers, issuer).await {
            Ok(hs256) => in_turns((environment, &hs256), (&mut other, &self.crowd), sizes, spinner).await,
            Err(failure) => Err(failure),
        };
        other.leave().await?;
        let (hs256, rs256) = asked?;
        Ok(Some(bar(&rs256, &hs256)))
    }
}

/// What both crowds came to: the first with HS256, the other with RS256.
async fn in_turns(
    (environment, hs256): (&mut Environment, &AskingCrowd),
    (other, rs256): (&mut Environment, &AskingCrowd),
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<(Asked, Asked), Failure> {
    let sale = hs256.warm_up.warm(environment, sizes).await?;
    let sale_of_other = rs256.warm_up.warm(other, sizes).await?;
    let mut asked = None;
    for (with_hs256, with_rs256) in hs256.turns.iter().zip(&rs256.turns) {
        spinner.say("HS256");
        let first = with_hs256.ask(environment, &sale, sizes).await?;
        spinner.say("RS256");
        let second = with_rs256.ask(other, &sale_of_other, sizes).await?;
        asked = Some(match asked.take() {
            Some((before, before_second)) => (first.after(before)?, second.after(before_second)?),
            None => (first, second),
        });
    }
    asked.ok_or_else(|| Failure::Failed("accept_rs256: no turn".to_owned()))
}

impl AskingCrowd {
    /// Signs for everybody; the warm-up's buyers come behind those of the turns.
    async fn sign<I: SignsTokens + 'static>(
        buyers: u64,
        issuer: impl Fn() -> Result<I, LoadError>,
    ) -> Result<Self, Failure> {
        let signed = async |numbers: Range<u64>| -> Result<AskingBuyers, LoadError> {
            let tokens = AccessTokens::signed(issuer()?, numbers.clone().map(buyer_name).collect()).await?;
            Ok(AskingBuyers { numbers, tokens: Arc::new(tokens) })
        };
        let mut turns = Vec::new();
        for turn in 0..TURNS {
            turns.push(signed(turn * buyers / TURNS..(turn + 1) * buyers / TURNS).await?);
        }
        Ok(Self { warm_up: signed(buyers..buyers + WARM_UP).await?, turns })
    }
}

impl AskingBuyers {
    /// Opens a sale, and has these ask in it before the others.
    async fn warm(&self, environment: &mut Environment, sizes: &Sizes) -> Result<SaleId, Failure> {
        let sale = environment.sale("accept-rs256", ENOUGH, LIMIT).await?;
        loadgen::run(self.plan(environment, &sale, sizes)).await?;
        Ok(sale)
    }

    /// Their turn, measured.
    async fn ask(&self, environment: &mut Environment, sale: &SaleId, sizes: &Sizes) -> Result<Asked, Failure> {
        let ready = loadgen::prepare(self.plan(environment, sale, sizes)).await?;
        let watch = CpuMeter::start(environment);
        let report = ready.run().await?;
        let usage = watch.end();
        environment.go_on()?;
        Ok(Asked { report, usage })
    }

    /// Each asks three times.
    fn plan(&self, environment: &Environment, sale: &SaleId, sizes: &Sizes) -> LoadPlan {
        let mut plan = LoadPlan::new(environment.api.clone(), sale.clone(), seckill::config::Secret::default());
        let Range { start, end } = self.numbers;
        (plan.first_buyer, plan.buyers, plan.access) = (start, end - start, Some(self.tokens.clone()));
        (plan.connections, plan.stop) = (sizes.connections, environment.stop.clone());
        (plan.tokens, plan.asks_status) = (true, true);
        plan
    }
}

impl Asked {
    /// With what an earlier turn came to.
    fn after(self, before: Self) -> Result<Self, Failure> {
        let report = before.report.and(self.report).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Self { report, usage: before.usage.and(self.usage) })
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    fn accepted_per_s(&self) -> f64 {
        self.report.accepted as f64 * 1000.0 / self.report.elapsed_ms.max(1) as f64
    }

    fn json(&self) -> Value {
        let LoadReport { accepted, requests, by_status, tokens_by_status, polls_by_status, elapsed_ms, .. } =
            &self.report;
        json!({
            "accepted": accepted, "requests": requests, "answers": by_status, "token_answers": tokens_by_status,
            "status_answers": polls_by_status, "elapsed_ms": elapsed_ms, "cpu": self.usage.json(),
        })
    }
}

fn bar(rs256: &Asked, hs256: &Asked) -> Bar {
    let note = format!(
        "accepted with RS256 tokens, each buyer asking three times, against HS256; {} and {} accepted{}; with HS256{}",
        rs256.report.accepted,
        hs256.report.accepted,
        rs256.usage.note(),
        hs256.usage.note()
    );
    let more = json!({ "rs256": rs256.json(), "hs256": hs256.json() });
    Bar::rate("accept_rs256", rs256.accepted_per_s()).against(Some(hs256.accepted_per_s()), BAR).note(note).more(more)
}
