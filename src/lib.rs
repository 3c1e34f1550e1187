//! seckill: a flash-sale order system. Start at `docs/architecture.md`; the rules of the house are in `CONTRIBUTING.md`.

pub mod config;
pub mod crowd;
pub mod dev;
pub mod domain;
pub mod runtime;
pub mod store;
pub mod telemetry;
