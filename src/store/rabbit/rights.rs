//! May this account publish and consume? For `seckill doctor`, once everything is declared.
//!
//! A message that no queue is bound for is published and dropped by the broker; the dead-letter queue is read and what was
//! read is put back. Nothing is kept.

use super::batch::send_all;
use super::config::RabbitConfig;
use super::dlq::browse_dlq;
use super::error::RabbitError;
use super::publisher::{Outgoing, PublishRoute};
use super::topology::Topology;

/// No queue is bound with it: the keys of the order queues are numbers.
const NOBODYS_KEY: &str = "doctor";
/// How the broker begins when an account may not.
pub(super) const DENIED: &str = "ACCESS_REFUSED";

/// What the account may not do, with the broker's words; empty when it may do everything that is tried.
pub(crate) async fn refused_rights(config: &RabbitConfig) -> Result<Vec<String>, RabbitError> {
    let topology = Topology::new(config);
    let (exchange, dlq) = (topology.orders_exchange(), topology.dlq());
    let message =
        Outgoing::new(PublishRoute { exchange: &exchange, key: NOBODYS_KEY }, "doctor", Vec::new()).optional();
    let tried = [
        (format!("publishing to {exchange}"), send_all(config, &mut None, vec![message]).await),
        (format!("reading {dlq}"), browse_dlq(config, 1).await.map(|_parked| ())),
    ];
    let mut refused = Vec::new();
    for (what, done) in tried {
        match done {
            Ok(()) => {}
            // The broker's words do not say which right it is.
            Err(error) if error.is_denied() => refused.push(format!("{what} ({error})")),
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

impl RabbitError {
    /// Whether the broker knows the account and does not permit it this.
    #[must_use]
    pub(crate) fn is_denied(&self) -> bool {
        match self {
            Self::Connect { reason, .. } | Self::Refused { reason, .. } | Self::Closed(reason) => {
                reason.contains(DENIED)
            }
            Self::Config { .. }
            | Self::Timeout { .. }
            | Self::Mismatch { .. }
            | Self::NoQueue { .. }
            | Self::Starved { .. }
            | Self::Stale { .. }
            | Self::TooLong { .. } => false,
        }
    }
}
