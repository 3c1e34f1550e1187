//! The three servers, one folder each; a folder is the only importer of its client crate.
//!
//! A store translates between domain values and a server's bytes. It never decides: `domain` says what an
//! answer means.

pub mod address_in_use;
pub mod mysql;
pub mod rabbit;
pub mod redis;
pub mod tls;
