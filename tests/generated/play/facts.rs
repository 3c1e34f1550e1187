//! What both sides can say of one moment, in words: the model of its world, the servers of what is in them. Two moments are the
//! same when all facts are.

use crate::books::{GRANTS, Refusal};
use crate::state::{ATTEMPTS_MAX, Answered, Entry, FAILED, Meta, ORDER, REQUESTS, Sale, World};
use std::collections::BTreeMap;

/// Facts by name.
pub type Facts = BTreeMap<String, String>;

/// What the model says. What it does not keep, because it makes no difference there, is left out.
pub fn of_world(world: &World) -> Facts {
    let mut facts = Facts::new();
    let mut note = |name: &str, value: String| {
        facts.insert(name.to_owned(), value);
    };
    let Meta { sale, epoch, number, stock, granted, ids, building, .. } = world.meta;
    let is_there = sale != Sale::Missing;
    note("redis: sale", format!("{sale:?}").to_lowercase());
    if is_there {
        note("redis: epoch", epoch.to_string());
        note("redis: number", number.to_string());
        note("redis: stock", stock.to_string());
        note("redis: granted", granted.to_string());
        note("redis: building", building.to_string());
        for grant in (0..GRANTS).filter(|grant| usize::from(world.books.made) > *grant) {
            note(&format!("redis: has grant {grant}"), (ids >> grant & 1 == 1).to_string());
        }
    }
    note("redis: script", world.script_loaded.to_string());
    note("database: stock", world.db_stock.to_string());
    note("database: epoch", world.db_epoch.to_string());
    note("database: granted", world.books.rows.granted.to_string());
    for (at, grant) in world.books.rows.grants.iter().enumerate().filter(|(_, grant)| grant.units > 0) {
        note(&format!("database: grant {at}"), grant_said(grant.units.into(), grant.epoch.into(), grant.marked));
    }
    let (mut waiting, mut retried) = (0, 0);
    for (at, request) in world.requests.iter().enumerate() {
        let of_messages = |attempts: usize| attempts > 0 || world.leads_entry(at);
        let counted = (0..usize::from(ATTEMPTS_MAX)).filter(|attempts| of_messages(*attempts));
        waiting += counted.map(|attempts| u32::from(request.queue[attempts])).sum::<u32>();
        retried += request.retry.iter().map(|copies| u32::from(*copies)).sum::<u32>();
    }
    note("broker: waiting", waiting.to_string());
    note("broker: to be retried", retried.to_string());
    for at in (0..REQUESTS).filter(|at| world.requests[*at].answered != Answered::Absent) {
        of_request(world, at, &mut facts);
    }
    facts
}

fn of_request(world: &World, at: usize, facts: &mut Facts) {
    let request = &world.requests[at];
    let mut note = |name: &str, value: String| {
        facts.insert(format!("request {at}: {name}"), value);
    };
    if request.kept.ledger > 0 {
        let number = if request.decided.refusal == Refusal::NumberReused { 0 } else { request.number };
        note("ledger", format!("epoch {}, number {number}", request.kept.ledger));
    }
    match request.kept.entry {
        Entry::None => {}
        Entry::New => note("entry", "new".to_owned()),
        Entry::Pending(relay) => note("entry", format!("of relay {relay}")),
        Entry::Orphan => note("entry", "of no relay".to_owned()),
    }
    if request.kept.entry != Entry::None && request.kept.attempts > 0 {
        note("attempts", request.kept.attempts.to_string());
    }
    if request.kept.parked {
        note("relay dlq", "yes".to_owned());
    }
    if request.mq_dlq {
        note("mq dlq", "yes".to_owned());
    }
    if request.outcome & ORDER > 0 {
        note("outcome", "order".to_owned());
    } else if request.outcome & FAILED > 0 {
        note("outcome", format!("{:?}", request.decided.refusal));
    }
    if request.orders > 0 {
        note("orders", request.orders.to_string());
    }
    if request.decided.cancelled {
        note("cancelled", "yes".to_owned());
    }
    if request.decided.reclaimed {
        note("reclaimed", "yes".to_owned());
    }
}

/// A grant. The snapshot of a rebuild counts those that it marks to the epoch before; what the epoch of a marked one is makes no
/// difference to the model.
pub fn grant_said(units: i64, epoch: i64, is_marked: bool) -> String {
    if is_marked { format!("{units}, marked") } else { format!("{units} in {epoch}") }
}

/// What the servers say of a grant that the database has marked and whose id Redis has without units: a rebuild has counted it. The
/// product writes the ids of all that were marked since its attempt began, the model only of those that were open; no giver can
/// have read the others in this epoch.
pub const COUNTED: &str = "counted";

/// The facts that differ, the model's first.
pub fn difference(model: &Facts, real: &Facts) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = model.keys().chain(real.keys()).collect();
    let said = |facts: &Facts, name: &str| facts.get(name).cloned().unwrap_or_else(|| "-".to_owned());
    let is_counted = |name: &str| real.get(name).is_some_and(|said| said == COUNTED) && model.contains_key(name);
    let differ = names.into_iter().filter(|name| model.get(*name) != real.get(*name) && !is_counted(name));
    differ.map(|name| format!("{name}: model {}, real {}", said(model, name), said(real, name))).collect()
}
