//! A phase or a store without the rest of a system, and the models that it is held against.

pub mod bucket_cases;
pub mod buckets;
pub mod mysql_store;
pub mod rabbit_store;
pub mod reserve_model;
pub mod rows_read;
pub mod script_model;
