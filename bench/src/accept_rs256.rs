//! `accept_rs256`: accepted purchases where the access tokens are RS256, as most login services sign them. Each buyer comes once
//! and asks three times (purchase token, purchase, status) with an access token that the api sees for the first time. Compared
//! with the same crowd where the tokens are HS256, which cost next to nothing to check.
//!
//! The RS256 tokens are signed once, before any clock starts. Each run has an api of its own, which has seen none of them. It is
//! a private environment; a crash leaves what one leaves.

use super::bar::Bar;
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::{Difference, Environment};
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::ENOUGH;
use crate::loadgen::access_tokens::AccessTokens;
use crate::loadgen::rs256::{PUBLIC_PEM, Rs256Issuer};
use crate::loadgen::{self, LoadPlan, LoadReport, buyer_name};
use seckill::cli::Failure;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// The least ratio to the same with HS256.
const BAR: f64 = 0.8;
/// Buyers for each second of a measurement; signing for them takes about as long again.
const BUYERS_PER_S: f64 = 4_000.0;
const BUYERS_MAX: f64 = 100_000.0;
/// Buyers before them, unmeasured: connections, caches, the script in Redis.
const WARM_UP: u64 = 500;

/// The crowd with its RS256 tokens, for every run.
pub(super) struct Rs256Crowd {
    warm_up: Arc<AccessTokens>,
    tokens: Arc<AccessTokens>,
    buyers: u64,
    /// The key that the api checks them with.
    public_key: PathBuf,
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
        let buyers = (sizes.lasting.as_secs_f64() * BUYERS_PER_S).clamp(1.0, BUYERS_MAX);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1 … 100,000")]
        let buyers = buyers as u64;
        let public_key = folder.join("rs256.pem");
        std::fs::write(&public_key, PUBLIC_PEM)?;
        let auth = &environment.settings.auth;
        let signed = async |numbers: std::ops::Range<u64>| {
            let issuer = Rs256Issuer::new(&auth.issuer, &auth.audience)?;
            AccessTokens::signed(issuer, numbers.map(buyer_name).collect()).await.map(Arc::new)
        };
        let (tokens, warm_up) = (signed(0..buyers).await?, signed(buyers..buyers + WARM_UP).await?);
        Ok(Some(Self { warm_up, tokens, buyers, public_key }))
    }

    /// One run of both. `environment` has the api role only. `None`: a server was given.
    pub async fn measure(
        &self,
        environment: &mut Environment,
        sizes: &Sizes,
        spinner: &Spinner,
    ) -> Result<Option<Bar>, Failure> {
        spinner.tell("HS256");
        let auth = environment.settings.auth.clone();
        let issuer = || TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience);
        let names = |numbers: std::ops::Range<u64>| numbers.map(buyer_name).collect();
        let tokens = Arc::new(AccessTokens::signed(issuer()?, names(0..self.buyers)).await?);
        let warm_up = Arc::new(AccessTokens::signed(issuer()?, names(self.buyers..self.buyers + WARM_UP)).await?);
        let with_hs256 = self.asked(environment, sizes, [warm_up, tokens]).await?;
        spinner.tell("RS256");
        let Some(mut other) = environment.another(Difference::Rs256(&self.public_key)).await? else { return Ok(None) };
        let tokens = [Arc::clone(&self.warm_up), Arc::clone(&self.tokens)];
        let with_rs256 = self.asked(&mut other, sizes, tokens).await;
        other.leave().await?;
        Ok(Some(bar(&with_rs256?, &with_hs256)))
    }

    async fn asked(
        &self,
        environment: &mut Environment,
        sizes: &Sizes,
        [warm_up, tokens]: [Arc<AccessTokens>; 2],
    ) -> Result<Asked, Failure> {
        let sale = environment.sale("accept-rs256", ENOUGH, None).await?;
        let plan = |first_buyer, buyers, access| {
            let mut plan = LoadPlan::new(environment.api.clone(), sale.clone(), seckill::config::Secret::default());
            (plan.first_buyer, plan.buyers, plan.access) = (first_buyer, buyers, Some(access));
            (plan.connections, plan.stop) = (sizes.connections, environment.stop.clone());
            (plan.tokens, plan.asks_status) = (true, true);
            plan
        };
        loadgen::run(plan(self.buyers, WARM_UP, warm_up)).await?;
        let ready = loadgen::prepare(plan(0, self.buyers, tokens)).await?;
        let watch = CpuMeter::start(environment);
        let report = ready.run().await?;
        let usage = watch.end();
        environment.go_on()?;
        Ok(Asked { report, usage })
    }
}

impl Asked {
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
