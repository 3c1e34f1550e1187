//! The consumer role: the writers that bring orders from the broker into the database, the sender of their events, and a watch
//! over Redis, which the writers ask nothing between two groups.
//!
//! Input: the settings, handles on the servers. Output: running writers. A crash leaves only what P4 itself leaves.

use super::tasks::RoleTasks;
use super::{CONNECT_GRACE, RoleContext, RoleError, Servers};
use crate::events::publisher::EventPublisher;
use crate::p4_persist::{Persist, RedisWatch};
use crate::runtime::{PollInterval, Stopper};
use crate::store::mysql::{Db, checks};
use std::time::Duration;

/// Pause between two tries to read the settings of a database that does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// Runs until the process stops.
pub(super) async fn run(context: RoleContext) -> Result<(), RoleError> {
    let mut tasks = RoleTasks::new(&context);
    let RoleContext { settings, servers: Servers { db, rows, redis, rabbit }, stopper, .. } = context;
    let settings = &settings.p4_persist;
    tasks.task(warn_about_database(db.clone(), stopper));
    redis.wait_connected(CONNECT_GRACE).await;
    tasks.worker(
        EventPublisher::new((&rows.outcome_events, &rows.order_events), &rabbit, settings),
        PollInterval::idle_ms(1_000),
    );
    tasks.worker(RedisWatch::new(redis.health.clone()), PollInterval::idle_ms(1_000));
    for writer in Persist::writers(&rows.of_persist(), &redis.ledger, &rabbit, settings) {
        tasks.worker(writer, PollInterval::idle_ms(10));
    }
    tasks.until_ended().await;
    Ok(())
}

/// Warns once about database settings that weaken a guarantee (window 82), as soon as the database answers. P4 goes on:
/// orders that such a database loses are written again from the ledger.
async fn warn_about_database(db: Db, stopper: Stopper) -> Result<(), RoleError> {
    while !stopper.is_stopped() {
        if let Ok(checks) = checks::checks(&db).await {
            for check in checks.iter().filter(|check| !check.ok) {
                tracing::warn!(
                    phase = "p4_persist", setting = check.name, value = %check.value, expected = check.expected,
                    "a setting of the database weakens a guarantee; seckill doctor says what to change"
                );
            }
            // A task that ends would end the process.
            stopper.stopped().await;
        }
        stopper.sleep(RETRY).await;
    }
    Ok(())
}
