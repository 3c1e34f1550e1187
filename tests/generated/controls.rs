//! Mechanisms that are left out, each of which has to be a difference: else playing paths proves nothing.

use crate::configurations::{
    DOOR_OF_LIST, EMPTIED_BOOKS, EVERY_FAULT, FORGOT_BUYERS, LINE_FORGOTTEN, OFFER_FORGOTTEN, ONE_ORDER, REWOUND,
    SHORT_OF_UNITS, TWO_RANKS,
};
use crate::lines::LinesSetup;
use crate::play::{LinesStage, Played, ShopStage, Stage, play};
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

/// A mechanism, and steps that are on each path which is played without it: those that need it are among them.
type Needed = (&'static str, &'static [&'static str]);

const OF_LINES: [(&[Needed], LinesSetup); 5] = [
    (&[("ranks_obeyed", &[]), ("left_not_offered", &["Leaves"]), ("lapsed_once", &["Expires", "Compares"])], TWO_RANKS),
    (
        &[
            ("line_of_version", &["LeaderSleeps", "Clicks(1)", "OpensLine(1)"]),
            ("clock_after_row", &["TakesClock"]),
            ("door_in_fence", &["FencePasses"]),
        ],
        DOOR_OF_LIST,
    ),
    (
        &[("terms_of_rebuild", &["OpensSale"]), ("in_hand_compared", &["LeaderDies", "RedisForgets", "Compares"])],
        LINE_FORGOTTEN,
    ),
    (&[("forgotten_asked_again", &["RedisForgets, 1", "OpensSale", "Buys"])], OFFER_FORGOTTEN),
    (&[("offer_request_kept", &["LeaderSleeps", "Buys(0, 1)"])], SHORT_OF_UNITS),
];

/// The same for lines. With the mechanism the path that notices its lack has no difference.
pub async fn each_of_lines_is_noticed() {
    let (mut unnoticed, mut number) = (Vec::new(), FIRST_STAGE);
    for (mechanisms, model) in OF_LINES {
        let all = paths_of(model);
        for (mechanism, steps) in mechanisms {
            let has_them = |path: &&Vec<_>| steps.iter().all(|step| format!("{path:?}").contains(step));
            let paths: Vec<_> = all.iter().filter(has_them).cloned().collect();
            let mut stage = LinesStage::new(number).await;
            number += 1;
            let out = LeftOut::new(mechanism);
            let noticed = first_difference(mechanism, &mut stage, (model, &paths)).await;
            drop(out);
            match noticed {
                Some(path) => play(&mut stage, &model, path).await.expect("no difference with it"),
                None => unnoticed.push(mechanism),
            }
        }
    }
    assert!(unnoticed.is_empty(), "left out and not noticed: {unnoticed:?}");
}

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
    played: (M, &[Vec<M::Step>]),
) -> Option<&'static str> {
    first_difference(mechanism, stage, played).await.is_none().then_some(mechanism)
}

/// The first path that differs, up to there.
async fn first_difference<'a, M: Played>(
    mechanism: &'static str,
    stage: &mut M::Stage,
    (model, paths): (M, &'a [Vec<M::Step>]),
) -> Option<&'a [M::Step]> {
    for (count, path) in paths.iter().enumerate() {
        if let Err(found) = play(stage, &model, path).await {
            let path = &path[..found.steps];
            eprintln!("without {mechanism}: path {}, {:?}, {path:?}", count + 1, found.what);
            return Some(path);
        }
    }
    None
}
