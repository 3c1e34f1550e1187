//! The three servers, one folder each: every folder is the only importer of its client crate.
//!
//! A store translates between `domain` values and a server's bytes and never decides: what to do with an answer is the
//! phases' business.

pub mod rabbit;
