//! Who carries grants from the database to Redis (`src/sales/grants.rs`, the api role, the operator's repeat): read the
//! list, `lua/grant.lua`, mark. It may sleep, or die, between any two of these.

use crate::actions::Action;
use crate::books::{GRANTS, Giver};
use crate::setup::{Kind, Mutation, Setup};
use crate::state::{Sale, World, index};

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    let giver = world.books.giver;
    if giver == Giver::Idle {
        // What is read while no process sells or rebuilds would be refused: the keys that come next are of another epoch.
        let rebuilt = world.meta.sale != Sale::Open && world.books.leaders.iter().any(|leader| leader.epoch > 0);
        let sells_or_will = world.is_whole() || rebuilt;
        for at in 0..GRANTS {
            let grant = world.books.rows.grants[at];
            if grant.units > 0 && !grant.marked && grant.epoch == world.db_epoch && sells_or_will {
                out.push(Action::GiverReads(at));
            }
        }
        return;
    }
    out.push(Action::Giver);
    if world.faults_left > 0 && setup.may(Kind::GiverCrash) {
        out.push(Action::Fault(Kind::GiverCrash, 0, 0));
    }
}

pub fn read(world: &mut World, at: usize) {
    let units = world.books.rows.grants[at].units;
    world.books.giver = Giver::Read { grant: index(at), units, epoch: world.db_epoch };
}

pub fn go_on(setup: &Setup, world: &mut World) {
    world.books.giver = match world.books.giver {
        Giver::Idle => Giver::Idle,
        Giver::Read { grant, units, epoch: read } => {
            let epoch = if setup.lacks(Mutation::EpochAfterList) { world.db_epoch } else { read };
            give(setup, world, (grant, units), epoch)
        }
        Giver::Gave(grant) => {
            let row = &mut world.books.rows.grants[usize::from(grant)];
            row.marked |= row.units > 0;
            Giver::Idle
        }
    };
}

/// `grant.lua`: never into frozen keys or another epoch, and each id once.
fn give(setup: &Setup, world: &mut World, (grant, units): (u8, i8), epoch: u8) -> Giver {
    let meta = &mut world.meta;
    let open = meta.sale == Sale::Open || (meta.sale == Sale::Frozen && setup.lacks(Mutation::GrantIntoFrozen));
    if !open || meta.epoch != epoch {
        return Giver::Idle;
    }
    let slot = usize::from(grant);
    if meta.ids & (1 << grant) == 0 {
        meta.ids |= u8::from(!setup.lacks(Mutation::GrantNotKept)) << grant;
        if world.books.rows.grants[slot].units == 0 {
            // The database has forgotten it: these units have no grant.
            world.books.off -= units;
        }
        meta.offered[slot] += 1;
        (meta.stock, meta.granted) = (meta.stock + units, meta.granted + units);
    }
    Giver::Gave(grant)
}
