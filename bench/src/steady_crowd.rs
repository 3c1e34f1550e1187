//! A crowd that buys as fast as it is answered, for as long as a measurement takes; several scenarios measure one. It is the crowd
//! that a sale has: each buyer buys once, in a sale that gives each buyer one unit.

use super::cpu::CpuMeter;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use crate::loadgen::access_tokens::AccessTokens;
use crate::loadgen::{self, LoadPlan, LoadReport, buyer_name};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::runtime::Stopper;
use seckill::token_issuer::TokenIssuer;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Far more than can be sold in one run.
pub(super) const ENOUGH: i64 = 50_000_000;

/// What a buyer may have in its sales.
pub(super) const LIMIT: Option<u32> = Some(1);

/// A crowd that buys from `sale` for the scale's time, or until each of its buyers has bought.
pub(super) fn crowd(environment: &Environment, sizes: &Sizes, sale: &SaleId, spinner: &Spinner) -> LoadPlan {
    let auth = &environment.settings.auth;
    let mut plan = LoadPlan::new(environment.api.clone(), sale.clone(), auth.secret.clone());
    plan.issuer.clone_from(&auth.issuer);
    plan.audience.clone_from(&auth.audience);
    plan.connections = sizes.connections;
    plan.buyers = sizes.buyers();
    plan.stop = Stopper::new();
    // The clock starts with the first purchase, not with the minting of tokens before it.
    let (timer, stop, outer, lasting) = (OnceLock::new(), plan.stop.clone(), environment.stop.clone(), sizes.lasting);
    let spinner = spinner.clone();
    plan.progress = Some(Arc::new(move |progress| {
        timer.get_or_init(|| {
            let (stop, outer) = (stop.clone(), outer.clone());
            tokio::spawn(async move {
                outer.sleep(lasting).await;
                stop.stop();
            });
        });
        spinner.say(&format!("{} accepted", progress.accepted));
    }));
    plan
}

/// A crowd that has bought, and the meter that was started with it and goes on.
pub(super) struct CrowdRun {
    pub sale: SaleId,
    pub watch: CpuMeter,
    pub report: LoadReport,
}

/// A crowd in a new sale, the time of its tokens aside.
pub(super) async fn run_crowd(
    environment: &mut Environment,
    name: &str,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<CrowdRun, Failure> {
    let sale = environment.sale(name, ENOUGH, LIMIT).await?;
    let ready = loadgen::prepare(crowd(environment, sizes, &sale, spinner)).await?;
    let watch = CpuMeter::start(environment);
    let report = ready.run().await?;
    Ok(CrowdRun { sale, watch, report })
}

/// The access tokens of these buyers, signed before any clock starts.
pub(super) async fn tokens(environment: &Environment, buyers: Range<u64>) -> Result<Arc<AccessTokens>, Failure> {
    let auth = &environment.settings.auth;
    let issuer = TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?;
    Ok(Arc::new(AccessTokens::signed(issuer, buyers.map(buyer_name).collect()).await?))
}

/// A short crowd that is not measured: connections, caches, the script in Redis.
pub(super) async fn warm_up(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<(), Failure> {
    let sale = environment.sale("warm-up", ENOUGH, LIMIT).await?;
    let short = Sizes { lasting: sizes.lasting / 4, ..sizes.clone() };
    let report = loadgen::run(crowd(environment, &short, &sale, spinner)).await?;
    let none = || Failure::Failed(format!("the warm-up crowd could buy nothing: {:?}", report.by_status.rows()));
    if report.accepted > 0 { Ok(()) } else { Err(none()) }
}

/// Measures on another environment once it is warm, and leaves it.
pub(super) async fn measured_on<Measured>(
    mut other: Environment,
    sizes: &Sizes,
    spinner: &Spinner,
    measure: impl AsyncFnOnce(&mut Environment) -> Result<Measured, Failure>,
) -> Result<Measured, Failure> {
    let warm = warm_up(&mut other, sizes, spinner).await;
    let measured = match warm {
        Ok(()) => measure(&mut other).await,
        Err(failure) => Err(failure),
    };
    other.leave().await?;
    measured
}
