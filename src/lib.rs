pub mod dev;
pub mod domain;
