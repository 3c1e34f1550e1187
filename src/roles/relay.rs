//! The relay role: one relay for each Redis server, so that a server that is away or frozen stops its own shards only.
//!
//! Input: the settings, handles on the servers. Output: running relays. A crash leaves nothing behind but what P3 says itself.

use super::{CONNECT_GRACE, RoleError, Servers, outcome};
use crate::config::{RedisMode, Settings};
use crate::p3_relay::{Relay, RelayPlan, rate_cap};
use crate::runtime::{PollInterval, Stopper, run_worker};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Pause between two looks for where the shards are.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Runs until it is stopped.
///
/// # Errors
/// [`RoleError`] when a relay ends by itself.
pub(super) async fn run(s: Arc<Settings>, servers: Servers, stopper: Stopper) -> Result<(), RoleError> {
    let Servers { redis, rabbit, .. } = servers;
    redis.wait_connected(CONNECT_GRACE).await;
    while s.redis.mode != RedisMode::Single && !redis.is_connected() {
        if stopper.is_stopped() {
            return Ok(());
        }
        stopper.sleep(LOOK_EVERY).await;
    }
    // A fail-over changes the server of a slot and not which slots are together, so this stays true.
    let cap = rate_cap(&s.p3_relay);
    let mut relays = JoinSet::new();
    for shards in redis.shards_by_server() {
        let plan =
            RelayPlan { settings: s.p3_relay.clone(), rate_cap: cap.clone(), shards, node: s.node().to_string() };
        let relay = Relay::new(redis.outbox.clone(), redis.relay_dlq.clone(), rabbit.clone(), plan);
        let (pace, stopper) = (PollInterval::idle_ms(s.p3_relay.idle_ms), stopper.clone());
        relays.spawn(async move {
            run_worker(relay, pace, stopper).await.map_err(|fault| RoleError::Ended(fault.to_string()))
        });
    }
    let mut ended = Ok(());
    while let Some(one) = relays.join_next().await {
        // One that ends by itself ends the process, and the others with it.
        stopper.stop();
        ended = ended.and(outcome(Some(one)));
    }
    ended
}
