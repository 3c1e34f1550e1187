//! The protocol of P2 to P5 as a model to be walked through, and the kinds of its steps.

use super::Walked;
use super::kinds::{Changes, StepKind, word_of};
use crate::actions::Action;
use crate::books::{Giver, Stage as Rebuilt};
use crate::operator::Act;
use crate::setup::Setup;
use crate::state::{Entry, Hand, REQUESTS, Request, Sale, Stage, World, index};
use stateright::Model;
use std::collections::BTreeSet;

impl Walked for Setup {
    type World = World;
    type Step = Action;

    fn start(&self) -> World {
        Self::start(self)
    }

    fn possible(&self, world: &World) -> Vec<Action> {
        let mut all = Vec::new();
        self.actions(world, &mut all);
        all.retain(|action| can_be_played(world, *action));
        all
    }

    fn step(&self, world: &World, action: Action) -> World {
        Self::step(self, world, action)
    }

    fn in_order(world: &World) -> World {
        (*world).in_order()
    }

    fn kinds(before: &World, action: Action, after: &World) -> Vec<StepKind> {
        let name = name_of(action);
        let mut kinds = vec![StepKind::Transition(format!("{name}: {}", changed(before, after)))];
        if matches!(action, Action::Fault(..)) {
            kinds.extend(under_way(before).into_iter().map(|step| StepKind::FaultDuring(name.clone(), step)));
        }
        kinds
    }
}

/// A stream gives its entries in their order; an audit's two readings are judged elsewhere. A leader that judges again finds nothing
/// in a hand, which is what its quiet time is for, and nothing undecided, which it would decide in the same step.
fn can_be_played(world: &World, action: Action) -> bool {
    match action {
        Action::Read(at, _) | Action::Send(at) if world.requests[at].kept.entry == Entry::New => {
            let place = |at: usize| (world.requests[at].epoch, world.requests[at].number);
            let is_new = |other: &usize| world.requests[*other].kept.entry == Entry::New;
            (0..REQUESTS).filter(is_new).all(|other| place(other) >= place(at))
        }
        Action::Rebuild(k) if world.books.leaders[k].stage == Rebuilt::Numbered => {
            let open = |request: &Request| request.in_hand() || (request.kept.ledger > 0 && request.outcome == 0);
            // An attempt that another one has overtaken ends here, in the model at its next step.
            let is_its_own = world.books.leaders[k].epoch == world.db_epoch;
            is_its_own && !world.requests.iter().any(open)
        }
        // The product asks Redis nothing where nothing is to be loaded, and finds a step later that its keys are gone.
        Action::Rebuild(k) if world.books.leaders[k].stage == Rebuilt::Begun => {
            let mine = world.meta.sale == Sale::Frozen && world.meta.epoch == world.books.leaders[k].epoch;
            mine || world.requests.iter().any(|request| request.outcome > 0)
        }
        // The product counts no attempt of an entry that the relay does not have any more.
        Action::Relay(at, k) if matches!(world.requests[at].hand[k], Hand::Failed | Hand::Spent) => {
            world.requests[at].kept.entry == Entry::Pending(index(k))
        }
        // The grant of a cancellation has the order's name: a database that went back makes the same one again.
        Action::Act(Act::Cancel, _) => !world.books.lossy || world.books.backup.is_none(),
        Action::Count | Action::Act(Act::WriteOff, _) => false,
        Action::Call(_)
        | Action::LateRuns(_)
        | Action::Fsync
        | Action::Fence
        | Action::Read(..)
        | Action::Publish(..)
        | Action::Confirm(..)
        | Action::Relay(..)
        | Action::Deliver(..)
        | Action::Consumer(..)
        | Action::Expire(_)
        | Action::Audit(_)
        | Action::Compensate(_)
        | Action::Rebuild(_)
        | Action::Freeze
        | Action::Trim(_)
        | Action::CloseNumber(_)
        | Action::CleanDlq(_)
        | Action::GiverReads(_)
        | Action::Giver
        | Action::Send(_)
        | Action::Persist(_)
        | Action::Act(..)
        | Action::Backup
        | Action::Fault(..) => true,
    }
}

fn name_of(action: Action) -> String {
    if let Action::Fault(kind, ..) = action {
        format!("{kind:?}")
    } else if let Action::Act(act, _) = action {
        format!("{act:?}")
    } else {
        word_of(&action)
    }
}

/// The changes of all requests, each once, and of the sale; without numbers that only count.
fn changed(before: &World, after: &World) -> String {
    let mut of_requests = BTreeSet::new();
    for at in 0..REQUESTS {
        let (one, other) = (&before.requests[at], &after.requests[at]);
        if one != other {
            of_requests.insert(of_request(one, other));
        }
    }
    let mut changes = Changes::default();
    changes.note("sale", before.meta.sale, after.meta.sale);
    changes.note("script", before.script_loaded, after.script_loaded);
    changes.note("giver", giver(before), giver(after));
    let leaders = |world: &World| sorted(world.books.leaders.map(|leader| leader.stage));
    changes.note("leaders", leaders(before), leaders(after));
    changes.note("building", before.meta.building, after.meta.building);
    of_requests.into_iter().chain([changes.said()]).collect::<Vec<_>>().join(", ")
}

fn giver(world: &World) -> &'static str {
    match world.books.giver {
        Giver::Idle => "idle",
        Giver::Read { .. } => "read",
        Giver::Gave(_) => "gave",
    }
}

fn of_request(before: &Request, after: &Request) -> String {
    let mut changes = Changes::default();
    changes.note("answer", before.answered, after.answered);
    changes.note("late", before.late, after.late);
    changes.note("ledger", before.kept.ledger > 0, after.kept.ledger > 0);
    changes.note("entry", entry(before.kept.entry), entry(after.kept.entry));
    changes.note("attempts", before.kept.attempts, after.kept.attempts);
    changes.note("parked", before.kept.parked, after.kept.parked);
    changes.note("hands", sorted(before.hand), sorted(after.hand));
    changes.note("queued", before.queue.map(|n| n > 0), after.queue.map(|n| n > 0));
    changes.note("retry", before.waits_for_a_retry(), after.waits_for_a_retry());
    changes.note("dead letter", before.mq_dlq, after.mq_dlq);
    changes.note("consumers", sorted(before.consumer.map(|d| d.stage)), sorted(after.consumer.map(|d| d.stage)));
    changes.note("audited", before.audited, after.audited);
    changes.note("outcome", before.outcome, after.outcome);
    changes.note("refusal", before.decided.refusal, after.decided.refusal);
    changes.note("cancelled", before.decided.cancelled, after.decided.cancelled);
    changes.note("reclaimed", before.decided.reclaimed, after.decided.reclaimed);
    changes.note("closed", before.decided.closed, after.decided.closed);
    changes.said()
}

/// Which relay it is makes no difference.
const fn entry(entry: Entry) -> &'static str {
    match entry {
        Entry::None => "none",
        Entry::New => "new",
        Entry::Pending(_) => "pending",
        Entry::Orphan => "orphan",
    }
}

fn sorted<T: Ord, const N: usize>(mut hands: [T; N]) -> [T; N] {
    hands.sort();
    hands
}

/// Each step that somebody is in the middle of.
fn under_way(world: &World) -> BTreeSet<String> {
    let mut steps = BTreeSet::new();
    for request in &world.requests {
        steps.extend(request.hand.iter().filter(|hand| **hand != Hand::None).map(|hand| format!("relay: {hand:?}")));
        let stages = request.consumer.iter().map(|delivery| delivery.stage).filter(|stage| *stage != Stage::None);
        steps.extend(stages.map(|stage| format!("consumer: {stage:?}")));
        if request.audited {
            steps.insert("compensation".to_owned());
        }
        if request.late {
            steps.insert("late call".to_owned());
        }
        if request.kept.entry == Entry::New {
            steps.insert("unread entry".to_owned());
        }
        if request.is_queued() {
            steps.insert("queued message".to_owned());
        }
    }
    if world.books.giver != Giver::Idle {
        steps.insert(format!("giver: {}", giver(world)));
    }
    let stages = world.books.leaders.iter().map(|leader| leader.stage).filter(|stage| *stage != Rebuilt::None);
    steps.extend(stages.map(|stage| format!("rebuild: {stage:?}")));
    steps
}
