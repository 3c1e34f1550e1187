//! Ways between a client and a server that are late, silent, refused or moved to another server.

pub mod black_hole;
pub mod moving_name;
pub mod slow_link;
