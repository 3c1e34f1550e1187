//! The equations: the bridge as it truly is, and as an audit computes it from what it can see (`src/p5_reconcile/audit`).

use crate::books::{Count, Refusal};
use crate::setup::{Mutation, Setup};
use crate::state::{Meta, ORDER, Request, Sale, World};

/// `D - (R + U + P + X + W)` as it is. It knows of accepted requests that Redis has forgotten, and in which units of Redis a
/// grant really is.
pub fn true_difference(world: &World) -> i8 {
    let under_way = |r: &&Request| r.journey.is_some() && r.outcome == 0 && !r.decided.closed && r.survives();
    let grants = world.books.rows.grants.iter().zip(world.meta.offered);
    let pending: i8 = grants.filter(|(_, offered)| *offered == 0).map(|(grant, _)| grant.units).sum();
    let held = held_back(world) + world.books.rows.written_off;
    world.db_stock - (world.meta.stock + count(world, under_way) + pending + held)
}

/// X.
pub fn held_back(world: &World) -> i8 {
    count(world, |r| r.is_held_back())
}

pub fn count(world: &World, which: impl Fn(&&Request) -> bool) -> i8 {
    i8::try_from(world.requests.iter().filter(which).count()).unwrap_or(i8::MAX)
}

/// What one reading of Redis counts, and what the database said just before.
pub fn read(world: &World) -> Count {
    let Meta { epoch, number, stock, granted, ids, .. } = world.meta;
    let marked = world.books.rows.grants.iter().enumerate().filter(|(_, grant)| grant.marked && grant.epoch == epoch);
    let marked = marked.map(|(at, _)| 1 << at).sum();
    Count { epoch, number, stock, granted, ids, marked, highest: world.highest_number() }
}

/// Whether an audit at this moment has no finding.
pub fn is_consistent(setup: &Setup, world: &World) -> bool {
    let seen = read(world);
    world.meta.sale == Sale::Open
        && seen.epoch == world.db_epoch
        && balances(setup, world, seen)
        && is_complete(setup, world, seen)
}

/// The bridge with what was counted in Redis before, and the database as it is now.
pub fn balances(setup: &Setup, world: &World, seen: Count) -> bool {
    let bridge = setup.lacks(Mutation::NoUnitBridge) || seen_difference(setup, world, seen) == 0;
    // A grant that was marked before Redis was counted is not given any more: Redis has it, or has lost it.
    bridge && (setup.lacks(Mutation::MarksNotCompared) || seen.marked & !seen.ids == 0)
}

/// P, grant by grant. As a difference of two sums it would hide what Redis has without a grant: each unit more in R
/// would be one less in P.
fn pending(setup: &Setup, world: &World, seen: Count) -> i8 {
    let rows = &world.books.rows;
    let of_epoch = rows.grants.iter().enumerate().filter(|(_, grant)| grant.epoch == seen.epoch);
    if setup.lacks(Mutation::GrantsAreSummed) {
        return rows.base + of_epoch.map(|(_, grant)| grant.units).sum::<i8>() - seen.granted;
    }
    of_epoch.filter(|(at, _)| seen.ids & (1 << at) == 0).map(|(_, grant)| grant.units).sum()
}

fn seen_difference(setup: &Setup, world: &World, seen: Count) -> i8 {
    let here = |r: &Request| r.epoch == seen.epoch;
    let above = |r: &Request| here(r) && r.number > seen.number;
    // Cancelled ones too: the unit of one that came and went since the count is in its grant already.
    let stands = |r: &Request| setup.lacks(Mutation::CancelledNotAbove) && r.decided.cancelled;
    let ordered_above = count(world, |r| r.outcome == ORDER && above(r) && !stands(r));
    // Reclaimed ones too, for the same reason.
    let gone = |r: &Request| setup.lacks(Mutation::ReclaimedNotAbove) && r.decided.reclaimed;
    let failed_above = count(world, |r| r.decided.refusal == Refusal::TookUnit && above(r) && !gone(r));
    let all_epochs = !setup.lacks(Mutation::OldFailuresLost);
    let held = count(world, |r| r.is_held_back() && (all_epochs || here(r))) - failed_above;
    let undecided = count(world, |r| r.kept.ledger > 0 && r.outcome == 0 && !r.decided.closed && !above(r));
    let pending = pending(setup, world, seen);
    world.db_stock + ordered_above - (seen.stock + undecided + pending + held + world.books.rows.written_off)
}

/// `number = outcomes + undecided + gaps` without gaps, and no refusal for lack of units, but for what a person has closed.
pub fn is_complete(setup: &Setup, world: &World, seen: Count) -> bool {
    let refused = |r: &Request| matches!(r.decided.refusal, Refusal::NoUnit | Refusal::NumberReused);
    if world.requests.iter().any(|r| refused(r) && !r.decided.closed) {
        return false;
    }
    let is_behind = seen.highest > seen.number;
    setup.lacks(Mutation::NoNumberEquation)
        || !is_behind
            && (1..=world.db_epoch).all(|epoch| {
                // Of an epoch that is over, only the database knows how far it came.
                let of_epoch = world.requests.iter().filter(|r| r.epoch == epoch && r.holds_number());
                let decided = of_epoch.map(|r| r.number).max().unwrap_or(0);
                let last = if epoch == seen.epoch { seen.number } else { decided };
                (1..=last)
                    .all(|number| world.requests.iter().any(|r| (r.epoch, r.number) == (epoch, number) && accounts(r)))
            })
}

/// Whether the number of this request is no gap.
fn accounts(request: &Request) -> bool {
    request.holds_number() || request.kept.ledger > 0
}

/// Whether anybody can see that the number of this request is missing: Redis has given a higher one in the same epoch, or the
/// database has decided one, and no request was given the same.
pub fn is_visible_gap(world: &World, request: &Request) -> bool {
    let (epoch, number) = (request.epoch, request.number);
    let in_redis = world.meta.sale != Sale::Missing && epoch == world.meta.epoch && number <= world.meta.number;
    let mut others = world.requests.iter().filter(|other| *other != request && other.epoch == epoch);
    let reused = others.clone().any(|other| other.number == number && accounts(other));
    let in_database = others.any(|other| other.number > number && other.holds_number());
    request.journey.is_some() && !accounts(request) && !reused && (in_redis || in_database)
}
