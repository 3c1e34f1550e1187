//! MySQL / MariaDB: the truth about sales, orders and the outcome of each request.
//!
//! All work goes through [`Db::run`], which never lets a connection with an unfinished statement back into the pool.
//! Everything here may be repeated: a crash leaves either a committed transaction or nothing, and the primary key of
//! `request_outcome` makes a repeat find out which.

pub mod address;
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
pub mod values;

pub(crate) use address::AddressState;
pub use address::DatabaseAddress;
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
