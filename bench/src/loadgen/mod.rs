//! A crowd of buyers against the public HTTP API: the load of `seckill bench`, of the tests, and of the demo shop.
//!
//! Input: a plan ([`CrowdPlan`]). Output: a report ([`CrowdReport`]) of what the buyers were told, nothing else: it knows no
//! server, queue or database, so a balance can be struck between what was promised and what was done. Not a role; a crash
//! here leaves only what the buyers had sent.
//!
//! By file: `plan` → `buyers` (a run) → `shopper` (a connection's buyers) → `calls` → `http` → `answer` (the parser);
//! `schedule` tells an open loop when; `tally` counts into `report`, `latencies` into its histogram; `outcomes` asks afterwards
//! what became of it; `wallet` holds the access tokens.

pub mod answer;
pub mod buyers;
mod calls;
mod forms;
pub mod http;
mod latencies;
pub mod outcomes;
pub mod plan;
pub mod report;
mod room;
mod schedule;
mod shared;
mod shopper;
mod tally;
pub mod wallet;

pub use buyers::{Ready, prepare, run};
pub use outcomes::{Outcomes, await_outcomes};
pub use plan::{CrowdError, CrowdPlan, OnProgress, Progress, buyer_name};
pub use report::{Accepted, Answers, CrowdReport, Latency, StatusCount, Told, Verdict};
