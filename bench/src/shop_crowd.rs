//! `seckill-bench crowd`: the crowd that the demo shop's button sends.
//!
//! Input: a line of JSON with the plan; the end of the input ends the crowd early. Output: lines of JSON, `{"progress": …}` while
//! it buys and `{"answers": […]}` at the end. A crash leaves what the buyers had sent.

use super::loadgen::{self, LoadPlan};
use seckill::cli::{Failure, output};
use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill::runtime::Stopper;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// What the shop says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShopPlan {
    api_url: String,
    sale_id: SaleId,
    secret: String,
    issuer: String,
    audience: String,
    buyers: u64,
    first_buyer: u64,
    connections: u32,
    tokens: bool,
    room: bool,
    max_retries: u32,
}

pub(crate) async fn run() -> Result<u8, Failure> {
    let mut plan = String::new();
    std::io::stdin().read_line(&mut plan)?;
    let plan: ShopPlan = serde_json::from_str(&plan).map_err(|error| Failure::Usage(format!("the plan: {error}")))?;
    let stop = Stopper::new();
    let stopping = stop.clone();
    std::thread::spawn(move || {
        // Nothing more comes than its end.
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        stopping.stop();
    });
    let plan = LoadPlan {
        issuer: plan.issuer,
        audience: plan.audience,
        buyers: plan.buyers,
        first_buyer: plan.first_buyer,
        connections: plan.connections,
        tokens: plan.tokens,
        room: plan.room,
        max_retries: plan.max_retries,
        stop,
        progress: Some(Arc::new(|now| output::line(&json!({ "progress": now }).to_string()))),
        ..LoadPlan::new(plan.api_url, plan.sale_id, Secret::new(plan.secret))
    };
    let report = loadgen::run(plan).await?;
    output::line(&json!({ "answers": report.by_status }).to_string());
    Ok(0)
}
