//! P4, the consumer: every message has one outcome in the database.

mod crash;
mod database_errors;
mod drops;
mod events;
mod frozen_host;
mod groups;
mod locks;
mod messages;
mod negative_controls;
mod retries;
mod sale_records;
mod slow_broker;
mod unknown_sale;
