//! What a crowd is to do: who buys, how many at a time, how stubbornly.

use super::access_tokens::AccessTokens;
use super::load_error::LoadError;
use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill::runtime::Stopper;
use std::sync::Arc;

/// Most buyers of one run: their access tokens are held in memory, about 200 bytes each.
pub const BUYERS_MAX: u64 = 1_000_000;
/// Most purchases of one run, all buyers together.
pub const PURCHASES_MAX: u64 = 100_000_000;
/// Most connections of one run; each needs a local port and two file descriptors' worth of memory.
pub const CONNECTIONS_MAX: u32 = 10_000;
/// Most repeats of one purchase.
pub const RETRIES_MAX: u32 = 1_000;

/// Called a few times a second, and once at the end. Must return at once.
pub type OnLoadProgress = Arc<dyn Fn(LoadProgress) + Send + Sync>;

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct LoadProgress {
    /// Purchases planned.
    pub planned: u64,
    /// Purchases finished, whatever came of them.
    pub finished: u64,
    /// Purchases that were answered with "accepted"; replays are not counted again.
    pub accepted: u64,
    /// Purchase requests sent, repeats included.
    pub requests: u64,
}

/// One run of a crowd. Start from [`LoadPlan::new`] and change what differs.
#[derive(Clone)]
pub struct LoadPlan {
    /// `http://host:port` of the public API.
    pub api_url: String,
    /// What they buy.
    pub sale_id: SaleId,
    /// HMAC key of the access tokens.
    pub secret: Secret,
    /// The buyers' access tokens, signed before; else they are signed with `secret`.
    pub access: Option<Arc<AccessTokens>>,
    /// `iss` of the access tokens.
    pub issuer: String,
    /// `aud` of the access tokens.
    pub audience: String,
    /// How many buyers, 1 … [`BUYERS_MAX`].
    pub buyers: u64,
    /// Number of the first buyer, so that runs need not share buyers.
    pub first_buyer: u64,
    /// Connections kept busy at a time, 1 … [`CONNECTIONS_MAX`].
    pub connections: u32,
    /// Purchases of each buyer. Everyone has the first one before anyone has the second.
    pub requests_per_buyer: u64,
    /// Units of each purchase, at least 1.
    pub quantity: u32,
    /// Enter the sale's line instead of buying: an entry counts as accepted.
    pub enters_line: bool,
    /// Get a purchase token first and send it as `Idempotency-Key`.
    pub tokens: bool,
    /// Ask for the status once after each accepted purchase.
    pub asks_status: bool,
    /// Wait in the sale's waiting room first, and ask for the token with the ticket. Needs `tokens`.
    pub room: bool,
    /// Of a hundred answered purchases, how many are sent again with the same token. Needs `tokens`.
    pub duplicate_percent: u8,
    /// Of a hundred purchases, how many are followed by another purchase of the same buyer.
    pub other_retry_percent: u8,
    /// Repeats of one purchase after 429, 503, 504 or a broken connection, at most [`RETRIES_MAX`].
    pub max_retries: u32,
    /// Longest wait before a repeat, milliseconds, whatever `Retry-After` says. Lower it to make tests quick.
    pub retry_wait_max_ms: u64,
    /// Deadline for connecting, and again for each request with its answer, milliseconds.
    pub timeout_ms: u64,
    /// Purchases a second over all connections, sent on time whether or not earlier ones were answered (as far as there are
    /// idle connections; a late one counts its wait as latency). `None`: each connection buys again as soon as it is answered.
    pub rate_per_s: Option<f64>,
    /// Warm-up: this number of first purchases is not in the latencies, but in everything else.
    pub unmeasured: u64,
    /// Keep every buyer's final answer; about 56 bytes a purchase.
    pub keep_history: bool,
    /// Which purchases are duplicated or followed by another one: the same seed, the same ones.
    pub seed: u64,
    /// Ends the run early; purchases under way are finished.
    pub stop: Stopper,
    /// BuyerAnswer how far the run is.
    pub progress: Option<OnLoadProgress>,
}

impl LoadPlan {
    /// 1,000 buyers with one purchase of one unit each over 64 connections, as fast as they are answered, without tokens.
    #[must_use]
    pub fn new(api_url: impl Into<String>, sale_id: SaleId, secret: Secret) -> Self {
        Self {
            api_url: api_url.into(),
            sale_id,
            secret,
            access: None,
            issuer: "seckill".to_owned(),
            audience: "seckill".to_owned(),
            buyers: 1_000,
            first_buyer: 0,
            connections: 64,
            requests_per_buyer: 1,
            enters_line: false,
            quantity: 1,
            tokens: false,
            asks_status: false,
            room: false,
            duplicate_percent: 0,
            other_retry_percent: 0,
            max_retries: 10,
            retry_wait_max_ms: 1_000,
            timeout_ms: 5_000,
            rate_per_s: None,
            unmeasured: 0,
            keep_history: false,
            seed: 1,
            stop: Stopper::new(),
            progress: None,
        }
    }

    /// Planned purchases, without the extra ones of `other_retry_percent`.
    #[must_use]
    pub const fn purchases(&self) -> u64 {
        self.buyers.saturating_mul(self.requests_per_buyer)
    }

    /// Whether the plan can be run.
    ///
    /// # Errors
    /// [`LoadError::Plan`] naming the field and what would be accepted.
    pub fn check(&self) -> Result<(), LoadError> {
        let rules = [
            (self.buyers >= 1 && self.buyers <= BUYERS_MAX, "buyers must be 1 to 1,000,000"),
            (self.first_buyer <= u64::MAX / 2, "first_buyer must be below 2^63"),
            (self.connections >= 1 && self.connections <= CONNECTIONS_MAX, "connections must be 1 to 10,000"),
            (self.requests_per_buyer >= 1, "requests_per_buyer must be at least 1"),
            (self.purchases() <= PURCHASES_MAX, "buyers times requests_per_buyer must be at most 100,000,000"),
            (self.quantity >= 1, "quantity must be at least 1"),
            (self.duplicate_percent <= 100 && self.other_retry_percent <= 100, "percentages must be 0 to 100"),
            (self.tokens || self.duplicate_percent == 0, "duplicate_percent needs tokens"),
            (self.tokens || !self.room, "room needs tokens"),
            (self.max_retries <= RETRIES_MAX, "max_retries must be at most 1,000"),
            (self.timeout_ms >= 1 && self.timeout_ms <= 600_000, "timeout_ms must be 1 to 600,000"),
            (self.retry_wait_max_ms <= 600_000, "retry_wait_max_ms must be at most 600,000"),
            (self.rate_per_s.is_none_or(|rate| (0.001..=1e6).contains(&rate)), "rate_per_s must be 0.001 to 1,000,000"),
        ];
        rules.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, rule)| Err(LoadError::Plan(rule)))
    }
}

/// The `sub` of buyer number `no`, different for each below 100,000,000. Buyers do not come in the order of their names: what an index by
/// buyer costs shows only so.
#[must_use]
pub fn buyer_name(no: u64) -> String {
    // Coprime to the number of names, so no two numbers share one.
    const SCATTER: u64 = 61_803_399;
    const NAMES: u64 = 100_000_000;
    format!("buyer-{:08}", (no % NAMES) * SCATTER % NAMES)
}
