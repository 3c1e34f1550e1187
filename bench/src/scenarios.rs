//! A crowd that buys as fast as it is answered, the whole way to the order.

use super::bar::Bar;
use super::build_cost::{self, BuildCost};
use super::cost::EndToEndCost;
use super::environment::Environment;
use super::landing;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{CrowdRun, run_crowd};
use crate::lags;
use crate::loadgen::LoadReport;
use seckill::cli::Failure;
use serde_json::json;
use std::time::Instant;

/// The least part of the accept-only rate that lands while buyers keep buying.
const BAR_OF_ACCEPT: f64 = 0.25;
/// The least ratio to one plain transaction an order.
const BAR_OF_PLAIN: f64 = 3.0;

#[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
pub(super) fn accepted_per_s(report: &LoadReport) -> f64 {
    report.accepted as f64 * 1000.0 / report.elapsed_ms.max(1) as f64
}

/// Orders a second that land while buyers keep buying, and how long the rest takes. `pair`: what an order costs with this build and
/// with that of `--against`, both on new servers.
pub(super) async fn end_to_end(
    environment: &mut Environment,
    sizes: &Sizes,
    accept_alone: Option<f64>,
    pair: Option<(BuildCost, BuildCost)>,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let CrowdRun { sale, watch, report } = run_crowd(environment, "end-to-end", sizes, spinner).await?;
    let usage = watch.end();
    let (landed, _) = environment.landed_and_sold(&sale).await?;
    let begin = Instant::now();
    let drained = environment
        .drained(&sale, sizes.patience, &|landed, sold| spinner.say(&format!("{landed} of {sold} landed")))
        .await?;
    let whole = watch.end();
    let drain_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let lags = lags::lags(&environment.servers.db, &sale).await?;
    let (p50, p99) = (lags.percentile_ms(50).unwrap_or(0), lags.percentile_ms(99).unwrap_or(0));
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    let per_s = landed as f64 * 1000.0 / report.elapsed_ms.max(1) as f64;
    let rest = if drained { format!("the rest after {drain_ms} ms") } else { "NOT DRAINED in time".to_owned() };
    let note = format!(
        "{:.0} accepted/s meanwhile, {rest}; accept to order p50 {p50} ms, p99 {p99} ms{}",
        accepted_per_s(&report),
        usage.note()
    );
    let more = json!({
        "accepted": report.accepted, "accepted_per_s": accepted_per_s(&report), "landed_under_load": landed, "drained": drained,
        "drain_ms": drain_ms, "accept_to_order_p50_ms": p50, "accept_to_order_p99_ms": p99, "cpu": usage.json(),
    });
    spinner.say("one transaction an order");
    let plain = landing::one_transaction_an_order(environment, sizes).await?;
    // What has not landed has not cost everything yet.
    let cost = EndToEndCost::of(&whole, report.accepted).filter(|_cost| drained);
    let against_plain =
        format!("against one plain transaction an order on {} connections, nothing else", landing::CONNECTIONS);
    let mut bars = vec![
        Bar::rate("end_to_end", per_s).against(accept_alone, BAR_OF_ACCEPT).note(note).more(more),
        Bar::rate("end_to_end_plain", per_s).against(Some(plain), BAR_OF_PLAIN).note(against_plain),
    ];
    let disturbed = whole.disturbed();
    match pair {
        Some((ours, other)) => bars.extend(build_cost::bars(&ours, &other, &disturbed)),
        None => bars.extend(cost.map(|cost| build_cost::end_to_end(&cost, None, &disturbed))),
    }
    Ok(bars)
}
