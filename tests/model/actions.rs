//! What can happen next, and the dispatch to what it does. Every action is one atomic step of one server or one process; a
//! crash can come between any two.

use crate::books::{Attempt, Giver};
use crate::operator::{self, Act};
use crate::properties::{LAWS, SIGHTS};
use crate::relay::Sent;
use crate::search::Searched;
use crate::setup::{Kind, Setup};
use crate::state::World;
use crate::{giver, persist, properties, rebuild, reconcile, relay, repeats, reserve, short};
use seckill::domain::states::State as Journey;
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// A step; the numbers are a request, then a relay or consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Call(usize),
    LateRuns(usize),
    Fsync,
    Fence,
    Read(usize, usize),
    Publish(usize, usize),
    Confirm(usize, usize),
    /// The relay goes on with what it holds.
    Relay(usize, usize),
    /// A request's message with a number of attempts, to a consumer.
    Deliver(usize, usize, usize),
    /// The consumer goes on with what it holds.
    Consumer(usize, usize),
    Expire(usize),
    Audit(usize),
    Compensate(usize),
    /// The next step of this leader's rebuild.
    Rebuild(usize),
    Freeze,
    Trim(usize),
    /// P5 closes a number that its request is not decided under.
    CloseNumber(usize),
    CleanDlq(usize),
    GiverReads(usize),
    Giver,
    /// The short way from the outbox to the database.
    Send(usize),
    Persist(usize),
    Act(Act, usize),
    /// An audit counts Redis.
    Count,
    Backup,
    /// Costs one of the faults that are left.
    Fault(Kind, usize, usize),
}

/// Everything the system does by itself, and every fault that may still happen.
fn all(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    reserve::actions(setup, world, out);
    if setup.short {
        short::actions(setup, world, out);
    } else {
        relay::actions(setup, world, out);
        persist::actions(setup, world, out);
    }
    reconcile::actions(setup, world, out);
    repeats::actions(setup, world, out);
    rebuild::actions(setup, world, out);
    giver::actions(setup, world, out);
}

/// Whether nothing happens any more unless a fault does.
pub fn is_quiet(setup: &Setup, world: &World) -> bool {
    let mut out = Vec::new();
    all(setup, &World { faults_left: 0, ..*world }, &mut out);
    out.is_empty()
}

/// States of the transition table that requests came to in searches without a mutation.
pub static REACHED: Mutex<BTreeSet<Journey>> = Mutex::new(BTreeSet::new());

fn remember(before: &World, after: &World) {
    for (before, after) in before.requests.iter().zip(&after.requests) {
        if let Some(to) = after.journey.filter(|_| before.journey != after.journey) {
            REACHED.lock().unwrap().insert(to);
        }
    }
}

fn apply(setup: &Setup, world: &mut World, action: Action) {
    match action {
        Action::Call(at) => reserve::call(setup, world, at),
        Action::LateRuns(at) => reserve::late_runs(setup, world, at),
        Action::Fsync => reserve::fsync(world),
        Action::Fence => reserve::fence(world),
        Action::Read(at, k) => relay::read(world, at, k),
        Action::Publish(at, k) => relay::publish(setup, world, (at, k), Sent::Stored),
        Action::Confirm(at, k) => relay::confirm(world, at, k),
        Action::Relay(at, k) => relay::go_on(setup, world, at, k),
        Action::Deliver(at, attempts, k) => persist::deliver(world, at, attempts, k),
        Action::Consumer(at, k) => persist::go_on(setup, world, at, k),
        Action::Expire(at) => persist::expire(setup, world, at),
        Action::Audit(at) => reconcile::audit(world, at),
        Action::Compensate(at) => reconcile::compensate(setup, world, at),
        Action::Rebuild(k) => rebuild::go_on(setup, world, k),
        Action::Freeze => rebuild::freeze(world),
        Action::Trim(at) => reconcile::trim(world, at),
        Action::CloseNumber(at) => repeats::close_number(setup, world, at),
        Action::CleanDlq(at) => repeats::clean_dlq(world, at),
        Action::GiverReads(at) => giver::read(world, at),
        Action::Giver => giver::go_on(setup, world),
        Action::Send(at) => short::send(world, at),
        Action::Persist(at) => short::persist(setup, world, at),
        Action::Act(act, at) => operator::act(setup, world, act, at),
        Action::Count => operator::count(world),
        Action::Backup => operator::back_up(world),
        Action::Fault(kind, at, k) => {
            world.faults_left -= 1;
            strike(setup, world, kind, (at, k));
        }
    }
}

fn strike(setup: &Setup, world: &mut World, kind: Kind, (at, k): (usize, usize)) {
    match kind {
        Kind::LoseCall => reserve::lose_call(setup, world, at),
        Kind::RelayCrash => relay::forget(setup, world, k),
        Kind::RelayDies => {
            relay::forget(setup, world, k);
            world.relay_lives[k] = false;
        }
        Kind::PublishLost => relay::publish(setup, world, (at, k), Sent::Lost),
        Kind::Returned => relay::publish(setup, world, (at, k), Sent::Returned),
        Kind::ConfirmLost => relay::fail(world, at, k),
        Kind::DoubleClaim => relay::read(world, at, k),
        Kind::ConsumerCrash => persist::consumer_crash(setup, world, at, k),
        Kind::ConsumerCutOff => persist::cut_off(world, k),
        Kind::SystemError if setup.short => short::park(world, at),
        Kind::SystemError => persist::system_error(setup, world, (at, k), false),
        Kind::UnknownCommit => persist::system_error(setup, world, (at, k), true),
        Kind::BrokerLosesData => persist::broker_loses_data(world),
        Kind::RedisCrash => reserve::crash(setup, world),
        Kind::RedisWiped => reserve::wipe(world),
        Kind::GiveUp => reconcile::give_up(world, at),
        Kind::GiverCrash => world.books.giver = Giver::Idle,
        Kind::LeaderCrash => world.books.leaders[k] = Attempt::default(),
        Kind::SecondLeader => rebuild::go_on(setup, world, k),
        Kind::DatabaseGoesBack => operator::database_goes_back(world),
    }
}

impl Setup {
    /// What comes of an action, with everybody in the place where they were: a search puts them in order, a player must not.
    pub fn step(&self, world: &World, action: Action) -> World {
        let mut next = *world;
        apply(self, &mut next, action);
        next
    }
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.start()]
    }

    fn actions(&self, world: &World, out: &mut Vec<Action>) {
        all(self, world, out);
        operator::actions(self, world, out);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = self.step(world, action);
        if self.mutation.is_none() {
            remember(world, &next);
        }
        Some(next.in_order())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Searched for Setup {
    const LAWS: &'static [(&'static str, &'static str)] = &LAWS;
    const SIGHTS: &'static [(&'static str, &'static str)] = &SIGHTS;

    fn name(action: &Action) -> String {
        if let Action::Fault(kind, ..) = action {
            return format!("**{kind:?}**");
        }
        if let Action::Act(act, _) = action {
            return format!("{act:?}");
        }
        format!("{action:?}").split('(').next().unwrap_or_default().to_owned()
    }
}
