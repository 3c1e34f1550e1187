//! seckill: a flash-sale order system. Start at `docs/architecture.md`; the rules of the house are in `CONTRIBUTING.md`.

pub mod domain;
pub mod store;
