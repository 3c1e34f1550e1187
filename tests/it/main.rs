//! The integration tests, by the field's groups, in one binary on one set of private servers.
//!
//! No mocks: real Redis, RabbitMQ and MariaDB, started by [`world`] and killed by the kernel when this process ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod accounts;
mod admin_api;
mod alerts_entry;
mod alerts_pipeline;
mod alerts_promises;
mod alerts_servers;
mod answer;
mod beside;
mod black_hole;
mod breakable;
mod browser;
mod browser_console;
mod browser_shop;
mod buckets;
mod certificates;
mod cluster_access;
mod cluster_failover;
mod cluster_load;
mod cluster_promises;
mod cluster_sales;
mod cluster_shards;
mod collector;
mod contract;
mod cors;
mod crash_reserve;
mod crowd_http;
mod crowd_run;
mod desk;
mod dev_servers;
mod doctor;
mod doctor_worst;
mod draining;
mod exchange;
mod faulty;
#[path = "../common/files.rs"]
mod files;
mod fleet;
mod group_a_access;
mod group_a_bad_input;
mod group_a_crowd;
mod group_a_damage;
mod group_a_entry;
mod group_a_events;
mod group_a_fence;
mod group_a_floods;
mod group_a_ids;
mod group_a_keys_lost;
mod group_a_model;
mod group_a_overload;
mod group_a_pressure;
mod group_a_replay;
mod group_a_replicas;
mod group_a_room;
mod group_a_room_order;
mod group_a_room_release;
mod group_a_settings;
mod group_a_shard_sales;
mod group_a_shards;
mod group_a_status;
mod group_a_tokens;
mod group_a_unknown;
mod group_a_window;
mod group_b_broker;
mod group_b_bundles;
mod group_b_confirms;
mod group_b_controls;
mod group_b_crash;
mod group_b_entries;
mod group_b_list;
mod group_b_relay;
mod group_b_replicas;
mod group_b_shards;
mod group_b_stale;
mod group_c_breaker;
mod group_c_broker;
mod group_c_controls;
mod group_c_crash;
mod group_c_database;
mod group_c_events;
mod group_c_persist;
mod group_d_cancel;
mod group_d_crash;
mod group_d_desk;
mod group_d_desk_crash;
mod group_d_grants;
mod group_d_leader;
mod group_d_leaks;
mod group_d_mq_dlq;
mod group_d_reconcile;
mod group_d_transfers;
mod group_d_trim;
mod group_d_wipe;
mod group_e_bench;
mod hands;
mod manual;
mod metrics_exported;
mod model;
mod mortal;
mod operators;
mod outbox_kinds;
mod own_redis;
mod power_cut;
mod processes;
mod procs;
mod prometheus;
#[path = "../common/raw.rs"]
mod raw;
mod redis_cluster;
mod redis_faults;
mod redis_full;
mod redis_loss;
mod redis_sentinel;
#[path = "../common/redis_sets/mod.rs"]
mod redis_sets;
mod resp;
mod rooms;
mod rush;
mod sentinel_sales;
mod store_mysql;
mod store_rabbit;
#[path = "../common/time.rs"]
mod time;
mod tls;
mod traces;
mod versions;
mod wire;
mod world;
