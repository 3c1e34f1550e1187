//! Webhooks (L5): one process at a time sends the deliveries that wait in the database, some at once, each receiver by itself.
//!
//! Input: rows of `webhook_deliveries`, by the clock of the database. Output: signed HTTP calls, each event at least once unless
//! its tries run out (DEAD), and the result of every try. A crash leaves what was under way due: the next leader sends it again, under the same id. Two leaders do no
//! harm but to send twice.
//!
//! A slow receiver holds its own places only. One that answers 410 gets nothing more until a replay opens it again, or another leader
//! starts; its rows wait.
//!
//! Here is the sender; `endpoint` decides what follows from a try, `receiver` makes one HTTP call, `rows` has the tables, `deliveries` is
//! what a person reads and repeats.

mod cursor;
pub mod deliveries;
mod endpoint;
mod figures;
pub(crate) mod forms;
mod receiver;
pub mod rows;
pub(crate) mod signer;
mod subscribed;

use crate::config::{Settings, WebhookDelivery};
use crate::domain::fault::{Fault, Progress};
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::webhooks::rows::{TriedDelivery, WebhookRows};
use crate::faults::{crash_point, left_out};
use crate::runtime::Worker;
use crate::store::mysql::DbError;
use crate::store::mysql::leader_election::LeaderElection;
use crate::store::tls::{TlsError, TlsFiles, Trust};
use endpoint::{EndedTry, WebhookEndpoint};
use figures::WebhookGauges;
use futures::FutureExt;
use receiver::{Receiver, TryOutcome};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A webhook without due deliveries is read again after this time.
const READ_AGAIN: Duration = Duration::from_millis(200);
/// Longest wait for the end of a try in one step.
const STEP_WAIT: Duration = Duration::from_millis(100);
/// Pages are this many times as long as there are places, so that not each delivery is a read.
const PAGE_FACTOR: u16 = 4;
/// What is under way at a stop may take this long to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Why webhooks cannot be sent with these settings.
#[derive(Debug, thiserror::Error)]
pub enum WebhookSetupError {
    /// An address.
    #[error("webhooks: {0:?}: url: {1}")]
    Url(String, String),
    /// The certificates for receivers.
    #[error(transparent)]
    Trust(#[from] TlsError),
}

/// The sender of one process.
pub struct WebhookSender {
    webhooks: WebhookRows,
    settings: WebhookDelivery,
    election: LeaderElection,
    endpoints: Vec<WebhookEndpoint>,
    tries: JoinSet<EndedTry>,
    /// Results that the database does not have yet; while there are any, nothing is begun.
    unrecorded: Vec<(usize, TriedDelivery)>,
    gauges: WebhookGauges,
    /// The webhook that is served first in the next step.
    first: usize,
    subscriptions: WebhookSubscriptions,
    /// When this leader writes them; `None`: the database has them.
    subscribe_at: Option<Instant>,
    /// How often this was refused in a row: their table is not there, or not for this account.
    subscribe_refused: u32,
    /// Receivers that answered 410, which the database does not have yet.
    gone: Vec<String>,
    /// When the leader reads again whether a replay has opened a receiver that answered 410.
    next_replay_check: Instant,
}

impl WebhookSender {
    /// A sender that waits to be the leader.
    ///
    /// # Errors
    /// [`WebhookSetupError`] when a certificate or an address cannot be used.
    pub(crate) fn new(
        webhooks: &WebhookRows,
        election: LeaderElection,
        settings: &Settings,
    ) -> Result<Self, WebhookSetupError> {
        let delivery = settings.webhook_delivery.clone();
        let encrypts = settings.webhooks.iter().any(|webhook| webhook.url.is_encrypted());
        let files = TlsFiles { section: "webhook_delivery", ca: &delivery.tls_ca_file, cert: "", key: "" };
        let trust = if encrypts { Some(Trust::read(files)?) } else { None };
        let endpoint = |webhook: &crate::config::Webhook| {
            let receiver = Receiver::new(webhook, trust.as_ref(), &delivery)
                .map_err(|problem| WebhookSetupError::Url(webhook.name.clone(), problem))?;
            Ok(WebhookEndpoint::new(webhook.name.clone(), receiver))
        };
        let endpoints = settings.webhooks.iter().map(endpoint).collect::<Result<Vec<_>, WebhookSetupError>>()?;
        let names = endpoints.iter().map(|endpoint| endpoint.name.clone()).collect();
        Ok(Self {
            webhooks: webhooks.clone(),
            settings: delivery,
            election,
            endpoints,
            tries: JoinSet::new(),
            unrecorded: Vec::new(),
            gauges: WebhookGauges::new(names),
            first: 0,
            subscriptions: settings.webhook_subscriptions(),
            subscribe_at: Some(Instant::now()),
            subscribe_refused: 0,
            gone: Vec::new(),
            next_replay_check: Instant::now(),
        })
    }

    /// Another process may lead: what is under way is cut off and sent by that one.
    fn stop_leading(&mut self) {
        self.tries = JoinSet::new();
        self.unrecorded.clear();
        self.gone.clear();
        (self.subscribe_at, self.subscribe_refused) = (Some(Instant::now()), 0);
        self.endpoints.iter_mut().for_each(WebhookEndpoint::stop_leading);
        self.gauges.stop_leading();
    }

    /// Takes the tries that have ended, after a short wait for the first one.
    async fn collect(&mut self, wait: Duration) {
        let Ok(Some(first)) = tokio::time::timeout(wait, self.tries.join_next()).await else { return };
        self.take(first);
        while let Some(next) = self.tries.try_join_next() {
            self.take(next);
        }
    }

    fn take(&mut self, ended: Result<EndedTry, tokio::task::JoinError>) {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(phase = "p6_webhooks", %error, "a try was cut off");
                return;
            }
        };
        let Some(endpoint) = self.endpoints.get_mut(ended.endpoint) else { return };
        let tried = endpoint.follow(&ended, &self.settings.retry_ms, self.settings.retention_s);
        figures::count_try(&endpoint.name, &ended, &tried);
        if ended.outcome == TryOutcome::Gone {
            self.gone.push(endpoint.name.clone());
            tracing::error!(
                phase = "p6_webhooks",
                webhook = endpoint.name,
                "the receiver answers 410: nothing more is sent to it"
            );
        }
        self.unrecorded.push((ended.endpoint, tried));
    }

    /// Writes down what tries came to.
    async fn record(&mut self) -> Result<(), DbError> {
        if self.unrecorded.is_empty() {
            return Ok(());
        }
        crash_point!(WebhookAnswered);
        let tried: Vec<TriedDelivery> = self.unrecorded.iter().map(|(_, tried)| tried.clone()).collect();
        self.webhooks.record_tries(&tried).await?;
        crash_point!(WebhookRecorded);
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            let of = self.unrecorded.iter().filter(|(endpoint, _)| *endpoint == at);
            figures::log_dead(&endpoint.name, of.map(|(_, tried)| tried));
        }
        for (endpoint, tried) in self.unrecorded.drain(..) {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
                endpoint.under_way.remove(&tried.delivery_id());
            }
        }
        Ok(())
    }

    /// Begins as many tries as there are places for. Returns how many.
    async fn begin(&mut self) -> Result<usize, DbError> {
        let count = self.endpoints.len();
        let mut begun = 0;
        for turn in 0..count {
            begun += self.begin_at((self.first + turn) % count).await?;
        }
        self.first = self.first.wrapping_add(1) % count.max(1);
        Ok(begun)
    }

    async fn begin_at(&mut self, at: usize) -> Result<usize, DbError> {
        let (all_max, each_max) = (self.settings.in_flight_max, self.settings.in_flight_each_max);
        let Some(endpoint) = self.endpoints.get_mut(at) else { return Ok(0) };
        let now = Instant::now();
        let free = usize::from(each_max)
            .saturating_sub(endpoint.under_way.len())
            .min(usize::from(all_max).saturating_sub(self.tries.len()));
        if free == 0 || !endpoint.is_open(now) {
            return Ok(0);
        }
        if endpoint.loaded.is_empty() && now >= endpoint.next_read_at {
            let places = each_max.saturating_mul(PAGE_FACTOR);
            let page = self.webhooks.due(&endpoint.name, places.saturating_add(each_max)).await?;
            let new = page.into_iter().filter(|due| !endpoint.under_way.contains(&due.delivery_id));
            endpoint.loaded.extend(new);
            if endpoint.loaded.is_empty() {
                endpoint.next_read_at = now + READ_AGAIN;
            } else {
                crash_point!(WebhookChosen);
            }
        }
        let begin = free.min(endpoint.loaded.len());
        for delivery in endpoint.loaded.drain(..begin) {
            if left_out!(DeliveredAfterAnswer) {
                let (delivery_id, keep_s) = (delivery.delivery_id, self.settings.retention_s);
                self.webhooks.record_tries(&[TriedDelivery::Delivered { delivery_id, keep_s }]).await?;
            }
            endpoint.under_way.insert(delivery.delivery_id);
            let receiver = endpoint.receiver.clone();
            self.tries.spawn(async move {
                let since = Instant::now();
                // A panic is a failed try: its place is free again, and its pauses grow.
                let outcome = AssertUnwindSafe(receiver.try_once(&delivery)).catch_unwind().await;
                let outcome = outcome.unwrap_or_else(|_panic| TryOutcome::died());
                let (delivery_id, attempts) = (delivery.delivery_id, delivery.attempts);
                EndedTry { endpoint: at, delivery_id, attempts, outcome, took: since.elapsed() }
            });
        }
        Ok(begin)
    }
}

impl Worker for WebhookSender {
    fn name(&self) -> &'static str {
        "p6_webhooks"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        // An election that failed may have another winner.
        let elected = self.election.run().await.inspect_err(|_| self.stop_leading()).map_err(Fault::back_off)?;
        if !elected {
            self.stop_leading();
            return Ok(Progress::Idle);
        }
        self.subscribe().await.map_err(Fault::back_off)?;
        self.collect(STEP_WAIT).await;
        self.record().await.map_err(Fault::back_off)?;
        self.sync_disabled().await.map_err(Fault::back_off)?;
        let begun = self.begin().await.map_err(Fault::back_off)?;
        let disabled = |endpoint: &&WebhookEndpoint| endpoint.is_disabled;
        let disabled: Vec<&str> = self.endpoints.iter().filter(disabled).map(|of| of.name.as_str()).collect();
        self.gauges.measure(&self.webhooks, &disabled);
        Ok(if begun > 0 || !self.tries.is_empty() { Progress::Moved(begun) } else { Progress::Idle })
    }

    async fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while !self.tries.is_empty() && Instant::now() < until {
            self.collect(STEP_WAIT).await;
        }
        if let Err(error) = self.record().await {
            tracing::warn!(phase = "p6_webhooks", %error, "the last results are not recorded, these events are sent again");
        }
        self.stop_leading();
    }
}
