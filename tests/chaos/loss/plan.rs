//! What is to happen in a wave, drawn from the seed: some sales side by side, each with its own fault.
//!
//! | step | what happens |
//! |---|---|
//! | 1 | buyers buy in the aged sales, twice; the early copies are taken in between; P5 trims what is persisted |
//! | 2 | P5 and the relay stand still; buyers buy; the late copies are taken; grants and cancellations; buyers buy |
//! | 3 | some entries get stuck in a relay that never comes back; the others are persisted |
//! | 4 | relay or consumer is held, or none; buyers buy: so much is on its way |
//! | 5 | the faults strike |
//! | 6 | all go on; buyers buy; more is granted; P5 repairs what it can; units are reclaimed; buyers buy again |
//!
//! Every second time a fault comes up it comes alone and in the form in which it does harm for sure: a short run has each.

use super::faults::{Deck, SaleFault, ServerFault, another};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Who is held when the faults strike, so that requests are on their way there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Everything is persisted.
    NoReader,
    /// Requests are in the outbox.
    Relay,
    /// Requests are in the broker.
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
    pub faults: Vec<SaleFault>,
    /// Units granted between copy and strike; 0: none.
    pub top_up: u32,
    /// Units granted right after the strike; 0: none.
    pub late_top_up: u32,
    /// Whether units of failures are offered again after the repairs.
    pub reclaim: bool,
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
    /// What strikes whole servers.
    pub wide: Vec<ServerFault>,
    /// Who is held.
    pub held: Held,
}

/// Sales of a wave in which each has its own fault, and of one in which a server is struck.
const SALES: usize = 2 * SaleFault::ALL.len();
const SALES_OF_WIDE: usize = 8;

/// Waves without end: one in which sales are struck, two in which servers are, and so on.
pub struct Waves {
    dice: StdRng,
    faults: Deck<SaleFault>,
    wides: Deck<ServerFault>,
    next: usize,
}

impl Waves {
    /// Drawn from a seed.
    pub fn of(seed: u64) -> Self {
        let (faults, wides) = (Deck::of(SaleFault::ALL), Deck::of(ServerFault::DRAWN));
        Self { dice: StdRng::seed_from_u64(seed), faults, wides, next: 0 }
    }

    /// The next one.
    pub fn draw(&mut self) -> Wave {
        let number = self.next;
        self.next += 1;
        if number.is_multiple_of(3) {
            of_sales(number, &mut self.faults, &mut self.dice)
        } else {
            of_servers(number, &mut self.wides, &mut self.dice)
        }
    }
}

/// A wave in which acceptance numbers are the only witness of what is lost: where nothing reads them it goes unseen.
pub fn of_numbers(seed: u64) -> Wave {
    let mut dice = StdRng::seed_from_u64(seed);
    let scenes = (0..3).map(|at| {
        let faults = vec![SaleFault::KeysGone];
        let mut scene = Scene { faults, aged: false, early: false, ..scene(format!("blind-{at}"), &mut dice) };
        harmful(SaleFault::KeysGone, &mut scene);
        // Nothing else that could go wrong with them.
        (scene.top_up, scene.late_top_up, scene.stock, scene.limit) = (0, 0, 90, None);
        (scene.buyers[0], scene.buyers[1]) = (0, 0);
        scene
    });
    Wave { number: BLIND, scenes: scenes.collect(), wide: Vec::new(), held: Held::NoReader }
}

/// A wave in which a file of a server is damaged: few sales, with requests at every stage.
pub fn of_damage(number: usize, fault: ServerFault, seed: u64) -> Wave {
    let mut dice = StdRng::seed_from_u64(seed ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let held = [Held::NoReader, Held::Relay, Held::Consumer][dice.random_range(0..3)];
    // What is to be lost with the broker has to be in it.
    let held = if fault == ServerFault::BrokerFileDamaged { Held::Consumer } else { held };
    let scenes = (0..SALES_OF_DAMAGE).map(|at| {
        let mut scene = scene(format!("d{number}-{at}"), &mut dice);
        // Settled and trimmed requests cost seconds, and are only of use where the database loses them.
        scene.aged = at == 0 && fault == ServerFault::DatabaseFileDamaged;
        if !scene.aged {
            (scene.buyers[0], scene.buyers[1], scene.early) = (0, 0, false);
        }
        scene.early = false;
        scene
    });
    Wave { number, scenes: scenes.collect(), wide: vec![fault], held }
}

const SALES_OF_DAMAGE: usize = 3;

/// The number of the wave without an equation.
const BLIND: usize = usize::MAX;

fn of_sales(number: usize, faults: &mut Deck<SaleFault>, dice: &mut StdRng) -> Wave {
    // A short run has one wave, and what is to be lost with an outbox has to be in it.
    let held = match dice.random_range(0..5) {
        _ if number == 0 => Held::Relay,
        0..3 => Held::Relay,
        3 => Held::Consumer,
        _ => Held::NoReader,
    };
    let mut seen = Vec::new();
    let scenes = (0..SALES).map(|at| {
        let fault = faults.draw(dice);
        let mut scene = scene(format!("w{number}-{at}"), dice);
        scene.faults.push(fault);
        if seen.contains(&fault) {
            if dice.random_bool(0.4) {
                scene.faults.push(another(fault, dice));
            }
        } else {
            harmful(fault, &mut scene);
        }
        seen.push(fault);
        scene
    });
    Wave { number, scenes: scenes.collect(), wide: Vec::new(), held }
}

fn of_servers(number: usize, wides: &mut Deck<ServerFault>, dice: &mut StdRng) -> Wave {
    let mut wide = vec![wides.draw(dice)];
    if dice.random_bool(0.4) {
        wide.push(wides.draw(dice));
        wide.dedup();
        // What is deleted cannot be emptied.
        if wide.contains(&ServerFault::QueueDeleted) {
            wide.retain(|wide| *wide != ServerFault::QueuePurged);
        }
    }
    let queue = wide.iter().any(|wide| matches!(wide, ServerFault::QueuePurged | ServerFault::QueueDeleted));
    let held = match dice.random_range(0..3) {
        // What is to be lost with a queue has to be in it.
        _ if queue => Held::Consumer,
        0 => Held::NoReader,
        1 => Held::Relay,
        _ => Held::Consumer,
    };
    let early = dice.random_bool(0.3);
    let scenes = (0..SALES_OF_WIDE).map(|at| Scene { early, ..scene(format!("w{number}-{at}"), dice) });
    Wave { number, scenes: scenes.collect(), wide, held }
}

fn scene(sale: String, dice: &mut StdRng) -> Scene {
    let aged = dice.random_bool(0.6);
    let mut buyers = |from, to| dice.random_range(from..=to);
    let early = if aged { [buyers(2, 5), buyers(2, 5)] } else { [0, 0] };
    let buyers = [early[0], early[1], buyers(2, 5), buyers(4, 8), buyers(0, 4), buyers(1, 3), buyers(2, 8)];
    let units = |chance, dice: &mut StdRng| if dice.random_bool(chance) { dice.random_range(1..=9) } else { 0 };
    Scene {
        sale,
        stock: dice.random_range(25..=70),
        limit: [None, Some(1), Some(3)][dice.random_range(0..3)],
        aged,
        early: aged && dice.random_bool(0.4),
        faults: Vec::new(),
        top_up: units(0.4, dice),
        late_top_up: units(0.25, dice),
        reclaim: dice.random_bool(0.3),
        cancel: dice.random_bool(0.2),
        stuck: [0, 1, 1, 2][dice.random_range(0..4)],
        buyers,
        dice: dice.random(),
    }
}

/// So that this fault, alone, loses something.
fn harmful(fault: SaleFault, scene: &mut Scene) {
    scene.early = false;
    match fault {
        // A grant that only Redis remembers: the bridge alone shows it.
        SaleFault::RowsRewound => (scene.top_up, scene.stock, scene.limit) = (5, 90, None),
        // A request in a dead relay's hand, with others landed behind it: its number alone shows it.
        SaleFault::KeysGone | SaleFault::Rewound => (scene.stuck, scene.buyers[2], scene.buyers[3]) = (2, 6, 8),
        // What is trimmed is known to the database only.
        SaleFault::OrdersUndone => (scene.aged, scene.buyers[0], scene.buyers[1]) = (true, 6, 6),
        SaleFault::EntriesGone | SaleFault::Forgotten => scene.buyers[4] = 4,
        // Units are left to move.
        SaleFault::TakeForgotten => scene.stock = 90,
        SaleFault::ShardGone | SaleFault::KeyGone | SaleFault::ShardRewound | SaleFault::StockRewound => {}
        SaleFault::OrderRowsGone | SaleFault::OutcomeRowsGone => {}
    }
}
