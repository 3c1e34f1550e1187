//! What is to happen in a wave, drawn from the seed: some sales side by side, each with its own misfortune.
//!
//! | step | what happens |
//! |---|---|
//! | 1 | buyers buy in the aged sales, twice; the early copies are taken in between; P5 trims what has landed |
//! | 2 | P5 and the relay stand still; buyers buy; the late copies are taken; grants and cancellations; buyers buy |
//! | 3 | some entries get stuck in a relay that never comes back; the others land |
//! | 4 | relay or consumer is held, or none; buyers buy: so much is on its way |
//! | 5 | the faults strike |
//! | 6 | all go on; buyers buy; P5 repairs what it can; buyers buy again |

use super::blow::{Blow, Deck, Wide, another};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Who is held when the faults strike, so that requests are on their way there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Everything has landed.
    Nobody,
    /// Requests lie in the outbox.
    Relay,
    /// Requests lie in the broker.
    Consumer,
}

/// One sale.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Its id.
    pub sale: String,
    /// Units.
    pub stock: i64,
    /// Units a buyer.
    pub limit: Option<u32>,
    /// Whether much was sold, settled and trimmed long before.
    pub aged: bool,
    /// Whether copies go back to the early ones.
    pub early: bool,
    /// What strikes.
    pub blows: Vec<Blow>,
    /// Units granted between copy and strike; 0: none.
    pub top_up: u32,
    /// Whether an order is cancelled between copy and strike.
    pub cancel: bool,
    /// Requests that stay in the hands of a dead relay.
    pub stuck: usize,
    /// Buyers in the steps.
    pub buyers: [usize; 7],
    /// For choices at the strike.
    pub dice: u64,
}

/// Sales side by side.
#[derive(Debug, Clone)]
pub struct Wave {
    /// Its number in the run.
    pub number: usize,
    /// Its sales.
    pub scenes: Vec<Scene>,
    /// What strikes a whole server.
    pub wide: Option<Wide>,
    /// Who is held.
    pub held: Held,
}

impl Wave {
    /// Faults in it.
    pub fn faults(&self) -> usize {
        self.scenes.iter().map(|scene| scene.blows.len()).sum::<usize>() + usize::from(self.wide.is_some())
    }
}

/// Sales of a wave in which each has its own fault, and of one in which a server is struck.
const SALES: usize = 24;
const SALES_OF_WIDE: usize = 8;

/// Waves with at least so many faults: two in which sales are struck, one in which a server is, and so on.
pub fn waves(seed: u64, faults: usize) -> Vec<Wave> {
    let mut dice = StdRng::seed_from_u64(seed);
    let (mut blows, mut wides) = (Deck::of(Blow::ALL), Deck::of(Wide::ALL));
    let mut waves: Vec<Wave> = Vec::new();
    while waves.iter().map(Wave::faults).sum::<usize>() < faults {
        let number = waves.len();
        let is_wide = number % 3 == 2;
        let wide = is_wide.then(|| wides.draw(&mut dice));
        let held = match (wide, dice.random_range(0..4)) {
            // What is to be lost with a queue has to be in it.
            (Some(Wide::QueuePurged | Wide::QueueDeleted), _) => Held::Consumer,
            (_, 0) => Held::Nobody,
            (_, 1 | 2) => Held::Relay,
            (_, _) => Held::Consumer,
        };
        let sales = if is_wide { SALES_OF_WIDE } else { SALES };
        let early = dice.random_bool(0.3);
        let scenes = (0..sales).map(|at| {
            let blow = (!is_wide).then(|| blows.draw(&mut dice));
            let mut scene = scene(format!("w{number}-{at}"), blow, &mut dice);
            if is_wide {
                scene.early = early;
            }
            scene
        });
        let scenes = scenes.collect();
        waves.push(Wave { number, scenes, wide, held });
    }
    waves
}

fn scene(sale: String, blow: Option<Blow>, dice: &mut StdRng) -> Scene {
    let mut blows: Vec<Blow> = blow.into_iter().collect();
    if let (Some(first), true) = (blow, dice.random_bool(0.25)) {
        blows.push(another(first, dice));
    }
    let aged = dice.random_bool(0.6);
    let buyers = |from, to, dice: &mut StdRng| dice.random_range(from..=to);
    let early_buyers = if aged { [buyers(2, 5, dice), buyers(2, 5, dice)] } else { [0, 0] };
    let [first, second] = early_buyers;
    Scene {
        sale,
        stock: dice.random_range(25..=70),
        limit: [None, Some(1), Some(3)][dice.random_range(0..3)],
        aged,
        early: aged && dice.random_bool(0.4),
        blows,
        top_up: if dice.random_bool(0.5) { dice.random_range(1..=9) } else { 0 },
        cancel: dice.random_bool(0.2),
        stuck: [0, 1, 1, 2][dice.random_range(0..4)],
        buyers: [
            first,
            second,
            buyers(2, 5, dice),
            buyers(4, 8, dice),
            buyers(0, 4, dice),
            buyers(1, 3, dice),
            buyers(2, 8, dice),
        ],
        dice: dice.random(),
    }
}
