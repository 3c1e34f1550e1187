//! What needs no system: time, folders, raw commands to the servers, answers and the schemas that they are held against.
//!
//! `tests/chaos`, `tests/hosts` and `tests/docs` include single files of it, which therefore use nothing of the rest.

pub mod answer;
pub mod answer_schema;
pub mod asyncapi;
pub mod database_kind;
pub mod documented_commands;
pub mod files;
pub mod raw_commands;
pub mod resp;
pub mod time;
