//! What is compared with: the same servers, used in the field's plain ways. And what fills and reads them for a measurement.

pub mod http;
pub mod mysql;
pub mod mysql_bulk;
mod mysql_schema;
pub mod mysql_units;
pub mod rabbit;
pub mod redis;
pub mod redis_info;
pub mod redis_script;
