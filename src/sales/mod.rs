//! What operators and automatic warm-ups do to a sale: warm it up, pause, close, top up, rebuild, and show what it holds.
//!
//! Input: an operator's wish, or the time of a start. Output: the sale in the database, then in Redis. The database always
//! comes first and every step can be repeated. The command line, the admin API, P1's automatic warm-up and P5 share it.

mod alignment;
mod changes;
mod contention;
mod control;
mod control_error;
mod detail;
mod drop_detail;
mod drops;
pub(crate) mod forms;
pub mod grants;
mod handles;
mod import;
mod recorded;
pub mod rows;
mod sale_change;
mod timetable;
mod withdraw;
pub(crate) mod withdrawals;

pub use control::SaleControl;
pub use control_error::SaleControlError;
pub(crate) use detail::SaleDetail;
pub(crate) use drop_detail::{DropDetail, DropSummary};
pub(crate) use drops::{DropCreated, DropVerb};
pub(crate) use handles::SaleHandles;
pub(crate) use import::{ImportError, Imported};
pub(crate) use recorded::SaleAct;
pub use sale_change::ChangeRefusal;
pub(crate) use sale_change::SaleChange;
pub(crate) use withdraw::UnitsMoved;
pub use withdraw::UnitsTaken;
