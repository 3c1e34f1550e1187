//! What the connections of one run share: the plan, the prepared requests, and the counter purchases are taken from.

use super::access_tokens::AccessTokens;
use super::http::ServerAddress;
use super::latencies::Latencies;
use super::load_error::LoadError;
use super::plan::{LoadPlan, LoadProgress, buyer_name};
use super::request_templates::RequestTemplates;
use super::schedule::Schedule;
use seckill::token_issuer::TokenIssuer;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// Everything one run shares.
pub(super) struct RunState {
    pub plan: LoadPlan,
    pub target: ServerAddress,
    pub forms: RequestTemplates,
    pub latencies: Latencies,
    wallet: Arc<AccessTokens>,
    schedule: Option<Schedule>,
    start: OnceLock<Instant>,
    next: AtomicU64,
    pub finished: AtomicU64,
    pub accepted: AtomicU64,
    pub requests: AtomicU64,
}

impl RunState {
    /// Resolves the server and signs everyone's access token.
    pub async fn prepare(plan: LoadPlan) -> Result<Self, LoadError> {
        let target = ServerAddress::resolve(&plan.api_url, Duration::from_millis(plan.timeout_ms)).await?;
        let wallet = match &plan.access {
            Some(ready) => Arc::clone(ready),
            None => {
                let issuer = TokenIssuer::new(&plan.secret, &plan.issuer, &plan.audience)?;
                let buyers = plan.first_buyer..plan.first_buyer + plan.buyers;
                Arc::new(AccessTokens::signed(issuer, buyers.map(buyer_name).collect()).await?)
            }
        };
        Ok(Self {
            forms: RequestTemplates::new(target.host(), (&plan.sale_id, plan.quantity), plan.enters_line),
            target,
            latencies: Latencies::new()?,
            wallet,
            schedule: Schedule::of(&plan),
            start: OnceLock::new(),
            next: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            plan,
        })
    }

    /// When the clock started: at the first call.
    pub fn start(&self) -> Instant {
        *self.start.get_or_init(|| {
            let start = Instant::now();
            self.schedule.iter().for_each(|schedule| schedule.begin(start));
            start
        })
    }

    /// The access token of buyer `index` of this run.
    pub fn access(&self, index: u64) -> &str {
        usize::try_from(index).map_or("", |index| self.wallet.token(index))
    }

    /// Takes the next purchase: its number, and with a rate when it is to be sent, having waited for that time.
    /// `None` when there is none left or the run is stopped.
    pub async fn next(&self) -> Option<(u64, Option<Instant>)> {
        if self.plan.stop.is_stopped() {
            return None;
        }
        let start = self.start();
        if let Some(schedule) = &self.schedule {
            schedule.wait().await;
        }
        let index = self.next.fetch_add(1, Relaxed);
        if index >= self.plan.purchases() || self.plan.stop.is_stopped() {
            return None;
        }
        Some((index, self.schedule.as_ref().map(|schedule| start + schedule.due(index))))
    }

    /// Whether purchase `index` is among the chosen `percent`; the same for the same seed. `kind` keeps two choices apart.
    pub fn chosen(&self, index: u64, kind: u64, percent: u8) -> bool {
        // The finaliser of SplitMix64: neighbours come out unrelated.
        let mut mixed = self.plan.seed.wrapping_add(index.wrapping_mul(2) + kind).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % 100 < u64::from(percent)
    }

    /// How far the run is.
    pub fn progress(&self) -> LoadProgress {
        LoadProgress {
            planned: self.plan.purchases(),
            finished: self.finished.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            requests: self.requests.load(Relaxed),
        }
    }
}
