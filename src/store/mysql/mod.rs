//! MySQL / MariaDB: what a server is. Addresses, sessions, the pool, what its errors mean, schema, migrations, leader election.
//! The rows of sales, events, orders and P5 lie in their own rooms.
//!
//! All work goes through [`Db::run`], which never lets a connection with an unfinished statement back into the pool.
//! Everything here may be repeated: a crash leaves either a committed transaction or nothing, and a repeat finds out
//! which by the primary key of its own row.

mod acts_schema;
pub mod address;
mod address_states;
pub mod checks;
pub mod codes;
pub(crate) mod columns;
mod database_server;
mod database_state;
mod db_config;
pub mod fault;
mod handle;
pub mod leader;
pub(crate) mod leader_election;
pub mod migrate;
pub mod pool;
pub mod rights;
pub mod schema;
pub(crate) mod sessions;
pub(crate) mod tables;
pub mod transaction;
pub mod values;

pub use address::DatabaseAddress;
pub(crate) use address_states::{AddressState, address_states};
pub use db_config::DbConfig;
pub use fault::DbError;
pub(crate) use handle::mysql_handle;
pub use pool::Db;

/// For the loop of every background phase.
impl crate::domain::fault::MayBeOutage for DbError {
    fn is_outage(&self) -> bool {
        self.is_outage()
    }
}
