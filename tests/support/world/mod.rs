//! A running system in the test's own process, and its handles: what a test reads of it and does to it.

pub mod admin_port;
pub mod audits;
pub mod backup;
pub mod clusters;
pub mod database_sessions;
pub mod drops;
pub mod everything;
pub mod fault_injection;
pub mod outbox_kinds;
pub mod parts;
pub mod persist_controls;
pub mod relay_state;
pub mod schema;
pub mod second_world;
pub mod servers_started;
pub mod shared_servers;
pub mod system;
pub mod world_redis;

pub use super::basics::answer::Answer;
pub use super::basics::time::{QUICK, SETTLE, after, eventually, pause, run, run_waiting, time_passes};
pub use shared_servers::{init_telemetry, shared};
pub use system::{ALONE, World};
