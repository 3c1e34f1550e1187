//! In which order things are measured and how often. First those for which the api role runs alone, then those that need
//! an empty pipeline without a relay, then those with everything running; the ones that kill come last.
//!
//! Each stage is measured `runs` times in a row and becomes its medians before the next one begins, because later ones are
//! compared with earlier ones.

use super::accept_rs256::Rs256Crowd;
use super::bar::{Bar, merged};
use super::build_cost::BuildCost;
use super::drop_cost::PurchaseCost;
use super::environment::{Difference, Environment};
use super::sizes::{Scenario, Sizes, Spinner};
use super::sold_out::SoldOut;
use super::stage::Stage;
use super::{
    accept, aof_rewrite, drop_cost, expiry, fill, flash_crowd, growth, growth_reconcile, growth_sales_idle, index_cost,
    latency, latency_bare, line, memory, prefault, program, recovery, rush, scenarios, steady_crowd, strategies,
    waiters, whole_sale,
};
use seckill::cli::Failure;
use std::path::Path;

/// Entries that may lie in the outboxes when the api role is measured alone; more of them land first, so that Redis' memory and file
/// stay what they are in a sale.
const BACKLOG_MAX: u64 = 250_000;

/// One benchmark under way.
pub(super) struct MeasurementPlan<'a> {
    environment: &'a mut Environment,
    sizes: &'a Sizes,
    wanted: Vec<Scenario>,
    bars: Vec<Bar>,
    rs256: Option<Rs256Crowd>,
}

impl<'a> MeasurementPlan<'a> {
    pub fn new(environment: &'a mut Environment, sizes: &'a Sizes, wanted: Vec<Scenario>) -> Self {
        Self { environment, sizes, wanted, bars: Vec::new(), rs256: None }
    }

    /// Warms up, then measures everything that is wanted.
    pub async fn run(mut self) -> Result<Vec<Bar>, Failure> {
        steady_crowd::warm_up(self.environment, self.sizes, &Spinner::start("warm-up")).await?;
        let wanted = self.wanted.clone();
        let is_wanted = |stage: &Stage| stage.for_any_of().iter().any(|scenario| wanted.contains(scenario));
        for stage in Stage::ALL.into_iter().filter(is_wanted) {
            let mut runs = Vec::new();
            for run in 0..if stage.is_repeated() { self.sizes.runs } else { 1 } {
                if run > 0 || stage == Stage::Latency {
                    // An outbox that grew from run to run would close the entry, and the next figure would be that of a refusal.
                    // And what is landed grows Redis' file, which must not reach its limit in the middle of a latency.
                    self.environment
                        .settle(self.sizes.patience, &Spinner::start("landing what the run before left"))
                        .await?;
                }
                self.environment.go_on()?;
                aof_rewrite::rewritten(self.environment, &Spinner::start("redis' file")).await?;
                prefault::touched(self.environment).await;
                runs.push(self.stage(stage).await?);
            }
            self.bars.extend(merged(runs));
        }
        Ok(self.bars)
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.bars.iter().find(|bar| bar.name == name).map(|bar| bar.value)
    }

    async fn end_to_end(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = self.everything("end_to_end").await?;
        let accept = self.value("accept");
        let crowd = async |on: &mut Environment| BuildCost::of(on, self.sizes, &spinner).await;
        let other = self.with_other_build(&spinner, crowd).await?.flatten();
        // On new servers, too: tables that other scenarios filled make an order dearer.
        let cost = match other {
            Some(_) => self.with_build(&program::program()?, &spinner, crowd).await?.flatten(),
            None => None,
        };
        scenarios::end_to_end(self.environment, self.sizes, accept, cost.zip(other), &spinner).await
    }

    async fn accept_rs256(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = Spinner::start("accept_rs256");
        if self.rs256.is_none() {
            spinner.say("signing access tokens");
            self.rs256 = Rs256Crowd::sign(self.environment, self.sizes).await?;
        }
        self.api_alone(&spinner).await?;
        let Some(crowd) = &self.rs256 else { return Ok(Vec::new()) };
        Ok(crowd.measure(self.environment, self.sizes, &spinner).await?.into_iter().collect())
    }

    async fn waiters(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = Spinner::start("waiters");
        self.api_alone(&spinner).await?;
        waiters::measure(self.environment, self.sizes, &spinner).await
    }

    async fn rush(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = self.everything("rush").await?;
        let ours = rush::one(self.environment, self.sizes, &spinner).await?;
        let other = self.with_other_build(&spinner, async |other| rush::one(other, self.sizes, &spinner).await);
        Ok(rush::bars(&ours, other.await?.as_ref()))
    }

    async fn recovery(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = self.everything("recovery").await?;
        let mut bars = recovery::measure(self.environment, self.sizes, &spinner).await?;
        spinner.say("hosts that vanish");
        if let Some(other) = self.environment.another(Difference::VanishingHosts).await? {
            let hosts = async |other: &mut Environment| recovery::hosts(other, self.sizes, &spinner).await;
            bars.push(steady_crowd::measured_on(other, self.sizes, &spinner, hosts).await?);
        }
        Ok(bars)
    }

    /// Measures the build of `--against`, with all its roles, on servers of its own.
    async fn with_other_build<Measured>(
        &self,
        spinner: &Spinner,
        measure: impl AsyncFnOnce(&mut Environment) -> Result<Measured, Failure>,
    ) -> Result<Option<Measured>, Failure> {
        let Some(program) = &self.sizes.against else { return Ok(None) };
        spinner.say("the other build");
        self.with_build(program, spinner, measure).await
    }

    async fn with_build<Measured>(
        &self,
        program: &Path,
        spinner: &Spinner,
        measure: impl AsyncFnOnce(&mut Environment) -> Result<Measured, Failure>,
    ) -> Result<Option<Measured>, Failure> {
        let Some(mut other) = self.environment.another(Difference::Build(program)).await? else { return Ok(None) };
        other.all_roles().await?;
        steady_crowd::measured_on(other, self.sizes, spinner, measure).await.map(Some)
    }

    async fn latency(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = Spinner::start("latency");
        self.api_alone(&spinner).await?;
        let peak = self.value("accept");
        let mut bars = vec![latency::accept(self.environment, self.sizes, peak, &spinner).await?];
        bars.push(latency_bare::measure(self.environment, self.sizes, peak, &spinner).await?);
        self.environment.settle(self.sizes.patience, &spinner).await?;
        bars.push(latency::landed(self.environment, self.sizes, &spinner).await?);
        Ok(bars)
    }

    async fn cost_drop(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = Spinner::start("cost_drop");
        let plain = async |on: &mut Environment| PurchaseCost::of_plain(on, self.sizes, &spinner).await;
        let other = self.with_other_build(&spinner, plain).await?;
        let ours = match other {
            Some(_) => self.with_build(&program::program()?, &spinner, plain).await?,
            None => None,
        };
        self.api_alone(&spinner).await?;
        drop_cost::measure(self.environment, self.sizes, ours.zip(other), &spinner).await
    }

    async fn line(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = self.nothing_but_api("line").await?;
        line::measure(self.environment, self.sizes, &spinner).await
    }

    /// On servers of their own: the sales of other scenarios are checked, too.
    async fn growth_sales_idle(&self) -> Result<Vec<Bar>, Failure> {
        let spinner = Spinner::start("growth_sales_idle");
        let Some(mut other) = self.environment.another(Difference::Settings(&[])).await? else {
            return Ok(Vec::new());
        };
        other.all_roles().await?;
        let idle = async |other: &mut Environment| growth_sales_idle::measure(other, &spinner).await;
        Ok(vec![steady_crowd::measured_on(other, self.sizes, &spinner, idle).await?])
    }

    async fn stage(&mut self, stage: Stage) -> Result<Vec<Bar>, Failure> {
        match stage {
            Stage::Accept => {
                let spinner = Spinner::start("accept");
                self.api_alone(&spinner).await?;
                accept::measure(self.environment, self.sizes, &spinner).await
            }
            Stage::AcceptRs256 => self.accept_rs256().await,
            Stage::SoldOut => self.sold_out().await,
            Stage::Waiters => self.waiters().await,
            Stage::Latency => self.latency().await,
            Stage::Filled => {
                let spinner = self.nothing_but_api("memory, relay, landing").await?;
                let wants = |scenario| self.wanted.contains(&scenario);
                let wants = fill::Wants {
                    relay: wants(Scenario::Relay),
                    landing: wants(Scenario::Landing),
                    memory: wants(Scenario::Memory),
                };
                fill::measure(self.environment, self.sizes, wants, &spinner).await
            }
            Stage::EndToEnd => self.end_to_end().await,
            Stage::Resident => {
                let spinner = self.everything("memory of the roles").await?;
                let is_loaded = self.wanted.contains(&Scenario::EndToEnd);
                Ok(vec![memory::resident(self.environment, self.sizes, is_loaded, &spinner).await?])
            }
            Stage::Sale => {
                let spinner = self.everything("sale").await?;
                whole_sale::sales(self.environment, self.sizes, &spinner).await
            }
            Stage::Crowd => {
                let spinner = self.everything("crowd").await?;
                flash_crowd::crowd(self.environment, self.sizes, &spinner).await
            }
            Stage::Rush => self.rush().await,
            Stage::Recovery => self.recovery().await,
            Stage::Growth => {
                let spinner = self.nothing_but_api("growth").await?;
                growth::measure(self.environment, self.sizes, &spinner).await
            }
            Stage::GrowthReconcile => {
                let spinner = self.nothing_but_api("growth_reconcile").await?;
                growth_reconcile::measure(self.environment, self.sizes, &spinner).await
            }
            Stage::GrowthSalesIdle => self.growth_sales_idle().await,
            Stage::DropCost => self.cost_drop().await,
            Stage::Line => self.line().await,
            Stage::Expiry => {
                let spinner = self.nothing_but_api("expiry").await?;
                expiry::measure(self.environment, self.sizes, &spinner).await
            }
            Stage::IndexCost => {
                let spinner = self.nothing_but_api("index_cost").await?;
                index_cost::measure(self.environment, self.sizes, &spinner).await
            }
            Stage::Strategies => strategies::measure(self.environment, self.sizes, &Spinner::start("strategies")).await,
        }
    }

    /// Every role, nothing left to land: each measurement starts from rest.
    async fn everything(&mut self, name: &'static str) -> Result<Spinner, Failure> {
        let spinner = Spinner::start(name);
        self.environment.settle(self.sizes.patience, &spinner).await?;
        Ok(spinner)
    }

    /// The api role, nothing left to land.
    async fn nothing_but_api(&mut self, name: &'static str) -> Result<Spinner, Failure> {
        let spinner = self.everything(name).await?;
        self.environment.api_only().await?;
        Ok(spinner)
    }

    async fn api_alone(&mut self, spinner: &Spinner) -> Result<(), Failure> {
        if self.environment.backlog().await? > BACKLOG_MAX {
            self.environment.settle(self.sizes.patience, spinner).await?;
        }
        self.environment.api_only().await
    }

    async fn sold_out(&mut self) -> Result<Vec<Bar>, Failure> {
        let spinner = Spinner::start("sold_out, replay, poll");
        self.api_alone(&spinner).await?;
        // A new sale each time: what was sold in the run before has landed, and a question about it is another one.
        let sold_out = SoldOut::prepare(self.environment).await?;
        let mut bars = Vec::new();
        if self.wanted.contains(&Scenario::SoldOut) {
            spinner.say("sold_out");
            bars.push(sold_out.sold_out(self.environment, self.sizes).await?);
        }
        if self.wanted.contains(&Scenario::Replay) {
            spinner.say("replay");
            bars.push(sold_out.replay(self.environment, self.sizes).await?);
        }
        if self.wanted.contains(&Scenario::Poll) {
            spinner.say("poll");
            bars.extend(sold_out.poll(self.environment, self.sizes).await?);
        }
        Ok(bars)
    }
}
