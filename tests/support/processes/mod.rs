//! Programs that a test starts, stops and kills: the real binary, servers in sets, a browser, and what a person does with the
//! command line.

pub mod bench;
pub mod breakable_servers;
pub mod browser;
pub mod command_line;
pub mod database_pair;
pub mod doctor;
pub mod fleet;
pub mod killable;
pub mod lost_primary;
pub mod own_redis;
pub mod programs;
pub mod redis_sets;
pub mod replicas;
pub mod supervised;
pub mod wrong_clock;
