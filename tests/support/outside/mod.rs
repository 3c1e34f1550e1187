//! The other parties of the system, run by the test: who gets its webhooks, events and traces, who signs in its buyers, who
//! scrapes it.

pub mod certificates;
pub mod collector;
pub mod downstream;
pub mod hook_receiver;
pub mod http_server;
pub mod issuer;
pub mod login_service;
pub mod prometheus;
pub mod risk_shop;
pub mod sale_listener;
