//! What can happen next to a line. Every step is one script, one transaction, one read, or a call.

use super::leading::{LEADS, SLEEPS};
use super::setup::{Kind, LineFault, LinesSetup, Unlined};
use super::state::{
    Answer, Bought, Door, EACH_ID, ENTRIES, Follower, Leader, Line, LineMoment, Place, Sells, of_entry,
};
use super::{door, giving, leading, script};

/// A step; the number is an entry, a click, a request or a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineStep {
    Draws,
    Enters(usize),
    Leaves(usize),
    IsBlocked(usize),
    Clicks(usize),
    /// An order is written.
    Lands(usize),
    IsPaid(usize),
    Expires(usize),
    GivesBack(usize),
    /// The leader counts the units in Redis.
    Counts(usize),
    /// It reads the line.
    Chooses(usize),
    WritesIds(usize),
    Buys(usize, usize),
    Records(usize),
    /// An entry is compared with its outcome and its order.
    Compares(usize),
    RunsLate(usize, u8),
    Reopens(usize),
    /// The leader sees that the door is to be set, and takes Redis' clock.
    TakesClock(usize),
    ReadsRow(usize),
    SetsDoor(usize),
    OpensLine(usize),
    /// A step of another process that makes the door follow.
    Follows(usize),
    FenceCompares,
    FencePasses,
    TakesEpoch,
    Loads,
    ReadsDoor,
    OpensSale,
    /// Mutations: a process reads the sale.
    ReadsSale,
    /// Costs one of the faults that are left.
    Fault(LineFault, usize),
}

/// Whether nothing happens any more unless a person, a fault, or what was thought dead does something.
pub fn is_quiet(setup: &LinesSetup, moment: &LineMoment) -> bool {
    let mut out = Vec::new();
    by_itself(setup, moment, &mut out);
    out.is_empty()
}

pub fn by_itself(setup: &LinesSetup, moment: &LineMoment, out: &mut Vec<LineStep>) {
    if moment.line == Line::Entering {
        out.push(LineStep::Draws);
    }
    for (request, bought) in moment.requests.iter().enumerate() {
        match bought {
            Bought::Accepted => out.push(LineStep::Lands(request)),
            // By its buyer, or by the clock.
            Bought::Unpaid => out.extend([LineStep::IsPaid(request), LineStep::Expires(request)]),
            Bought::Returning if moment.keys.sells == Sells::Open => out.push(LineStep::GivesBack(request)),
            Bought::Nowhere | Bought::Paid | Bought::Returning | Bought::Returned => {}
        }
    }
    let compared = (0..ENTRIES).filter(|at| giving::compared(setup, moment, *at).is_some());
    out.extend(compared.map(LineStep::Compares));
    out.extend(upkeep(moment));
    leading::next(setup, moment, LEADS, out);
}

/// The boot fence, and a rebuild.
fn upkeep(moment: &LineMoment) -> Option<LineStep> {
    let is_on_its_way = moment.requests.contains(&Bought::Accepted);
    match moment.keys.sells {
        Sells::Open => None,
        Sells::Restarted => Some(LineStep::FenceCompares),
        Sells::Compared(_) => Some(LineStep::FencePasses),
        Sells::Lost => Some(LineStep::TakesEpoch),
        Sells::Numbered(_) => (!is_on_its_way).then_some(LineStep::Loads),
        Sells::Loaded => Some(LineStep::ReadsDoor),
        Sells::Read(_) => Some(LineStep::OpensSale),
    }
}

pub fn by_chance(setup: &LinesSetup, moment: &LineMoment, out: &mut Vec<LineStep>) {
    if moment.leaders[SLEEPS] != Leader::Idle {
        leading::next(setup, moment, SLEEPS, out);
    }
    out.extend(script::clicks(setup, moment).map(LineStep::Clicks));
    for (who, follower) in moment.followers.iter().enumerate().take(setup.followers) {
        if *follower != Follower::Idle || door::differs(moment) {
            out.push(LineStep::Follows(who));
        }
    }
    let remembers = [Unlined::DoorInScript, Unlined::DoorOfRebuild].map(|absent| setup.lacks(absent));
    if remembers.contains(&true) && moment.remembered != moment.row.by_line {
        out.push(LineStep::ReadsSale);
    }
    let is_raffle = setup.kind == Kind::Raffle;
    for at in 0..ENTRIES {
        let (entry, waits) = (moment.entries[at], moment.entries[at].place == Place::Waiting);
        let is_next = at == 0 || moment.entries[at - 1].place != Place::Absent;
        if entry.place == Place::Absent && setup.wants[at] > 0 && is_next && !is_raffle && moment.line == Line::Open {
            out.push(LineStep::Enters(at));
        }
        let may_leave = entry.id.is_none() || setup.lacks(Unlined::InHandStays);
        if setup.leaves && waits && may_leave {
            out.push(LineStep::Leaves(at));
        }
        if setup.blocks && waits && !entry.is_blocked {
            out.push(LineStep::IsBlocked(at));
        }
        for id in EACH_ID.into_iter().filter(|id| moment.late[of_entry(at, *id)]) {
            let is_new = moment.requests[of_entry(at, id)] == Bought::Nowhere;
            if is_new && script::decision(setup, moment, of_entry(at, id)) == Some(Answer::Accepted) {
                out.push(LineStep::RunsLate(at, id));
            }
        }
    }
}

pub fn faults(setup: &LinesSetup, moment: &LineMoment, out: &mut Vec<LineStep>) {
    let mut fault = |happens: bool, kind, at| {
        if happens && moment.faults_left > 0 && setup.kinds.contains(&kind) {
            out.push(LineStep::Fault(kind, at));
        }
    };
    let leads = moment.leaders[LEADS];
    fault(leads != Leader::Idle, LineFault::LeaderDies, LEADS);
    fault(leads != Leader::Idle && moment.leaders[SLEEPS] == Leader::Gone, LineFault::LeaderSleeps, LEADS);
    for (who, leader) in moment.leaders.iter().enumerate() {
        let Leader::Asking(set) = leader else { continue };
        let called = giving::of(*set).filter(|at| setup.at_once || *at == set.trailing_zeros() as usize);
        for at in called {
            let is_called = giving::id(setup, moment, at).is_some();
            fault(is_called, LineFault::CallGivenUp, who * ENTRIES + at);
        }
    }
    for (request, bought) in moment.requests.iter().enumerate() {
        fault(*bought == Bought::Accepted, LineFault::OrderFails, request);
    }
    let is_there = moment.keys.sells != Sells::Lost;
    fault(is_there, LineFault::RedisForgets, 0);
    fault(is_there && moment.requests.contains(&Bought::Accepted), LineFault::RedisForgets, 1);
    fault(moment.keys.sells == Sells::Open && moment.keys.before.is_some(), LineFault::DoorForgotten, 0);
}

pub fn apply(setup: &LinesSetup, moment: &mut LineMoment, step: LineStep) {
    match step {
        LineStep::Draws => moment.line = Line::Drawn,
        LineStep::Enters(at) => moment.entries[at].place = Place::Waiting,
        LineStep::Leaves(at) => moment.entries[at].place = Place::Left,
        LineStep::IsBlocked(at) => moment.entries[at].is_blocked = true,
        LineStep::Clicks(click) => script::click(setup, moment, click),
        LineStep::Lands(request) => moment.requests[request] = Bought::Unpaid,
        LineStep::IsPaid(request) => moment.requests[request] = Bought::Paid,
        LineStep::Expires(request) => moment.requests[request] = Bought::Returning,
        LineStep::GivesBack(request) => script::give_back(setup, moment, request),
        LineStep::Compares(at) => {
            let Some(place) = giving::compared(setup, moment, at) else { return };
            moment.entries[at].place = place;
            if place == Place::Lapsed && setup.lacks(Unlined::GivenBackOnce) {
                moment.keys.units += setup.wants[at];
            }
        }
        LineStep::RunsLate(at, id) => {
            moment.late[of_entry(at, id)] = false;
            script::buy(setup, moment, at, id);
        }
        LineStep::FenceCompares
        | LineStep::FencePasses
        | LineStep::TakesEpoch
        | LineStep::Loads
        | LineStep::ReadsDoor
        | LineStep::OpensSale => keep_up(setup, moment),
        LineStep::Follows(who) => door::follow(setup, moment, who),
        LineStep::ReadsSale => moment.remembered = moment.row.by_line,
        LineStep::Fault(kind, at) => {
            moment.faults_left -= 1;
            happen(setup, moment, kind, at);
        }
        LineStep::Counts(who)
        | LineStep::Chooses(who)
        | LineStep::WritesIds(who)
        | LineStep::Buys(who, _)
        | LineStep::Records(who)
        | LineStep::Reopens(who)
        | LineStep::TakesClock(who)
        | LineStep::ReadsRow(who)
        | LineStep::SetsDoor(who)
        | LineStep::OpensLine(who) => leading::apply(setup, moment, who, step),
    }
}

/// The next step of the boot fence, or of a rebuild.
fn keep_up(setup: &LinesSetup, moment: &mut LineMoment) {
    let read = Door { by_line: moment.row.by_line, at: moment.clock() };
    let is_old = setup.lacks(Unlined::DoorOfRebuild);
    match moment.keys.sells {
        Sells::Open => {}
        Sells::Restarted => moment.keys.sells = Sells::Compared(read),
        Sells::Compared(read) => door::pass(setup, moment, read),
        Sells::Lost => {
            moment.keys.sells = Sells::Numbered(if is_old { moment.remembered } else { moment.row.by_line });
        }
        Sells::Numbered(by_line) => {
            script::load(setup, moment);
            moment.keys.door = Door { by_line, at: 0 };
            moment.keys.sells = Sells::Loaded;
        }
        Sells::Loaded => moment.keys.sells = Sells::Read(read),
        Sells::Read(read) => {
            if !is_old {
                door::set(setup, moment, read);
            }
            (moment.keys.sells, moment.keys.before) = (Sells::Open, None);
        }
    }
}

fn happen(setup: &LinesSetup, moment: &mut LineMoment, kind: LineFault, at: usize) {
    match kind {
        LineFault::LeaderDies => moment.leaders[LEADS] = Leader::Idle,
        LineFault::LeaderSleeps => {
            moment.leaders[SLEEPS] = moment.leaders[LEADS];
            moment.leaders[LEADS] = Leader::Idle;
        }
        LineFault::CallGivenUp => {
            let (who, at) = (at / ENTRIES, at % ENTRIES);
            let (Leader::Asking(set), Some(id)) = (moment.leaders[who], giving::id(setup, moment, at)) else { return };
            moment.late[of_entry(at, id)] = true;
            let end = if who == SLEEPS { Leader::Gone } else { Leader::Idle };
            moment.leaders[who] = giving::unanswered(setup, set & !(1 << at)).unwrap_or(end);
        }
        LineFault::OrderFails => moment.requests[at] = Bought::Returning,
        LineFault::RedisForgets => script::forget(moment, at == 1),
        LineFault::DoorForgotten => {
            let before: Option<Door> = moment.keys.before.take();
            moment.keys.door = before.unwrap_or(moment.keys.door);
            moment.keys.sells = Sells::Restarted;
        }
    }
}
