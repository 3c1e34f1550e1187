//! What the leader of the webhooks keeps in step with `webhook_subscriptions`: which webhooks want which events, and which receivers
//! are closed.

use super::WebhookSender;
use crate::events::webhooks::rows as webhooks;
use crate::store::mysql::DbError;
use std::time::{Duration, Instant};

/// Whether a replay has opened a receiver is read again after this time.
const REPLAY_CHECK_EVERY: Duration = Duration::from_millis(500);
/// The subscriptions are written again after this time where the database, or the account, was of before their table.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(5);

impl WebhookSender {
    /// What a new leader does first: a process that changes an order writes for the webhooks of its configuration.
    pub(super) async fn subscribe(&mut self) -> Result<(), DbError> {
        if self.subscribe_at.is_none_or(|at| Instant::now() < at) {
            return Ok(());
        }
        match self.webhooks.subscribe(&self.subscriptions).await {
            Err(error) if !webhooks::is_of_before(&error) => return Err(error),
            // A database or an account of before the table: each process writes by its own configuration, as it did.
            Err(error) => {
                if !self.cannot_subscribe_yet {
                    tracing::warn!(phase = "p6_webhooks", %error, "the subscriptions are not in the database yet");
                }
                (self.subscribe_at, self.cannot_subscribe_yet) = (Some(Instant::now() + SUBSCRIBE_AGAIN), true);
            }
            Ok(()) if self.cannot_subscribe_yet => {
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

    /// Writes down which receivers answered 410, and opens those again that a replay has opened.
    pub(super) async fn sync_disabled(&mut self) -> Result<(), DbError> {
        while let Some(name) = self.gone.last() {
            match self.webhooks.disable(name).await {
                Err(error) if !webhooks::is_of_before(&error) => return Err(error),
                Err(error) => {
                    tracing::warn!(phase = "p6_webhooks", %error, "that a receiver answers 410 is not in the database");
                }
                Ok(()) => {}
            }
            self.gone.pop();
        }
        let now = Instant::now();
        if now < self.next_replay_check || !self.endpoints.iter().any(|endpoint| endpoint.is_disabled) {
            return Ok(());
        }
        self.next_replay_check = now + REPLAY_CHECK_EVERY;
        let stored = self.webhooks.stored().await?;
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.is_disabled) {
            let row = stored.iter().find(|row| row.webhook == endpoint.name);
            endpoint.is_disabled = row.is_none_or(|row| row.disabled_at_ms.is_some());
        }
        Ok(())
    }
}
