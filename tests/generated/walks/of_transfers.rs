//! Two buckets as a model to be walked through, and the kinds of its steps.

use super::Walked;
use super::kinds::{Changes, StepKind, word_of};
use crate::transfers::TransfersSetup;
use crate::transfers::state::{Keys, MOVERS, Mover, TwoBuckets};
use crate::transfers::steps::TransferStep;
use stateright::Model;

impl Walked for TransfersSetup {
    type World = TwoBuckets;
    type Step = TransferStep;

    fn start(&self) -> TwoBuckets {
        TwoBuckets::start(self)
    }

    fn possible(&self, buckets: &TwoBuckets) -> Vec<TransferStep> {
        let mut all = Vec::new();
        self.actions(buckets, &mut all);
        all
    }

    fn step(&self, buckets: &TwoBuckets, step: TransferStep) -> TwoBuckets {
        Self::step(self, buckets, step)
    }

    fn in_order(buckets: &TwoBuckets) -> TwoBuckets {
        (*buckets).in_order()
    }

    fn kinds(before: &TwoBuckets, step: TransferStep, after: &TwoBuckets) -> Vec<StepKind> {
        let name = if let TransferStep::Fault(kind, _) = step { word_of(&kind) } else { word_of(&step) };
        let mut changes = Changes::default();
        let movers = |buckets: &TwoBuckets| sorted(buckets.movers.map(does));
        changes.note("movers", movers(before), movers(after));
        changes.note("late", does(before.late), does(after.late));
        let buckets = |buckets: &TwoBuckets| sorted([0, 1].map(|shard| of_bucket(buckets, shard)));
        changes.note("buckets", buckets(before), buckets(after));
        let mut kinds = vec![StepKind::Transition(format!("{name}: {} {:?}", changes.said(), after.happened))];
        if matches!(step, TransferStep::Fault(..)) {
            let under_way = movers(before).into_iter().filter(|does| *does != "idle");
            kinds.extend(under_way.map(|does| StepKind::FaultDuring(name.clone(), does.to_owned())));
        }
        kinds
    }
}

const fn does(mover: Mover) -> &'static str {
    match mover {
        Mover::Idle => "idle",
        Mover::Gives(_) => "gives",
        Mover::Forgets(_) => "forgets",
    }
}

/// A bucket without numbers that only count.
fn of_bucket(buckets: &TwoBuckets, shard: usize) -> [bool; 6] {
    let Keys { frozen, stock, record, .. } = buckets.keys[shard];
    let (fenced, under_way) = (buckets.fenced[shard], buckets.under_way(shard));
    let behind = buckets.keys[shard].epoch != buckets.epoch;
    [frozen, fenced, behind, stock > 0, record.is_some(), under_way > 0]
}

fn sorted<T: Ord, const N: usize>(mut all: [T; N]) -> [T; N] {
    all.sort();
    all
}

const _: () = assert!(MOVERS == 2, "each has a place");
