//! Request ids for this process (A2): one Snowflake generator on a leased node id.
//!
//! The lease is renewed well before its fence. While Redis is away ids go on up to the fence, then requests get 503 —
//! Redis would have to accept them anyway. Leases lie on all shards: a process whose lease cannot be renewed half way to the
//! fence, because one of several servers is away, takes another. A crash leaves a lease that ends by its fence.

use crate::domain::ids::RequestId;
use crate::domain::snowflake::{NODES, Snowflake, SnowflakeError};
use crate::http::problem::{Kind, Problem};
use crate::runtime::{Stopper, now_ms};
use crate::store::redis::{LeaseTime, NodeLease, NodeLeases, RedisFault};
use rand::Rng;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long node ids are leased, and how often.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    /// How far ahead of the clock a lease reaches.
    pub lease_ms: i64,
    /// Pause between renewals; several fit into half a lease.
    pub renew: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { lease_ms: 60_000, renew: Duration::from_secs(10) }
    }
}

impl LeaseTerms {
    /// Whether to take another node id, because the lease could not be renewed for half its time. Ids of the old one go
    /// on until there is another, or up to its fence.
    const fn wants_another_node(&self, now_ms: i64, fence_ms: i64) -> bool {
        fence_ms - now_ms < self.lease_ms / 2
    }
}

/// Pause between two tries for the first lease.
const READY_POLL: Duration = Duration::from_millis(10);
/// Node ids tried before giving up for now; with under 1,024 processes a random one is nearly always free.
const TRIES: u32 = 64;

/// Why there is no id right now.
#[derive(Debug, thiserror::Error)]
pub enum NoRequestId {
    /// No node id is leased (yet).
    #[error("no node id is leased yet")]
    NotLeased,
    /// The generator's own reason.
    #[error("{0}")]
    Generator(#[from] SnowflakeError),
}

impl From<NoRequestId> for Problem {
    fn from(error: NoRequestId) -> Self {
        Kind::Unavailable.because(error.to_string())
    }
}

/// Hands out request ids. Clones share one generator.
#[derive(Clone)]
pub struct RequestIds {
    generator: Arc<Mutex<Option<Snowflake>>>,
}

impl RequestIds {
    /// Starts leasing in the background; ids come once the first lease stands.
    #[must_use]
    pub fn start(leases: NodeLeases, owner: String, stopper: Stopper) -> Self {
        Self::on_terms(leases, owner, stopper, LeaseTerms::default())
    }

    /// The same with other terms.
    #[must_use]
    pub fn on_terms(leases: NodeLeases, owner: String, stopper: Stopper, terms: LeaseTerms) -> Self {
        let ids = Self { generator: Arc::default() };
        let leasing = Leasing { ids: ids.clone(), leases, owner, terms };
        tokio::spawn(leasing.keep(stopper));
        ids
    }

    /// The next id.
    pub fn next(&self) -> Result<RequestId, NoRequestId> {
        let mut generator = self.generator.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(generator.as_mut().ok_or(NoRequestId::NotLeased)?.next(now_ms())?)
    }

    /// Whether ids can be had.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.generator.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
    }

    /// Waits until ids can be had, at most `deadline`; replays and status questions need none.
    pub(crate) async fn wait_ready(&self, deadline: Duration, stopper: &Stopper) {
        let waiting = async {
            while !self.is_ready() && !stopper.is_stopped() {
                stopper.sleep(READY_POLL).await;
            }
        };
        // Whether they came shows in the answers.
        drop(tokio::time::timeout(deadline, waiting).await);
    }

    fn set(&self, generator: Option<Snowflake>) {
        *self.generator.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = generator;
    }

    fn extend(&self, fence_ms: i64) {
        if let Some(generator) = self.generator.lock().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut() {
            generator.extend(fence_ms);
        }
    }
}

/// The task that keeps a node id leased.
struct Leasing {
    ids: RequestIds,
    leases: NodeLeases,
    owner: String,
    terms: LeaseTerms,
}

impl Leasing {
    async fn keep(self, stopper: Stopper) {
        let mut held: Option<u16> = None;
        let mut fence_ms = 0;
        while !stopper.is_stopped() {
            let leased = match held {
                Some(node) => self.lease(node, false).await,
                None => self.take().await,
            };
            let pause = match (leased, held) {
                (Ok(Some(lease)), Some(_)) => {
                    self.ids.extend(lease.fence_ms);
                    fence_ms = lease.fence_ms;
                    self.terms.renew
                }
                (Ok(Some(lease)), None) => {
                    tracing::info!(phase = "p1_entry", node = lease.node, "node id leased");
                    self.ids.set(Some(Snowflake::new(lease.node, lease.after_ms, lease.fence_ms)));
                    (held, fence_ms) = (Some(lease.node), lease.fence_ms);
                    self.terms.renew
                }
                // Another process took it (this one slept past its fence), or Redis forgot it: never use it again.
                (Ok(None), Some(_)) => {
                    self.ids.set(None);
                    held = None;
                    Duration::from_millis(100)
                }
                // All that were tried are taken.
                (Ok(None), None) => Duration::from_millis(100),
                (Err(error), _) => {
                    tracing::debug!(phase = "p1_entry", %error, "node lease");
                    if self.terms.wants_another_node(now_ms(), fence_ms) {
                        held = None;
                    }
                    Duration::from_millis(200)
                }
            };
            stopper.sleep(pause).await;
        }
    }

    async fn lease(&self, node: u16, take: bool) -> Result<Option<NodeLease>, RedisFault> {
        let time = LeaseTime { now_ms: now_ms(), lease_ms: self.terms.lease_ms };
        self.leases.lease(node, &self.owner, time, take).await
    }

    async fn take(&self) -> Result<Option<NodeLease>, RedisFault> {
        let mut answered = Ok(None);
        for _ in 0..TRIES {
            let node = rand::rng().random_range(0..NODES);
            match self.lease(node, true).await {
                Ok(None) => {}
                // Its shard's server is away; the next one may be on another.
                Err(fault @ RedisFault::NotSent(_)) => answered = Err(fault),
                done => return done,
            }
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::LeaseTerms;

    #[test]
    fn another_node_id_is_wanted_in_the_second_half_of_the_lease() {
        let terms = LeaseTerms::default();
        let now = 1_800_000_000_000;
        assert!(!terms.wants_another_node(now, now + terms.lease_ms), "just renewed");
        assert!(!terms.wants_another_node(now, now + terms.lease_ms / 2));
        assert!(terms.wants_another_node(now, now + terms.lease_ms / 2 - 1));
        assert!(
            terms.wants_another_node(now, now - 1) && terms.wants_another_node(now, 0),
            "behind the fence, or none yet"
        );
    }
}
