//! Servers that are killed, frozen, filled or emptied while the system works on them.

mod admin;
mod breaker;
mod broker_consumer;
mod broker_disk;
mod broker_relay;
mod broker_store;
mod database;
mod database_addresses;
mod database_load;
mod database_store;
mod leader;
mod overload;
mod power_cut;
mod redis_faults;
mod redis_full;
mod redis_loss;
mod redis_marks;
mod redis_unknown;
mod relay_replicas;
mod replicas;
mod waiting_room;
