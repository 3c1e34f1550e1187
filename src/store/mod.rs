//! The three servers, one folder each, each the only importer of its client crate. Stores translate and never decide.

pub mod redis;
