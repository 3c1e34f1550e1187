//! The rules, each group in its own file.

pub mod answers;
pub mod audits;
pub mod converged;
pub mod limits;
pub mod numbers;
pub mod operators;
pub mod outcomes;
pub mod payments;
pub mod phantoms;
pub mod published;
pub mod redis;
pub mod stock;
