//! P5, the reconciler and the operator's desk: what was lost is found, and repaired forward.

mod books;
mod cancel;
mod crash;
mod dlq_commands;
mod dlq_crash;
mod findings;
mod full_mq_dlq;
mod grants;
mod growth;
mod hidden_by_sums;
mod isolation;
mod journal;
mod later_version;
mod leaks;
mod long_audit;
mod lost_takes;
mod mq_dlq;
mod owned_units;
mod query_plans;
mod rebuild_and_grants;
mod returns_and_rebuild;
mod reused_numbers;
mod second_findings;
mod settled_sales;
mod top_up;
mod two_numbers;
