//! The servers on each host: how they are started, and what they say about themselves and one another.

pub mod balancer;
pub mod galera;
pub mod rabbit;
pub mod redis;
pub mod roles;
