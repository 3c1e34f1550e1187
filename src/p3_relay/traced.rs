//! The trace lines of P3, for the checker of test builds (`trace_points`).
//!
//! Input: entries of a relay's window, before something is sent or after its answer. Output: a line for each order. A crash leaves
//! an entry in this relay's pending list, whatever the last line said.

use super::entry::RelayEntry;
use crate::store::redis::Parking;
use crate::trace_points::{is_on, trace_point};

/// A relay has this entry.
pub(super) fn read(relay: &str, entry: &RelayEntry) {
    if is_on() {
        for order in entry.traced_orders() {
            trace_point!(Read, &order, { entry: entry.id, relay: relay, orders: entry.orders });
        }
    }
}

/// These entries are about to be sent as one message.
pub(super) fn publish(entries: &[&RelayEntry]) {
    if is_on() {
        for (entry, order) in
            entries.iter().flat_map(|entry| entry.traced_orders().into_iter().map(move |o| (entry, o)))
        {
            trace_point!(Publish, &order, { entry: entry.id });
        }
    }
}

/// What the broker said of an entry: `CONFIRMED`, `REFUSED`, `RETURNED`; or `NONE` where the connection was given up.
pub(super) fn answer(entry: Option<&RelayEntry>, verdict: &str) {
    let Some(entry) = entry.filter(|_| is_on()) else { return };
    for order in entry.traced_orders() {
        trace_point!(Answer, &order, { entry: entry.id, verdict: verdict });
    }
}

/// The entry is deleted.
pub(super) fn done(entry: &RelayEntry) {
    if is_on() {
        for order in entry.traced_orders() {
            trace_point!(Done, &order, { entry: entry.id });
        }
    }
}

/// An attempt is counted.
pub(super) fn counted(entry: &RelayEntry, attempts: u32) {
    if is_on() {
        for order in entry.traced_orders() {
            trace_point!(Counted, &order, { entry: entry.id, attempts: attempts });
        }
    }
}

/// The entry is about to be parked; with `None` that was answered before.
pub(super) fn parked(entry: &RelayEntry, parking: Option<Parking>) {
    if !is_on() {
        return;
    }
    for order in entry.traced_orders() {
        match parking {
            None => trace_point!(Park, &order, { entry: entry.id }),
            Some(parking) => {
                let verdict = match parking {
                    Parking::Moved => "MOVED",
                    Parking::NotOurs => "NOT_OURS",
                    Parking::Gone => "GONE",
                };
                trace_point!(Parked, &order, { entry: entry.id, verdict: verdict });
            }
        }
    }
}
