//! P3, the relay: every accepted request reaches the broker, once confirmed, whatever dies on the way.

mod addresses;
mod broker_faults;
mod broker_flow;
mod bundles;
mod confirms;
mod crash;
mod declare;
mod list_outbox;
mod negative_controls;
mod order_queues;
mod several_orders;
mod several_orders_crash;
mod shards;
mod stream_outbox;
mod take_over;
