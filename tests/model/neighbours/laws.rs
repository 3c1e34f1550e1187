//! What must always hold of two sales, and what their searches must have seen to be worth anything.

use super::setup::NeighboursSetup;
use super::state::{BUSY, Bought, CHECKS, Check, Lock, Place, QUIET, Shared};
use super::steps::is_quiet;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 3] = [
    (
        "N1",
        "when nothing happens any more, the quiet sale sells and each of its requests of which anything is left is decided, \
         although another session holds the busy sale's row for ever; and the busy one's, too, where its row is free",
    ),
    ("N2", "a rebuild opens the quiet sale only when nothing of it is on its way"),
    ("N3", "no request of the quiet sale loses a try through the busy one"),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 5] = [
    ("rebuilt beside a locked row", "the quiet sale is rebuilt while a message of the busy one is sent back and back"),
    ("one group", "a consumer has orders of both sales, and the busy one's row is locked"),
    ("sent back", "a message of the quiet sale waits in the retry queue while its sale is rebuilt"),
    ("moved", "a message of the quiet sale leaves the retry queue while the queues are searched"),
    ("tried again", "a sale that was left alone is tried again"),
];

pub fn all() -> Vec<Property<NeighboursSetup>> {
    let [n1, n2, n3] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4, s5] = SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(n1, |setup, shared: &Shared| {
            // What only the MQ DLQ has is a person's to replay.
            let parked = |request: &Bought| request.place == Place::Parked && !request.is_known;
            let is_done =
                |request: &Bought| matches!(request.place, Place::Decided | Place::Nowhere) || parked(request);
            let quiet = shared.is_open && shared.of(QUIET).all(is_done);
            let busy = shared.is_locked || shared.of(BUSY).all(is_done);
            (quiet && busy) || !is_quiet(setup, shared)
        }),
        Property::always(n2, |_, shared: &Shared| !shared.opened_early),
        Property::always(n3, |_, shared: &Shared| !shared.blamed),
        Property::sometimes(s1, |_, shared: &Shared| {
            shared.rebuilt && shared.is_locked && shared.of(BUSY).any(|request| request.place == Place::Retry)
        }),
        Property::sometimes(s2, |_, shared: &Shared| {
            let both = |consumer| [QUIET, BUSY].iter().all(|sale| shared.group(consumer).any(|(of, _)| of == *sale));
            shared.is_locked && (both(0) || both(1))
        }),
        Property::sometimes(s3, |_, shared: &Shared| {
            !shared.is_open && shared.of(QUIET).any(|request| request.place == Place::Retry)
        }),
        Property::sometimes(s4, |_, shared: &Shared| {
            let searching = CHECKS[usize::from(shared.check)] == Check::RetryQueue;
            searching && shared.of(QUIET).any(|request| request.has_moved && request.attempts > 0)
        }),
        Property::sometimes(s5, |_, shared: &Shared| shared.lock == Lock::ToBeTried),
    ]
}
