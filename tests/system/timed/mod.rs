//! What has to happen within seconds: on a slow or busy machine these tests would fail without a fault.

mod consumer;
mod draining;
mod entry;
mod lease;
mod pressure;
mod reconcile;
mod stale_relay;
mod store;
