//! seckill: a flash-sale order system.
//!
//! A purchase passes six phases: P1 takes it in, P2 reserves its units in Redis, P3 relays it to RabbitMQ, P4 writes it to the
//! database, P5 checks the books and repairs, P6 follows the order until it is paid, expires or is cancelled. Each phase is a room
//! here and hands its work over as data in a server.
//!
//! The rooms by floor, from the ground up; a room imports floors below it only:
//!
//! | floor | room | does |
//! |---|---|---|
//! | 1 | [`domain`] | the rules as values: ids, limits, states, outcomes, the balance sheet; no I/O, no clock |
//! | 2 | [`config`] | settings in layers, checked |
//! | 2 | [`runtime`] | the one endless loop, stops, pauses; the batcher, which collects single calls into groups |
//! | 2 | [`telemetry`] | logs, metrics, request ids of HTTP calls, traces |
//! | 2 | [`faults`], `trace_points` | fault points and trace lines of test builds: `crash_point!`, `left_out!` and `trace_point!` do nothing in a release |
//! | 2 | [`jwt`], [`token_issuer`], [`allocator`], [`bench_program`], [`build_info`] | how tokens are signed and issued; memory; where the benchmark's program is; which build this is |
//! | 3 | [`store`] | Redis, RabbitMQ, MySQL: one folder each, the only importers of their clients |
//! | 4 | [`http`], [`sales`] | what two HTTP servers share, and the client for other machines; a sale's own life |
//! | 5 | [`events`] | what the world is notified of: rows, the publisher, webhooks |
//! | 6 | [`lines`] | entries of a sale's line: added, left, drawn |
//! | 6 | [`orders`] | what an order is: written once, and changed until it is paid, cancelled or expired |
//! | 7 | [`p2_reserve`], [`p3_relay`], [`p4_persist`], [`p5_reconcile`], [`p6_fulfil`] | one phase each; none imports another |
//! | 8 | [`p1_entry`] | the public API; it calls P2, and P6 for a buyer's own orders: the only calls between phases |
//! | 9 | [`line_offers`] | gives units to the entries of a line, by purchases through P2 |
//! | 9 | [`console`] | pages: the operators' console, the contract, the demo shop |
//! | 10 | [`roles`] | what a process runs: api, relay, consumer, reconcile |
//! | 11 | [`admin`] | the operators' HTTP server: health, metrics, API |
//! | 12 | [`dev`] | a whole system on one machine |
//! | 13 | [`cli`] | the command line |
//!
//! Read in this order: `docs/states.md`, which is printed from `domain/states`; then a purchase: [`p1_entry::purchasing`],
//! [`p2_reserve`] with `lua/reserve.lua`, [`p3_relay`], [`p4_persist`]; then [`p5_reconcile`]; then [`roles`], where they are put
//! together. `docs/architecture.md` names each file of that walk.
//!
//! Comments name their reasons by number, and `docs/register.md` is the key. "Window 17" is a point at which a crash or a fault
//! could lose or double something; "A10" or "E8" is a row, something that the system must do. It names
//! what closes each window, and the test that shows it. Words are in `docs/glossary.md`, the rules of the house in `CONTRIBUTING.md`.

pub mod admin;
pub mod allocator;
pub mod bench_program;
pub mod build_info;
pub mod buyers;
pub mod cli;
pub mod config;
pub mod console;
pub mod dev;
pub mod domain;
pub mod events;
pub mod faults;
pub mod http;
pub mod jwt;
pub mod line_offers;
pub mod lines;
pub mod orders;
pub mod p1_entry;
pub mod p2_reserve;
pub mod p3_relay;
pub mod p4_persist;
pub mod p5_reconcile;
pub mod p6_fulfil;
pub mod roles;
pub mod runtime;
pub mod sales;
pub mod store;
pub mod telemetry;
pub mod token_issuer;
pub(crate) mod trace_points;
