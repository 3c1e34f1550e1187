//! The waiting room of a sale that has one: a fair order among the buyers who came, and a pace at which they may buy.
//!
//! Input: buyers who come, and who ask again with their ticket. Output: a place, and once it is released a purchase token.
//! The order and how many places are released are in Redis; a process keeps only a copy of the latter, so a crash leaves
//! nothing behind. A buyer who asks with a ticket costs no server a call.

mod admission_status;
mod arrivals;
mod releaser;
mod rooms;
mod tickets;

pub(crate) use admission_status::{AdmissionStatus, RoomEntrance};
pub(crate) use releaser::RoomReleaser;
pub(crate) use rooms::WaitingRooms;
