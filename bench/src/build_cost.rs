//! `cost_end_to_end`, `cost_landing`: what an order costs with this build and with that of `--against`, both on new servers in the
//! same run: tables that other scenarios filled make an order dearer.

use super::bar::Bar;
use super::cost::{EndToEndCost, us_each};
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{CrowdRun, run_crowd};
use seckill::cli::Failure;
use seckill::dev::ServerKind;
use seckill::roles::Role;
use serde_json::json;

/// The highest ratio of all processor time for an order to that of another build.
const BAR_END_TO_END: f64 = 0.7;
/// The highest ratio of the database's processor time for an order to that with another build.
const BAR_LANDING: f64 = 0.6;

/// Of one build.
#[derive(Debug, Clone)]
pub(super) struct BuildCost {
    /// All processes while buyers keep buying.
    end_to_end: EndToEndCost,
    /// The database alone, µs an order, when all orders wait in the queue before a consumer takes the first.
    landing_us: f64,
}

impl BuildCost {
    /// Of the build whose roles run in `environment`; `None` when something did not land in time or the database has no process here.
    pub async fn of(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Option<Self>, Failure> {
        let CrowdRun { sale, watch, report } = run_crowd(environment, "end-to-end", sizes, spinner).await?;
        let drained = environment.drained(&sale, sizes.patience, &|_, _| ()).await?;
        let Some(end_to_end) = EndToEndCost::of(&watch.end(), report.accepted).filter(|_cost| drained) else {
            return Ok(None);
        };
        let landing_us = landing(environment, sizes, spinner).await?;
        Ok(landing_us.map(|landing_us| Self { end_to_end, landing_us }))
    }
}

async fn landing(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Option<f64>, Failure> {
    environment.roles(&[Role::Api, Role::Relay]).await?;
    let CrowdRun { sale, report, .. } = run_crowd(environment, "landing", sizes, spinner).await?;
    if !environment.relayed(sizes.patience).await? {
        return Ok(None);
    }
    let watch = CpuMeter::start(environment);
    environment.roles(&[Role::Api, Role::Relay, Role::Consumer]).await?;
    let drained = environment.drained(&sale, sizes.patience, &|_, _| ()).await?;
    let us = us_each(&watch.end(), ServerKind::Mysql.name(), report.accepted);
    Ok(us.filter(|_us| drained))
}

/// Both bars of a pair.
pub(super) fn bars(ours: &BuildCost, other: &BuildCost, disturbed: &str) -> Vec<Bar> {
    let landing = "processor time of the database for an order, when all of a crowd's orders wait in the queue before a consumer takes \
                   the first, against the other build; both on new servers in the same run";
    let landing = Bar::of("cost_landing", ours.landing_us, "µs")
        .cost_against(Some(other.landing_us), BAR_LANDING)
        .note(format!("{landing}{disturbed}"));
    vec![end_to_end(&ours.end_to_end, Some(&other.end_to_end), disturbed), landing]
}

/// Processor time of all roles and servers for an order, against another build (`--against`).
pub(super) fn end_to_end(cost: &EndToEndCost, other: Option<&EndToEndCost>, disturbed: &str) -> Bar {
    let parts = cost.note();
    let note = match other {
        Some(other) => format!(
            "processor time of all roles and servers for an order, against the other build, both on new servers in the same run: \
             {parts}; the other build: {}",
            other.note()
        ),
        None => format!(
            "processor time of all roles and servers for an order: {parts}; --against PATH compares it with another build"
        ),
    };
    Bar::of("cost_end_to_end", cost.us(), "µs")
        .cost_against(other.map(EndToEndCost::us), BAR_END_TO_END)
        .note(format!("{note}{disturbed}"))
        .more(json!({ "us_by_process": cost.json(), "us_by_process_of_other": other.map(EndToEndCost::json) }))
}
