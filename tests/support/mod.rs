//! The harness: servers, worlds, processes, links, clients. No test is in here.
//!
//! `tests/it` and `tests/system` use all of it; `tests/chaos` uses single files that need nothing of the rest: `files`,
//! `raw_commands`, `resp`, `time`.

pub mod admin_port;
pub mod answer;
pub mod audits;
pub mod backup;
pub mod bench;
pub mod black_hole;
pub mod breakable_servers;
pub mod browser;
pub mod bucket_cases;
pub mod buckets;
pub mod certificates;
pub mod clusters;
pub mod collector;
pub mod command_line;
pub mod database_sessions;
pub mod doctor;
pub mod documented_commands;
pub mod downstream;
pub mod fault_injection;
pub mod files;
pub mod fleet;
pub mod killable;
pub mod lost_primary;
pub mod mysql_store;
pub mod observed_reconciler;
pub mod outbox_kinds;
pub mod own_redis;
pub mod persist_controls;
pub mod programs;
pub mod prometheus;
pub mod purchases;
pub mod rabbit_store;
pub mod raw_commands;
pub mod raw_http;
pub mod redis_sets;
pub mod refusals;
pub mod relay_state;
pub mod replays;
pub mod replicas;
pub mod reserve_model;
pub mod resp;
pub mod retrying_buyers;
pub mod schema;
pub mod script_model;
pub mod second_world;
pub mod shared_servers;
pub mod slow_link;
pub mod time;
pub mod waiting_rooms;
pub mod winners;
pub mod world;
pub mod world_redis;
pub mod wrong_clock;
