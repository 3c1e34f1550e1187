//! The line of a sale: who wants units enters it, ranks are drawn after its close or given by arrival, and units go to them (W1 to W4).
//!
//! Input: entries of buyers, the close by the database's clock, perhaps a text from outside. Output: rows, and the public document of the
//! draw. Ranks are in no row: each process derives them from seed, digest and ids. Each change is one transaction, and goes on from the state
//! that it finds: a crash leaves a line that is closed, not sealed, or sealed, not drawn, and the next step goes on with the same list.

pub(crate) mod document;
pub(crate) mod forms;
pub(crate) mod list;
pub(crate) mod listing;
pub mod rows;
pub(crate) mod verify;
