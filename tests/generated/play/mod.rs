//! Plays a path: each step of a model as what the product does, then both states compared.

mod consumers;
mod facts;
mod leaders;
mod lines;
mod orders;
mod people;
mod protocol;
mod reading;
mod relays;
mod stage;
mod transfers;

pub use lines::LinesStage;
pub use orders::ShopStage;
pub use stage::Stage;
pub use transfers::BucketsStage;

use crate::support::world::{World, pause};
use crate::walks::Walked;
use facts::{Facts, difference};
use seckill::p2_reserve::{DurabilityGuard, Fence, FenceHandles};
use std::time::{Duration, Instant};

/// Longest time for which the broker's counts may be behind what was done there.
const BROKER_CATCHES_UP: Duration = Duration::from_secs(3);

/// A boot fence of the stage's own, which passes when a path says so.
fn fence_of(world: &World, shards: u16) -> Fence {
    let store = &world.servers.redis;
    let handles = FenceHandles {
        servers: store.boot_fence.clone(),
        sale_keys: store.sale_keys.clone(),
        transfers: store.transfers.clone(),
    };
    Fence::new(handles, world.servers.rows.sales.clone(), DurabilityGuard::new(store.health.clone()), shards)
}

/// Where a path went another way than the model.
#[derive(Debug)]
pub struct Difference {
    /// How many steps were played, the one that differs among them.
    pub steps: usize,
    /// What differs, or why the step could not be made.
    pub what: Vec<String>,
    /// All that the model says.
    pub model: Facts,
}

/// A model whose steps can be made on servers.
pub trait Played: Walked {
    /// The servers, and who is at work on them.
    type Stage;

    /// Clears away what the last path left, and makes what the model starts with.
    async fn set_up(&self, stage: &mut Self::Stage);

    /// Makes one step, and says why if that is another one than the model's.
    async fn make(
        &self,
        stage: &mut Self::Stage,
        worlds: (&Self::World, &Self::World),
        step: Self::Step,
    ) -> Result<(), String>;

    /// What the servers say.
    async fn read_facts(&self, stage: &mut Self::Stage) -> Facts;

    /// What the model says.
    fn facts(&self, world: &Self::World) -> Facts;
}

/// Plays a path from its beginning, up to the first difference.
pub async fn play<M: Played>(stage: &mut M::Stage, model: &M, path: &[M::Step]) -> Result<(), Difference> {
    model.set_up(stage).await;
    let mut world = model.start();
    compare(stage, model, &world).await.map_err(|what| at(model, 0, what, &world))?;
    for (done, step) in path.iter().enumerate() {
        let next = model.step(&world, *step);
        let made = model.make(stage, (&world, &next), *step).await;
        made.map_err(|why| at(model, done + 1, vec![why], &next))?;
        world = next;
        compare(stage, model, &world).await.map_err(|what| at(model, done + 1, what, &world))?;
    }
    Ok(())
}

fn at<M: Played>(model: &M, steps: usize, what: Vec<String>, world: &M::World) -> Difference {
    Difference { steps, what, model: model.facts(world) }
}

/// Both sides, and again for a while if only the broker's counts differ.
async fn compare<M: Played>(stage: &mut M::Stage, model: &M, world: &M::World) -> Result<(), Vec<String>> {
    let (said, until) = (model.facts(world), Instant::now() + BROKER_CATCHES_UP);
    loop {
        let differ = difference(&said, &model.read_facts(stage).await);
        let of_broker = |what: &String| what.starts_with("broker") || what.contains("mq dlq");
        if differ.is_empty() {
            return Ok(());
        }
        if !differ.iter().all(of_broker) || Instant::now() > until {
            return Err(differ);
        }
        pause().await;
    }
}
