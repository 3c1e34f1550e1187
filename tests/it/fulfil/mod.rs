//! P6: what becomes of an order after it was confirmed. Paid, expired, cancelled, and every race between them.

mod acts;
mod api;
mod controls;
mod counted;
mod crash;
mod early;
mod events;
mod expiry;
mod exports;
mod frozen;
mod limits;
mod older_version;
mod pages;
mod queued;
mod races;
mod sweep;
mod times;
mod webhook_connections;
mod webhook_replays;
mod webhook_subscriptions;
mod webhooks;
mod webhooks_crash;
mod webhooks_failing;
mod webhooks_size;
mod webhooks_tls;
