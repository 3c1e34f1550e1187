//! MySQL / MariaDB: the truth about sales, orders and the outcome of each request.
//!
//! All work goes through [`Db::run`], which never lets a connection with an unfinished statement back into the pool.
//! Everything here may be repeated: a crash leaves either a committed transaction or nothing, and the primary key of
//! `request_outcome` makes a repeat find out which.

pub mod acts;
pub mod address;
pub mod archive;
pub mod audit;
pub mod books;
pub mod checks;
pub mod codes;
mod columns;
mod database_server;
mod database_state;
mod db_config;
pub mod decided;
pub mod ended;
pub mod events;
pub mod failed_requests;
pub mod fault;
pub mod grants;
pub mod lags;
pub mod leader;
pub(crate) mod leader_election;
pub mod migrate;
pub mod order_life;
pub mod outcomes;
pub mod persist;
pub mod pool;
pub mod purchases;
pub mod request_records;
pub mod rights;
pub(crate) mod sale_changes;
mod sale_error;
mod sale_facts;
pub mod sales;
pub mod schema;
mod sessions;
pub mod totals;
pub(crate) mod waiting_page;
pub mod webhooks;

pub(crate) use address::AddressState;
pub use address::DatabaseAddress;
pub use db_config::DbConfig;
pub use fault::DbError;
pub use pool::Db;

/// For the loop of every background phase.
impl crate::domain::fault::MayBeOutage for DbError {
    fn is_outage(&self) -> bool {
        self.is_outage()
    }
}
