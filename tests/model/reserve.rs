//! P2 and Redis itself: `lua/reserve.lua`, the boot fence (`src/p2_reserve/fence.rs`), and what a crash of Redis leaves.

use crate::actions::Action;
use crate::repeats;
use crate::setup::{Kind, Mutation, Setup, Sync};
use crate::state::{Answered, Entry, FAILED, Kept, Meta, REQUESTS, Request, Sale, World};
use seckill::domain::states::{P2Reserve, State as Journey};

/// What the script answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// P2-R0, P2-R6.
    Accepted,
    /// P2-R1, P2-R4.
    Refused,
    /// Frozen, or keys missing: ask again later.
    NotNow,
}

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    for at in 0..REQUESTS {
        let request = &world.requests[at];
        // Where an entry has several orders, one call asks for everybody who waits.
        let for_another = setup.together && (0..at).any(|before| may_call(setup, world, before));
        if may_call(setup, world, at) && !for_another {
            out.push(Action::Call(at));
            if setup.may(Kind::LoseCall) && world.faults_left > 0 && !request.late {
                out.push(Action::Fault(Kind::LoseCall, at, 0));
            }
        }
        let with_another = setup.together && world.requests[..at].iter().any(|before| before.late);
        if request.late && world.script_loaded && !with_another {
            out.push(Action::LateRuns(at));
        }
    }
    if setup.sync != Sync::Always && !is_durable(world) {
        out.push(Action::Fsync);
    }
    if !world.script_loaded {
        out.push(Action::Fence);
    }
    if world.faults_left > 0 && world.script_loaded {
        if setup.may(Kind::RedisCrash) && (setup.blind_rewind || !rewinds_unseen(setup, world)) {
            out.push(Action::Fault(Kind::RedisCrash, 0, 0));
        }
        if setup.may(Kind::RedisWiped) && world.meta.sale != Sale::Missing {
            out.push(Action::Fault(Kind::RedisWiped, 0, 0));
        }
    }
}

/// A buyer calls until there is an answer. A request that Redis forgot while a message of it is on its way is repeated only in
/// searches about that: it becomes two messages under one id.
fn may_call(setup: &Setup, world: &World, at: usize) -> bool {
    let request = &world.requests[at];
    let asks = matches!(request.answered, Answered::Nothing | Answered::Unknown) && world.script_loaded;
    let clean = request.kept.ledger > 0 || !request.survives() || repeats::may_repeat(setup, world);
    asks && clean && answer(setup, world, at) != Answer::NotNow
}

fn answer(setup: &Setup, world: &World, at: usize) -> Answer {
    let known = world.requests[at].kept.ledger > 0 && !setup.lacks(Mutation::ScriptNotIdempotent);
    match world.meta.sale {
        Sale::Missing => Answer::NotNow,
        Sale::Open | Sale::Frozen if known => Answer::Accepted,
        Sale::Frozen => Answer::NotNow,
        Sale::Open if bought_before(setup, world, at) || world.meta.stock < 1 => Answer::Refused,
        Sale::Open => Answer::Accepted,
    }
}

/// Whether the buyers hash has this buyer: by the script itself, or by a rebuild, which counts orders only.
fn bought_before(setup: &Setup, world: &World, at: usize) -> bool {
    let counts = |r: &Request| r.kept.ledger == world.meta.epoch || (r.kept.ledger > 0 && r.outcome != FAILED);
    let mut others = world.requests.iter().enumerate().filter(|(other, _)| *other != at);
    setup.one_buyer && !setup.dedup_lost && others.any(|(_, r)| counts(r))
}

/// The script: an accept is stock, number, ledger record and outbox entry in one step; a replay changes nothing.
fn run_script(setup: &Setup, world: &mut World, at: usize) -> Answer {
    let answer = answer(setup, world, at);
    let replay = world.requests[at].kept.ledger > 0 && !setup.lacks(Mutation::ScriptNotIdempotent);
    if answer != Answer::Accepted || replay {
        return answer;
    }
    world.meta.stock -= 1;
    world.meta.number += 1;
    let request = &mut world.requests[at];
    request.kept.ledger = world.meta.epoch;
    if request.kept.entry == Entry::None {
        request.kept.entry = Entry::New;
    }
    (request.epoch, request.number) = (world.meta.epoch, world.meta.number);
    request.journey.get_or_insert(Journey::P2(P2Reserve::Reserved));
    answer
}

pub fn call(setup: &Setup, world: &mut World, at: usize) {
    let before = world.meta.number;
    for at in callers(setup, world, at) {
        call_one(setup, world, at);
    }
    share_an_entry(setup, world, before);
}

/// Whom one call asks for.
fn callers(setup: &Setup, world: &World, at: usize) -> Vec<usize> {
    let together = |other: &usize| *other == at || (setup.together && may_call(setup, world, *other));
    (0..REQUESTS).filter(together).collect()
}

/// What one call has accepted is one entry.
fn share_an_entry(setup: &Setup, world: &mut World, before: u8) {
    let now = world.meta;
    for request in world.requests.iter_mut().filter(|r| setup.together && r.epoch == now.epoch && r.number > before) {
        request.entry_of = before + 1;
    }
}

fn call_one(setup: &Setup, world: &mut World, at: usize) {
    let is_new = answer(setup, world, at) == Answer::Accepted;
    let at = if is_new { repeats::place(setup, world, at) } else { at };
    let answered = match run_script(setup, world, at) {
        Answer::Accepted if setup.sync == Sync::BeforeAnswer && !is_durable(world) => Answered::Waiting,
        Answer::Accepted => Answered::Accepted,
        Answer::Refused => Answered::Refused,
        Answer::NotNow => Answered::Unknown,
    };
    world.requests[at].answered = answered;
}

/// The API stops waiting; the call runs now, later or never.
pub fn lose_call(setup: &Setup, world: &mut World, at: usize) {
    for at in callers(setup, world, at) {
        world.requests[at].answered = Answered::Unknown;
        world.requests[at].late = true;
    }
}

pub fn late_runs(setup: &Setup, world: &mut World, at: usize) {
    let before = world.meta.number;
    for at in (0..REQUESTS)
        .filter(|other| *other == at || (setup.together && world.requests[*other].late))
        .collect::<Vec<_>>()
    {
        run_script(setup, world, at);
        world.requests[at].late = false;
    }
    share_an_entry(setup, world, before);
}

fn is_durable(world: &World) -> bool {
    world.meta == world.durable && world.requests.iter().all(|r| r.kept == r.durable)
}

pub fn fsync(world: &mut World) {
    world.durable = world.meta;
    for request in &mut world.requests {
        request.durable = request.kept;
        if request.answered == Answered::Waiting {
            request.answered = Answered::Accepted;
        }
    }
}

/// Whether a crash now would lose an accept that lives on elsewhere, and nothing that the database decided would show it.
fn rewinds_unseen(setup: &Setup, world: &World) -> bool {
    if setup.sync == Sync::Always {
        return false;
    }
    let lost = |r: &Request| {
        let elsewhere = r.outcome > 0 || r.is_queued() || r.mq_dlq || r.in_hand();
        r.kept.ledger > 0 && r.durable.ledger == 0 && elsewhere
    };
    let seen = world.durable.epoch != world.db_epoch || world.highest_number() > world.durable.number;
    world.requests.iter().any(lost) && !seen
}

/// Redis restarts: whatever was not durable is gone, and so is the script.
pub fn crash(setup: &Setup, world: &mut World) {
    let loses = setup.sync != Sync::Always && !is_durable(world);
    for request in &mut world.requests {
        request.late = false;
        if setup.sync != Sync::Always {
            request.kept = request.durable;
        }
        if request.answered == Answered::Waiting {
            request.answered = Answered::Unknown;
        }
    }
    if setup.sync != Sync::Always {
        world.meta = world.durable;
    }
    world.script_loaded = setup.lacks(Mutation::NoFence);
    if loses {
        world.lost_data();
    }
}

/// Redis comes back without its data.
pub fn wipe(world: &mut World) {
    for request in &mut world.requests {
        request.late = false;
        request.kept = Kept::default();
    }
    world.meta = Meta { sale: Sale::Missing, ..Meta::default() };
    world.script_loaded = false;
    world.lost_data();
}

/// The comparison before the script is loaded again.
pub fn fence(world: &mut World) {
    let behind = world.meta.epoch != world.db_epoch || world.meta.number < world.highest_number();
    if world.meta.sale == Sale::Open && behind {
        world.meta.sale = Sale::Frozen;
    }
    world.script_loaded = true;
}
