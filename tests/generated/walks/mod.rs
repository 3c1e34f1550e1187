//! Paths through a model: the shortest way to each kind of step, then random ones that prefer what was walked least.

mod choice;
mod explored;
mod kinds;
mod of_lines;
mod of_orders;
mod of_the_protocol;
mod of_transfers;

pub use choice::{Coverage, choose, every_kind};
pub use explored::{Explored, explore};
pub use kinds::StepKind;

use std::fmt::Debug;
use std::hash::Hash;

/// A model that can be walked through.
pub trait Walked: Copy {
    type World: Copy + Eq + Hash;
    type Step: Copy + PartialEq + Debug;

    fn start(&self) -> Self::World;

    /// What can happen next, and can be played.
    fn possible(&self, world: &Self::World) -> Vec<Self::Step>;

    /// What comes of a step, with everybody in their place.
    fn step(&self, world: &Self::World, step: Self::Step) -> Self::World;

    /// The same world as a search keeps it: nothing distinguishes two relays but what they hold.
    fn in_order(world: &Self::World) -> Self::World;

    /// The kinds that one step belongs to.
    fn kinds(before: &Self::World, step: Self::Step, after: &Self::World) -> Vec<StepKind>;

    /// Whether each step of a path can happen behind those before it.
    fn can_happen(&self, path: &[Self::Step]) -> bool {
        let mut world = self.start();
        path.iter().all(|step| {
            let may = self.possible(&world).contains(step);
            world = if may { self.step(&world, *step) } else { world };
            may
        })
    }
}
