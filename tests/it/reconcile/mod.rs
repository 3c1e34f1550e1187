//! P5, the reconciler and the operator's desk: what was lost is found, and repaired forward.

mod algebra;
mod books;
mod by_name;
mod cancel;
mod crash;
mod desk;
mod desk_crash;
mod findings;
mod full_mq_dlq;
mod grants;
mod later_version;
mod leaks;
mod mq_dlq;
mod plans;
mod top_up;
