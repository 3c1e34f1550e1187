//! seckill: a flash-sale order system. Start at `docs/architecture.md`; the rules of the house are in `CONTRIBUTING.md`.

pub mod admin;
pub mod allocator;
pub mod bench_program;
pub mod cli;
pub mod config;
pub mod console;
pub mod dev;
pub mod domain;
pub mod faults;
pub mod http;
pub mod jwt;
pub mod p1_entry;
pub mod p2_reserve;
pub mod p3_relay;
pub mod p4_persist;
pub mod p5_reconcile;
pub mod roles;
pub mod runtime;
pub mod sales;
pub mod store;
pub mod telemetry;
pub mod token_issuer;
