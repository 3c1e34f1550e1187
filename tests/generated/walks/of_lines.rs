//! The line of a sale as a model to be walked through, the kinds of its steps, and which of them can be made on servers.

use super::Walked;
use super::kinds::{Changes, StepKind, word_of};
use crate::lines::LinesSetup;
use crate::lines::setup::LineFault;
use crate::lines::state::{Bought, Leader, Line, LineMoment, Place, Sells};
use crate::lines::steps::{LineStep, apply};
use stateright::Model;
use std::collections::BTreeSet;

impl Walked for LinesSetup {
    type World = LineMoment;
    type Step = LineStep;

    fn start(&self) -> LineMoment {
        LineMoment::start(self)
    }

    fn possible(&self, moment: &LineMoment) -> Vec<LineStep> {
        let mut all = Vec::new();
        self.actions(moment, &mut all);
        all.retain(|step| can_be_made(self, moment, *step) && one_at_a_time(&self.step(moment, *step)));
        all
    }

    fn step(&self, moment: &LineMoment, step: LineStep) -> LineMoment {
        let mut next = *moment;
        apply(self, &mut next, step);
        next
    }

    fn in_order(moment: &LineMoment) -> LineMoment {
        (*moment).in_order()
    }

    fn kinds(before: &LineMoment, step: LineStep, after: &LineMoment) -> Vec<StepKind> {
        let name = if let LineStep::Fault(kind, _) = step { word_of(&kind) } else { word_of(&step) };
        let mut changes = Changes::default();
        changes.note("line", before.line, after.line);
        changes.note("row", before.row.by_line, after.row.by_line);
        changes.note("door", before.keys.door.by_line, after.keys.door.by_line);
        changes.note("sells", word_of(&before.keys.sells).as_str(), word_of(&after.keys.sells).as_str());
        let places = |moment: &LineMoment| sorted(moment.entries.map(|entry| word_of(&entry.place)));
        let leaders = |moment: &LineMoment| moment.leaders.map(|leader| does(moment, leader));
        let [is, was] = [after, before].map(places);
        let [leads, led] = [after, before].map(leaders);
        changes.note("entries", was.join("+").as_str(), is.join("+").as_str());
        changes.note("leaders", led.join("+").as_str(), leads.join("+").as_str());
        let mut kinds =
            vec![StepKind::Transition(format!("{name}, {}: {}", word_of(&before.keys.sells), changes.said()))];
        if matches!(step, LineStep::Fault(..)) {
            let under_way: BTreeSet<String> = led.into_iter().filter(|does| does != "Idle" && does != "Gone").collect();
            kinds.extend(under_way.into_iter().map(|does| StepKind::FaultDuring(name.clone(), does)));
        }
        kinds
    }
}

/// What a leader does; an answer is a place of its own, and so is an entry that is in hand.
fn does(moment: &LineMoment, leader: Leader) -> String {
    let name = format!("{leader:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
    match leader {
        Leader::Answered { answer, .. } => format!("{answer:?}"),
        Leader::Chosen(set) | Leader::Asking(set) => {
            let at = set.trailing_zeros() as usize;
            let in_hand = if moment.entries[at].id.is_some() { " in hand" } else { "" };
            let forgotten =
                if in_hand.is_empty() || moment.request(at) != Bought::Nowhere { "" } else { " of nothing" };
            format!("{name} {:?}{in_hand}{forgotten}", moment.entries[at].place)
        }
        Leader::Gone
        | Leader::Idle
        | Leader::Counted(_)
        | Leader::Reopens
        | Leader::Clocked { .. }
        | Leader::SetsDoor { .. }
        | Leader::DoorIsShut(_) => name,
    }
}

fn sorted<T: Ord, const N: usize>(mut all: [T; N]) -> [T; N] {
    all.sort();
    all
}

/// The product asks P2 for all entries of a pass at once, and records the answers together.
fn one_at_a_time(moment: &LineMoment) -> bool {
    let several = |leader: &Leader| matches!(leader, Leader::Chosen(set) | Leader::Asking(set) if set.count_ones() > 1);
    !moment.leaders.iter().any(several)
}

/// Whether a leader is between its count and its record.
fn is_giving(leader: Leader) -> bool {
    matches!(
        leader,
        Leader::Counted(_) | Leader::Chosen(_) | Leader::Asking(_) | Leader::Answered { .. } | Leader::Reopens
    )
}

/// What follows is about rows only.
fn needs_no_keys(leader: Leader) -> bool {
    matches!(leader, Leader::Idle | Leader::Gone | Leader::Counted(0) | Leader::Reopens | Leader::DoorIsShut(_))
}

/// Whether the step can be made. `docs/model.md` says what is left out.
fn can_be_made(setup: &LinesSetup, moment: &LineMoment, step: LineStep) -> bool {
    let sells = moment.keys.sells;
    match step {
        // Ranks are drawn by chance: who is who is known then.
        _ if moment.line == Line::Entering => step == LineStep::Draws,
        // The product sees first that the sale is sold out again.
        LineStep::TakesClock(_) => moment.line != Line::Awaited || moment.row.by_line || moment.keys.units > 0,
        // The product leaves an entry LAPSED whose call ran late.
        LineStep::Compares(at) => moment.entries[at].place != Place::Lapsed,
        // The product passes a blocked buyer over where it reads who is next, and goes on to the next rank in the same pass.
        LineStep::IsBlocked(at) => {
            let is_alone = setup.wants.iter().filter(|units| **units > 0).count() == 1;
            is_alone && moment.entries[at].id.is_none() && !moment.leaders.iter().any(|leader| is_giving(*leader))
        }
        // A purchase passes the boot fence itself. Of what is decided the product asks no server.
        LineStep::Buys(_, at) => {
            let is_fenced = matches!(sells, Sells::Restarted | Sells::Compared(_));
            !is_fenced && (sells == Sells::Open || !moment.request(at).is_decided())
        }
        // An entry that was offered meanwhile is not asked for again.
        LineStep::WritesIds(who) => {
            let Leader::Chosen(set) = moment.leaders[who] else { return true };
            let at = set.trailing_zeros() as usize;
            let entry = moment.entries[at];
            matches!(entry.place, Place::Waiting | Place::Left) || moment.request(at) == Bought::Nowhere
        }
        LineStep::Fault(LineFault::OrderFails, _) => false,
        // Units that come back while keys are rebuilt are given by their grant after it; the model counts them at once.
        LineStep::Expires(_) => !matches!(sells, Sells::Numbered(_)),
        // Keys are rebuilt in an epoch of their own, which the model does not have: what read the sale before does nothing any more. And a
        // number that is lost before another one is a gap, whose unit is kept back.
        LineStep::Fault(LineFault::RedisForgets, what) => {
            let is_quiet = moment.leaders.iter().all(|leader| needs_no_keys(*leader)) && !moment.late.contains(&true);
            let all_lost = moment.requests.iter().all(|request| matches!(request, Bought::Nowhere | Bought::Accepted));
            is_quiet && (what == 0 || all_lost)
        }
        LineStep::Draws
        | LineStep::Enters(_)
        | LineStep::Leaves(_)
        | LineStep::Clicks(_)
        | LineStep::Lands(_)
        | LineStep::IsPaid(_)
        | LineStep::GivesBack(_)
        | LineStep::Counts(_)
        | LineStep::Chooses(_)
        | LineStep::Records(_)
        | LineStep::RunsLate(..)
        | LineStep::Reopens(_)
        | LineStep::ReadsRow(_)
        | LineStep::SetsDoor(_)
        | LineStep::OpensLine(_)
        | LineStep::Follows(_)
        | LineStep::FenceCompares
        | LineStep::FencePasses
        | LineStep::TakesEpoch
        | LineStep::Loads
        | LineStep::ReadsDoor
        | LineStep::OpensSale
        | LineStep::ReadsSale
        | LineStep::Fault(..) => true,
    }
}
