//! The load generator: buyers who use the public HTTP API, for `seckill bench`, the tests and the demo shop.
//!
//! Input: a plan ([`LoadPlan`]). Output: a report ([`LoadReport`]) of the answers that buyers got, nothing else: it knows no
//! server, queue or database, so a balance can be struck between what was promised and what was done. Not a role; a crash
//! here leaves only what the buyers had sent.
//!
//! By file: `plan` → `run` → `purchase` (what a buyer does) → `calls`, `waiting_room` → `http` → `answer` (the parser).
//! A `virtual_user` is a connection with its buyers, `run_state` what all of them share, `schedule` the clock of an open
//! loop. `counts` fills the `report`, `latencies` its histogram. `outcomes` asks for the outcomes after a run.

pub mod access_tokens;
pub mod answer;
mod calls;
mod counts;
pub mod http;
mod latencies;
mod load_error;
pub mod outcomes;
pub mod plan;
mod purchase;
pub mod report;
mod request_templates;
pub mod rs256;
pub mod run;
mod run_state;
pub mod schedule;
mod virtual_user;
mod waiting_room;

pub use load_error::LoadError;
pub use outcomes::{Outcomes, await_outcomes};
pub use plan::{LoadPlan, LoadProgress, OnLoadProgress, buyer_name};
pub use report::{AcceptedPurchase, Answers, BuyerAnswer, FinalAnswer, Latency, LoadReport, StatusCount};
pub use run::{PreparedRun, prepare, run};
