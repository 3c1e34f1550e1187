//! The reconcile role: one reconciler; the timetables, the lines with their offers, and the events of sales, and the forgetting of buyers, beside it; one sweep
//! of overdue orders, and one sender of webhooks. Several
//! processes may run it; the database elects the one that works at each.
//!
//! Input: the settings, handles on the servers. Output: these six, running. A crash leaves only what P5, P6 and the webhooks themselves leave.

use super::tasks::RoleTasks;
use super::{CONNECT_GRACE, RoleContext, RoleError};
use crate::buyers::forget::finisher::Finisher;
use crate::events::webhooks::WebhookSender;
use crate::line_offers::LineOffers;
use crate::p1_entry::request_ids::RequestIds;
use crate::p2_reserve::DurabilityGuard;
use crate::p5_reconcile::{Announcer, LineKeeper, Timekeeper};
use crate::p6_fulfil::Expiry;
use crate::runtime::PollInterval;
use crate::store::mysql::leader_election::LedWork;

/// Runs until the process stops.
pub(super) async fn run(context: RoleContext) -> Result<(), RoleError> {
    let mut tasks = RoleTasks::new(&context);
    let RoleContext { settings, servers, stopper, .. } = context;
    servers.redis.wait_connected(CONNECT_GRACE).await;
    let election = servers.election(LedWork::Reconcile);
    tasks.worker(Timekeeper::new(servers.sale_control(&settings), election.seen()), PollInterval::idle_ms(100));
    tasks.worker(LineKeeper::new(servers.rows.lines.clone(), election.seen()), PollInterval::idle_ms(100));
    // Random, because two processes of one name would otherwise share a lease.
    let owner = format!("{}-offers-{:016x}", settings.node(), rand::random::<u64>());
    let ids = RequestIds::start(servers.redis.leases.clone(), owner, stopper);
    let guard = DurabilityGuard::new(servers.redis.health.clone());
    let reserve = servers.reserve(servers.fence(&guard, settings.redis.shards), &settings);
    let lines = (servers.rows.lines.clone(), servers.sale_control(&settings));
    tasks.worker(LineOffers::new(lines, reserve, ids, election.seen()), PollInterval::idle_ms(100));
    let (rows, keys) = (&servers.rows.announcements, &servers.redis.sale_keys);
    tasks.worker(Announcer::new(rows.clone(), keys.clone(), election.seen()), PollInterval::idle_ms(100));
    tasks.worker(Finisher::new(servers.buyer_forget(&settings), election.seen()), PollInterval::idle_ms(500));
    let reconcile = servers.led_reconcile(&settings, settings.p5_reconcile.clone(), election);
    tasks.worker(reconcile, PollInterval::idle_ms(100));
    let expiry =
        Expiry::new(servers.fulfil_context(&settings), servers.election(LedWork::Expiry), settings.p6_fulfil.clone());
    tasks.worker(expiry, PollInterval::idle_ms(50));
    tasks.worker(
        WebhookSender::new(&servers.rows.webhooks, servers.election(LedWork::Webhooks), &settings)?,
        PollInterval::idle_ms(100),
    );
    tasks.until_ended().await;
    Ok(())
}

#[cfg(feature = "faults")]
impl super::Servers {
    /// What a test plays the steps of offers with, in the place of the worker of this role.
    #[must_use]
    pub fn line_steps(
        &self,
        settings: &crate::config::Settings,
        stopper: crate::runtime::Stopper,
    ) -> crate::line_offers::single_steps::LineSteps {
        let guard = DurabilityGuard::new(self.redis.health.clone());
        crate::line_offers::single_steps::LineSteps {
            rows: self.rows.lines.clone(),
            control: self.sale_control(settings),
            reserve: self.reserve(self.fence(&guard, settings.redis.shards), settings),
            ids: RequestIds::start(self.redis.leases.clone(), "line-steps".to_owned(), stopper),
        }
    }
}
