//! What must hold of the books in every state, and what a search about them must have seen.

use crate::actions::is_quiet;
use crate::books::{GRANTS, Stage};
use crate::setup::Setup;
use crate::sheet;
use crate::state::{Answered, Request, World};

/// P9.
pub fn bridge(_: &Setup, world: &World) -> bool {
    !world.is_whole() || sheet::true_difference(world) == world.books.off
}

/// P10.
pub fn grants_once(setup: &Setup, world: &World) -> bool {
    let twice = world.meta.offered.iter().any(|times| *times > 1);
    !twice && (grants_are_given(world) || !is_quiet(setup, world))
}

fn grants_are_given(world: &World) -> bool {
    (0..GRANTS).all(|at| world.books.rows.grants[at].units == 0 || world.meta.offered[at] == 1)
}

/// P12. What is cheap to see is asked first: this runs in every state.
pub fn no_loss_is_hidden(setup: &Setup, world: &World) -> bool {
    let lost = |r: &Request| r.answered == Answered::Accepted && !r.survives() && sheet::is_visible_gap(world, r);
    let adds_up = || sheet::true_difference(world) == 0 && grants_are_given(world);
    let hidden = world.requests.iter().any(lost) || (!adds_up() && is_quiet(setup, world));
    !hidden || !sheet::is_consistent(setup, world)
}

/// P13. What is off after a loss is a finding by right.
pub fn no_false_alarm(setup: &Setup, world: &World) -> bool {
    let Some(seen) = world.books.count.filter(|seen| world.is_whole() && seen.epoch == world.db_epoch) else {
        return true;
    };
    let units = world.books.off != 0 || sheet::balances(setup, world, seen);
    let numbers = world.books.lossy || sheet::is_complete(setup, world, seen);
    units && numbers
}

pub fn grant_in_a_rebuild(world: &World) -> bool {
    let waits = world.books.rows.grants.iter().any(|grant| grant.units > 0 && !grant.marked);
    waits && world.books.leaders.iter().any(|leader| leader.stage == Stage::Loaded)
}

pub fn sold_again(world: &World) -> bool {
    let offered = world.meta.offered.iter().any(|times| *times > 0);
    offered && world.requests.iter().any(|r| r.decided.cancelled || r.decided.reclaimed)
}

pub fn old_count(world: &World) -> bool {
    let Some(seen) = world.books.count else { return false };
    world.requests.iter().any(|r| r.epoch == seen.epoch && r.number > seen.number && r.holds_number())
}
