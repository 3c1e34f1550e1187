//! Mechanisms that are left out, each of which has to be a difference: else playing paths proves nothing.

use crate::configurations::{EMPTIED_BOOKS, EVERY_FAULT, FORGOT_BUYERS, ONE_ORDER, REWOUND};
use crate::play::{Played, ShopStage, Stage, play};
use crate::setup::Setup;
use crate::walks::{every_kind, explore};

/// Servers of the first control; the paths have those below it.
const FIRST_STAGE: u64 = 10;

/// Names in `FAILPOINTS`, and the configuration whose paths need the mechanism.
const OF_THE_PROTOCOL: [(&[&str], Setup); 4] = [
    (&["replay_check", "ledger", "rollback"], EVERY_FAULT),
    (&["own_outcome", "recorded_refusal"], FORGOT_BUYERS),
    (&["boot_fence"], REWOUND),
    (&["grant_once"], EMPTIED_BOOKS),
];

/// Leaves out one mechanism after the other, and plays until something differs.
pub async fn each_is_noticed() {
    let (mut unnoticed, mut number) = (Vec::new(), FIRST_STAGE);
    for (mechanisms, model) in OF_THE_PROTOCOL {
        let paths = paths_of(model);
        for mechanism in mechanisms {
            // Before the servers are reached: some are a line of a script.
            let _out = LeftOut::new(mechanism);
            let mut stage = Stage::new(number).await;
            unnoticed.extend(until_it_differs(mechanism, &mut stage, (model, &paths)).await);
            number += 1;
        }
    }
    let (mechanism, paths) = ("expiry_condition", paths_of(ONE_ORDER));
    let _out = LeftOut::new(mechanism);
    let mut stage = ShopStage::new(number).await;
    unnoticed.extend(until_it_differs(mechanism, &mut stage, (ONE_ORDER, &paths)).await);
    assert!(unnoticed.is_empty(), "left out and not noticed: {unnoticed:?}");
}

/// A mechanism that is left out as long as this lives.
struct LeftOut<'a>(&'a str);

impl<'a> LeftOut<'a> {
    fn new(mechanism: &'a str) -> Self {
        fail::cfg(mechanism, "return").expect("a switch");
        Self(mechanism)
    }
}

impl Drop for LeftOut<'_> {
    fn drop(&mut self) {
        fail::remove(self.0);
    }
}

fn paths_of<M: Played>(model: M) -> Vec<Vec<M::Step>> {
    every_kind(&model, &explore(model)).0
}

/// `Some`: the mechanism, which nothing has noticed.
async fn until_it_differs<M: Played>(
    mechanism: &'static str,
    stage: &mut M::Stage,
    (model, paths): (M, &[Vec<M::Step>]),
) -> Option<&'static str> {
    for (count, path) in paths.iter().enumerate() {
        if let Err(found) = play(stage, &model, path).await {
            eprintln!("without {mechanism}: path {}, {:?}", count + 1, found.what);
            return None;
        }
    }
    Some(mechanism)
}
