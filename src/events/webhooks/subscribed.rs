//! What the leader of the webhooks keeps in step with `webhook_subscriptions`: which webhooks want which events, and which receivers
//! are closed.

use super::WebhookSender;
use crate::events::webhooks::rows as webhooks;
use crate::runtime::exponential_backoff;
use crate::store::mysql::DbError;
use std::time::{Duration, Instant};

/// Whether a replay has opened a receiver is read again after this time.
const REPLAY_CHECK_EVERY: Duration = Duration::from_millis(500);
/// The subscriptions are written again after this time where the database, or the account, was of before their table. The pause
/// doubles up to a minute: each refusal costs the pool its idle connections, and the right may never come.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(5);
const SUBSCRIBE_AGAIN_MAX: Duration = Duration::from_secs(60);

impl WebhookSender {
    /// What a new leader does first: a process that changes an order writes for the webhooks of its configuration.
    pub(super) async fn subscribe(&mut self) -> Result<(), DbError> {
        if self.subscribe_at.is_none_or(|at| Instant::now() < at) {
            return Ok(());
        }
        match self.webhooks.subscribe(&self.subscriptions).await {
            Err(error) if !webhooks::is_of_before(&error) => return Err(error),
            Err(error) => self.subscribe_later(&error),
            Ok(()) if self.subscribe_refused > 0 => {
                // Receivers that answered 410 to this leader stay closed: now it can be written down.
                let disabled = self.endpoints.iter().filter(|endpoint| endpoint.is_disabled);
                self.gone = disabled.map(|endpoint| endpoint.name.clone()).collect();
                self.subscribe_at = None;
            }
            Ok(()) => {
                self.endpoints.iter_mut().for_each(|endpoint| endpoint.is_disabled = false);
                self.subscribe_at = None;
            }
        }
        Ok(())
    }

    /// A database or an account of before the table: each process writes by its own configuration, as it did. Nothing is read or
    /// written there for a while, and what is closed stays closed.
    fn subscribe_later(&mut self, error: &DbError) {
        if self.subscribe_refused == 0 {
            tracing::warn!(phase = "p6_webhooks", %error, "the subscriptions are not in the database yet");
        }
        let pause = exponential_backoff(SUBSCRIBE_AGAIN, self.subscribe_refused, SUBSCRIBE_AGAIN_MAX);
        self.subscribe_refused = self.subscribe_refused.saturating_add(1);
        self.subscribe_at = Some(Instant::now() + pause);
    }

    /// Writes down which receivers answered 410, and opens those again that a replay has opened.
    pub(super) async fn sync_disabled(&mut self) -> Result<(), DbError> {
        if self.subscribe_at.is_some() {
            // Once the subscriptions are written, all that are closed by then are written down.
            self.gone.clear();
            return Ok(());
        }
        while let Some(name) = self.gone.last() {
            match self.webhooks.disable(name).await {
                Err(error) if !webhooks::is_of_before(&error) => return Err(error),
                Err(error) => {
                    self.subscribe_later(&error);
                    return Ok(());
                }
                Ok(()) => self.gone.pop(),
            };
        }
        self.subscribe_refused = 0;
        let now = Instant::now();
        if now < self.next_replay_check || !self.endpoints.iter().any(|endpoint| endpoint.is_disabled) {
            return Ok(());
        }
        self.next_replay_check = now + REPLAY_CHECK_EVERY;
        let stored = match self.webhooks.stored().await {
            Err(error) if !webhooks::is_of_before(&error) => return Err(error),
            Err(error) => {
                self.subscribe_later(&error);
                return Ok(());
            }
            Ok(stored) => stored,
        };
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.is_disabled) {
            let row = stored.iter().find(|row| row.webhook == endpoint.name);
            endpoint.is_disabled = row.is_none_or(|row| row.disabled_at_ms.is_some());
        }
        Ok(())
    }
}
