//! `--only sale`: a whole sale under each purchase policy, and whether it came out exactly.

use super::bar::Bar;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use crate::loadgen::{self, LoadPlan, LoadReport, Outcomes};
use seckill::cli::Failure;
use serde_json::json;
use std::collections::HashMap;

/// Units of every sale.
const STOCK: u64 = 1_000;
/// Buyers of the sale with a limit: so few that the limit and not the stock decides.
const GREEDY: u64 = 250;

/// One sale to be had.
struct Case {
    name: &'static str,
    limit: Option<u32>,
    buyers: u64,
    requests_per_buyer: u64,
    quantity: u32,
}

impl Case {
    /// The three policies, about `buyers` purchases each; the limit once as what decides and once beside a sell-out.
    fn all(buyers: u64) -> [Self; 4] {
        let once = Self { name: "sale_one_per_user", limit: Some(1), buyers, requests_per_buyer: 1, quantity: 1 };
        let greedy = GREEDY.min(buyers);
        [
            Self { name: "sale_unlimited", limit: None, ..once },
            Self {
                name: "sale_limit_5",
                limit: Some(5),
                buyers: greedy,
                requests_per_buyer: buyers.div_ceil(greedy),
                quantity: 3,
            },
            Self {
                name: "sale_limit_5_sold_out",
                limit: Some(5),
                buyers: buyers.div_ceil(5),
                requests_per_buyer: 5,
                quantity: 1,
            },
            once,
        ]
    }

    /// Units that must be sold, no more and no less: by each buyer as many whole requests as limit and patience allow.
    fn units(&self) -> u64 {
        let quantity = u64::from(self.quantity);
        let allowed = self.limit.map_or(u64::MAX, |limit| u64::from(limit) / quantity);
        let wanted = self.buyers.saturating_mul(allowed.min(self.requests_per_buyer));
        wanted.min(STOCK / quantity) * quantity
    }
}

/// Runs the sales; one bar each, which counts what is not exact.
pub(super) async fn sales(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let mut bars = Vec::new();
    for case in Case::all(sizes.sale_buyers) {
        environment.go_on()?;
        spinner.say(case.name);
        bars.push(one(environment, sizes, &case).await?);
    }
    Ok(bars)
}

async fn one(environment: &mut Environment, sizes: &Sizes, case: &Case) -> Result<Bar, Failure> {
    let sale = environment.sale(&case.name.replace('_', "-"), i64::try_from(STOCK).unwrap_or(0), case.limit).await?;
    let auth = &environment.settings.auth;
    let mut plan = LoadPlan::new(environment.api.clone(), sale.clone(), auth.secret.clone());
    plan.issuer.clone_from(&auth.issuer);
    plan.audience.clone_from(&auth.audience);
    plan.connections = sizes.connections;
    (plan.buyers, plan.requests_per_buyer, plan.quantity) = (case.buyers, case.requests_per_buyer, case.quantity);
    plan.stop = environment.stop.clone();
    let report = loadgen::run(plan.clone()).await?;
    let outcomes = loadgen::await_outcomes(&plan, &report.accepted_requests, sizes.patience).await?;
    environment.drained(&sale, sizes.patience, &|_landed, _sold| {}).await?;
    let (landed, sold) = environment.landed_and_sold(&sale).await?;
    let wrong = complaints(case, &report, &outcomes, UnitsSold { landed, redis: sold });
    let figures = format!(
        "{} buyers, {:.0} requests/s: {} units accepted, {landed} ordered, {} expected",
        case.buyers,
        report.requests_per_s(),
        report.accepted_units,
        case.units()
    );
    let note = if wrong.is_empty() { figures } else { format!("{figures}; {}", wrong.join("; ")) };
    let more =
        json!({ "crowd": report, "confirmed": outcomes.confirmed, "failed": outcomes.failed, "complaints": wrong });
    Ok(Bar::violations(case.name, wrong.len() as u64).note(note).more(more))
}

/// Units that were sold, by two accounts.
#[derive(Clone, Copy)]
struct UnitsSold {
    /// Orders in the database.
    landed: i64,
    /// Taken from Redis.
    redis: i64,
}

/// Everything that is not as it must be.
fn complaints(case: &Case, report: &LoadReport, outcomes: &Outcomes, sold: UnitsSold) -> Vec<String> {
    let UnitsSold { landed, redis } = sold;
    let units = case.units();
    let mut owned: HashMap<u64, u64> = HashMap::new();
    for accepted in &report.accepted_requests {
        *owned.entry(accepted.user).or_default() += u64::from(accepted.quantity);
    }
    let most = owned.values().copied().max().unwrap_or(0);
    let equal = |left: i64| u64::try_from(left) == Ok(units);
    let rules = [
        (report.accepted_units == units, format!("{} units accepted instead of {units}", report.accepted_units)),
        (equal(redis), format!("redis sold {redis} units instead of {units}")),
        (equal(landed), format!("{landed} units ordered instead of {units}")),
        (outcomes.confirmed == report.accepted, format!("{} of {} confirmed", outcomes.confirmed, report.accepted)),
        (case.limit.is_none_or(|limit| most <= u64::from(limit)), format!("one buyer has {most} units")),
        (report.accepted_twice == 0, format!("{} purchases share a request id", report.accepted_twice)),
        (report.unresolved == 0, format!("{} purchases never got an answer", report.unresolved)),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, complaint)| complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_one_exact_outcome() {
        assert_eq!(Case::all(10_000).map(|case| case.units()), [1_000, 750, 1_000, 1_000]);
        assert_eq!(Case::all(100).map(|case| case.units()), [100, 300, 100, 100]);
    }
}
