//! What can happen next to a drop. Every step is one script, one transaction, or one step of the relay or of a rebuild.

use super::setup::{DropFault, DropsSetup, Unlimited, Wish};
use super::state::{DropMoment, KEYS, Place, REQUESTS, Requested, SALES, SaleKeys, Saved, Sells};

/// A step; the number is a request or a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropStep {
    Accepts(usize),
    /// Another sale of the drop is frozen or lost: refused, and asked again later.
    Waits(usize),
    Relays(usize),
    Persists(usize),
    GivesBack(usize),
    Begins(usize),
    Loads(usize),
    Opens(usize),
    /// In Redis, as the database says.
    Closes(usize),
    Archives(usize),
    /// What Redis has by now survives a restart.
    Saves,
    Cancels(usize),
    Replays(usize),
    /// The drop is closed in the database, by one statement.
    Ends(usize),
    /// Costs one of the faults that are left.
    Fault(DropFault, usize),
}

/// Whether nothing happens any more unless a person, the clock or a fault does something.
pub fn is_quiet(setup: &DropsSetup, moment: &DropMoment) -> bool {
    let mut out = Vec::new();
    by_itself(setup, moment, &mut out);
    out.is_empty()
}

pub fn by_itself(setup: &DropsSetup, moment: &DropMoment, out: &mut Vec<DropStep>) {
    for at in 0..REQUESTS {
        let Some(wish) = setup.wishes[at] else { continue };
        match moment.requests[at].place {
            Place::Nowhere => match decision(setup, moment, wish) {
                Decision::Accepted => out.push(DropStep::Accepts(at)),
                Decision::Refused | Decision::Waits => {}
            },
            Place::Outbox => out.push(DropStep::Relays(at)),
            Place::Queue => out.push(DropStep::Persists(at)),
            // Never into frozen keys.
            Place::Returning if matches!(moment.sales[wish.sale].sells, Sells::Open | Sells::Closed) => {
                out.push(DropStep::GivesBack(at));
            }
            Place::Parked | Place::Ordered | Place::Returning | Place::Returned | Place::Refused | Place::Lost => {}
        }
    }
    for sale in 0..SALES {
        upkeep(setup, moment, sale, out);
    }
}

/// Rebuild, close and archive.
fn upkeep(setup: &DropsSetup, moment: &DropMoment, sale: usize, out: &mut Vec<DropStep>) {
    let on_their_way = moment.wished(setup).any(|(wish, request)| wish.sale == sale && request.place.is_on_its_way());
    let SaleKeys { sells, has_buyers, .. } = moment.sales[sale];
    match sells {
        Sells::Archived => {}
        Sells::Closed if !on_their_way => out.push(DropStep::Archives(sale)),
        Sells::Closed => {}
        // A sale that is closed is not made again from the database.
        _ if moment.is_over[sale] => out.push(DropStep::Closes(sale)),
        Sells::Frozen => out.push(DropStep::Begins(sale)),
        Sells::Open if !has_buyers => out.push(DropStep::Begins(sale)),
        Sells::Begun if !on_their_way || setup.lacks(Unlimited::RebuildWaits) => out.push(DropStep::Loads(sale)),
        Sells::Loaded => out.push(DropStep::Opens(sale)),
        Sells::Open | Sells::Begun => {}
    }
}

pub fn by_chance(setup: &DropsSetup, moment: &DropMoment, out: &mut Vec<DropStep>) {
    if moment.saved.is_none() && setup.kinds.contains(&DropFault::RedisRewinds) {
        out.push(DropStep::Saves);
    }
    for at in 0..REQUESTS {
        let Some(wish) = setup.wishes[at] else { continue };
        match moment.requests[at].place {
            Place::Nowhere if !moment.waited && decision(setup, moment, wish) == Decision::Waits => {
                out.push(DropStep::Waits(at));
            }
            Place::Ordered if setup.returns => out.push(DropStep::Cancels(at)),
            Place::Parked => out.push(DropStep::Replays(at)),
            Place::Nowhere
            | Place::Outbox
            | Place::Queue
            | Place::Ordered
            | Place::Returning
            | Place::Returned
            | Place::Refused
            | Place::Lost => {}
        }
    }
    for sale in 0..SALES {
        if setup.closes && !moment.is_over[sale] && (sale == 0 || setup.lacks(Unlimited::ClosedTogether)) {
            out.push(DropStep::Ends(sale));
        }
    }
}

pub fn faults(setup: &DropsSetup, moment: &DropMoment, out: &mut Vec<DropStep>) {
    let mut fault = |happens: bool, kind, at| {
        if happens && moment.faults_left > 0 && setup.kinds.contains(&kind) {
            out.push(DropStep::Fault(kind, at));
        }
    };
    fault(moment.saved.is_some(), DropFault::RedisRewinds, 0);
    for (sale, keys) in moment.sales.iter().enumerate() {
        fault(keys.has_buyers && keys.sells != Sells::Archived, DropFault::KeyIsLost, sale);
    }
    for (at, request) in moment.requests.iter().enumerate() {
        fault(request.place == Place::Queue, DropFault::MessageIsParked, at);
    }
}

/// What the script says to a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Accepted,
    /// The limit, or its own sale is not open.
    Refused,
    /// Another sale of the drop is not whole.
    Waits,
}

/// `lua/reserve.lua`.
pub fn decision(setup: &DropsSetup, moment: &DropMoment, wish: Wish) -> Decision {
    let (own, other) = (moment.sales[wish.sale], moment.sales[1 - wish.sale]);
    let key = setup.key(wish.account);
    if own.sells != Sells::Open || !own.has_buyers {
        return Decision::Refused;
    }
    if setup.lacks(Unlimited::OthersCounted) {
        return if own.owned[key] < setup.limit { Decision::Accepted } else { Decision::Refused };
    }
    // The sales of a drop are closed together, so this one is over, too.
    if other.sells == Sells::Closed {
        return Decision::Refused;
    }
    let is_frozen =
        matches!(other.sells, Sells::Frozen | Sells::Begun | Sells::Loaded) && !setup.lacks(Unlimited::OthersState);
    // An archived sale has no keys: it cannot be distinguished from a lost one.
    let is_lost = !other.has_buyers && !setup.lacks(Unlimited::OthersMark);
    if is_frozen || is_lost {
        return Decision::Waits;
    }
    if own.owned[key] + other.owned[key] < setup.limit { Decision::Accepted } else { Decision::Refused }
}

pub fn apply(setup: &DropsSetup, moment: &mut DropMoment, step: DropStep) {
    match step {
        DropStep::Accepts(at) => accept(setup, moment, at),
        DropStep::Waits(_) => moment.waited = true,
        DropStep::Relays(at) => moment.requests[at].place = Place::Queue,
        DropStep::Persists(at) => persist(setup, moment, at),
        DropStep::Cancels(at) => {
            moment.requests[at].place = Place::Returning;
            if let Some(key) = key(setup, at).filter(|_| !setup.lacks(Unlimited::ReturnsToDrop)) {
                moment.noted[key] -= 1;
            }
        }
        DropStep::GivesBack(at) => {
            moment.requests[at].place = Place::Returned;
            if let (Some(wish), Some(key)) = (setup.wishes[at], key(setup, at)) {
                let owned = &mut moment.sales[wish.sale].owned[key];
                *owned = owned.saturating_sub(1);
            }
        }
        DropStep::Begins(sale) => {
            moment.sales[sale] = SaleKeys { sells: Sells::Begun, has_buyers: true, owned: [0; KEYS] };
        }
        DropStep::Loads(sale) => load(setup, moment, sale),
        DropStep::Opens(sale) => moment.sales[sale].sells = Sells::Open,
        DropStep::Closes(sale) => moment.sales[sale].sells = Sells::Closed,
        DropStep::Archives(sale) => {
            moment.sales[sale] = SaleKeys { sells: Sells::Archived, has_buyers: false, owned: [0; KEYS] };
        }
        DropStep::Saves => {
            let in_outbox = moment.requests.map(|request| request.place == Place::Outbox);
            moment.saved = Some(Saved { sales: moment.sales, in_outbox });
        }
        DropStep::Replays(at) => moment.requests[at].place = Place::Queue,
        DropStep::Ends(sale) if setup.lacks(Unlimited::ClosedTogether) => moment.is_over[sale] = true,
        DropStep::Ends(_) => moment.is_over = [true; SALES],
        DropStep::Fault(kind, at) => {
            moment.faults_left -= 1;
            happen(moment, kind, at);
        }
    }
}

fn key(setup: &DropsSetup, at: usize) -> Option<usize> {
    setup.wishes[at].map(|wish| setup.key(wish.account))
}

fn accept(setup: &DropsSetup, moment: &mut DropMoment, at: usize) {
    let (Some(wish), Some(key)) = (setup.wishes[at], key(setup, at)) else { return };
    // What a rebuild could not know of does not count here: the database refuses the one that comes second.
    let counts = moment
        .requests
        .iter()
        .filter(|request| !request.was_parked && (request.place == Place::Ordered || request.place.is_on_its_way()));
    moment.over |= counts.count() >= usize::from(setup.limit);
    let is_returned_elsewhere =
        |(of, request): (Wish, &Requested)| of.sale != wish.sale && request.place == Place::Returned;
    let bought_again = moment.wished(setup).any(is_returned_elsewhere);
    moment.bought_again |= bought_again;
    moment.sales[wish.sale].owned[key] += 1;
    moment.requests[at].place = Place::Outbox;
}

/// One transaction. Its rows of `purchases` and `drop_purchases` are locked, so two of them come one after the other.
fn persist(setup: &DropsSetup, moment: &mut DropMoment, at: usize) {
    let (Some(wish), Some(key)) = (setup.wishes[at], key(setup, at)) else { return };
    let in_sale = moment.ordered_of(setup, Some(wish.sale), key) < setup.limit;
    let in_drop = moment.noted[key] < setup.limit || setup.lacks(Unlimited::DropGuard);
    if in_sale && in_drop {
        moment.noted[key] += 1;
        moment.requests[at].place = Place::Ordered;
    } else {
        moment.guarded = true;
        moment.requests[at].place = Place::Refused;
    }
}

/// From the database; grants that give units back are among what it reads.
fn load(setup: &DropsSetup, moment: &mut DropMoment, sale: usize) {
    let mut owned = [0; KEYS];
    for (key, units) in owned.iter_mut().enumerate() {
        *units = moment.ordered_of(setup, Some(sale), key);
    }
    for (wish, request) in setup.wishes.iter().zip(&mut moment.requests) {
        if wish.is_some_and(|wish| wish.sale == sale) && request.place == Place::Returning {
            request.place = Place::Returned;
        }
    }
    moment.sales[sale] = SaleKeys { sells: Sells::Loaded, has_buyers: true, owned };
}

fn happen(moment: &mut DropMoment, kind: DropFault, at: usize) {
    match kind {
        DropFault::RedisRewinds => {
            let Some(saved) = moment.saved.take() else { return };
            for (request, was_there) in moment.requests.iter_mut().zip(saved.in_outbox) {
                if request.place == Place::Outbox && !was_there {
                    request.place = Place::Lost;
                }
            }
            moment.sales = saved.sales.map(|sale| match sale.sells {
                Sells::Archived => sale,
                Sells::Open | Sells::Frozen | Sells::Begun | Sells::Loaded | Sells::Closed => {
                    SaleKeys { sells: Sells::Frozen, ..sale }
                }
            });
        }
        DropFault::KeyIsLost => {
            let keys = &mut moment.sales[at];
            (keys.has_buyers, keys.owned) = (false, [0; KEYS]);
        }
        DropFault::MessageIsParked => {
            moment.requests[at].place = Place::Parked;
            moment.requests[at].was_parked = true;
        }
    }
}
