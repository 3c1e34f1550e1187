//! P4, the consumer: every message has one outcome in the database.

mod crash;
mod database_errors;
mod events;
mod landing;
mod locks;
mod messages;
mod negative_controls;
mod records;
mod retries;
mod slow_broker;
mod unknown_sale;
