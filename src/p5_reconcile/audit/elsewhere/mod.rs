//! What an audit knows of requests that are neither settled in Redis nor in the database: which of them are parked, and
//! where overdue ones are.

mod locate;
mod parked;

pub(super) use locate::{RequestLocations, locate};
pub(super) use parked::{ParkedRequests, parked_requests};

/// The places beside the ledger and the books.
#[derive(Debug, Clone, Default)]
pub(super) struct Elsewhere {
    /// The parked requests.
    pub parked: ParkedRequests,
    /// Where undecided requests were found; `None`: not asked for.
    pub locations: Option<RequestLocations>,
}
