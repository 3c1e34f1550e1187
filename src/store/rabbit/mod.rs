//! RabbitMQ: the way of an accepted request from the relay (P3) to the consumer (P4). The only importer of `amqprs`.
//!
//! ```text
//! Publisher ──▶ <prefix>.orders ──n──▶ <prefix>.orders.<n> ──▶ Consumer
//!                     ▲                     │ rejected, or delivered far too often
//!  <prefix>.retry.<ms> (expires)            ▼
//!                     ▲              <prefix>.dlq ──▶ DlqReader
//!                     └── Publisher (attempt + 1)
//! ```
//!
//! The client library neither reconnects nor fails what was pending, and its calls must not be dropped half-way. So:
//!
//! - publishing, consuming and administration have a connection each, with one channel ([`link`](self) underneath);
//! - any trouble at all ends a [`Publisher`] or a [`Consumer`] for good. The caller drops it and connects a new one, which
//!   declares the topology again; tags and deliveries of the old one mean nothing to the new one, and it refuses them;
//! - a crash at any line leaves unconfirmed messages (sent again by the relay, so they may arrive twice) and
//!   unacknowledged deliveries (the broker gives them out again). Nothing is only in this process's memory.

mod ack_tracker;
mod admin;
mod batch;
mod bundle;
mod config;
mod confirms;
mod consumer;
mod declare;
mod dlq;
mod error;
mod headers;
mod link;
mod publisher;
mod queue_inspector;
mod retry_watch;
mod rights;
mod signals;
mod stale_consumer;
mod topology;

pub(crate) use admin::{BrokerProbe, node_infos};
pub use admin::{QueueDepth, broker_info, queue_depths};
pub use batch::{Sender, send_all};
pub(crate) use bundle::may_share;
pub use config::RabbitConfig;
pub use confirms::{Confirms, PublishResult};
pub(crate) use consumer::DeliveryId;
pub use consumer::{Consumer, Delivery};
pub use declare::declare;
pub(crate) use declare::declare_of;
pub use dlq::{DlqReader, ParkedMessage, browse_dlq};
pub use error::RabbitError;
pub use headers::{ATTEMPT_HEADER, BODY_BYTES_MAX, HeaderValue, Headers, WAIT_HEADER, attempts, waits};
pub use link::Link;
pub use publisher::{Outgoing, PublishEvent, PublishRoute, Publisher};
pub(crate) use retry_watch::{InRetry, RetryWatch, SeenOfSale};
pub(crate) use rights::refused_rights;
pub use signals::{Gone, Signal};
pub(crate) use topology::QUEUE_LEFT_ALONE;
pub use topology::Topology;

impl DeliveryId {
    /// As the trace of a test build names it.
    pub(crate) fn traced(self) -> String {
        format!("{}:{}:{}", self.generation, self.tag, self.part)
    }
}
