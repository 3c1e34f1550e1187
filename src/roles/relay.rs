//! The relay role: one relay for each Redis server, so that a server that is unavailable or frozen stops its own shards only.
//!
//! Input: the settings, handles on the servers. Output: running relays. A crash leaves only what P3 itself leaves.

use super::tasks::RoleTasks;
use super::{CONNECT_GRACE, RoleContext, RoleError, Servers};
use crate::config::RedisMode;
use crate::p3_relay::{Relay, RelayPlan, rate_cap};
use crate::runtime::PollInterval;
use std::time::Duration;

/// Pause between two questions where the shards are.
const TOPOLOGY_POLL: Duration = Duration::from_millis(200);

/// Runs until the process stops.
pub(super) async fn run(context: RoleContext) -> Result<(), RoleError> {
    let mut tasks = RoleTasks::new(&context);
    let RoleContext { settings, servers: Servers { redis, rabbit, .. }, stopper, .. } = context;
    redis.wait_connected(CONNECT_GRACE).await;
    while settings.redis.mode != RedisMode::Single && !redis.health.is_connected() {
        if stopper.is_stopped() {
            return Ok(());
        }
        stopper.sleep(TOPOLOGY_POLL).await;
    }
    let cap = rate_cap(&settings.p3_relay);
    // A fail-over changes the server of a slot, not which slots are together, so this grouping stays true.
    for shards in redis.shards_by_server() {
        let (node, rate_cap) = (settings.node(), cap.clone());
        let plan = RelayPlan { settings: settings.p3_relay.clone(), rate_cap, shards, node };
        let relay = Relay::new(redis.outbox.clone(), redis.relay_dlq.clone(), &rabbit, plan);
        tasks.worker(relay, PollInterval::idle_ms(settings.p3_relay.idle_ms));
    }
    tasks.until_ended().await;
    Ok(())
}
