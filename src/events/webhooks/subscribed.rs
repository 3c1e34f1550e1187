//! What the leader of the webhooks keeps in step with `webhook_subscriptions`: which webhooks want which events, and which receivers
//! are closed.

use super::WebhookSender;
use crate::events::webhooks::rows as webhooks;
use crate::faults::left_out;
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
        let answer = self.webhooks.subscribe(&self.subscriptions).await;
        let was_refused = self.subscribe_refused > 0;
        if self.of_table(answer)?.is_none() {
            return Ok(());
        }
        if was_refused {
            // Receivers that answered 410 to this leader stay closed: now it can be written down.
            let disabled = self.endpoints.iter().filter(|endpoint| endpoint.is_disabled);
            self.gone = disabled.map(|endpoint| endpoint.name.clone()).collect();
        } else {
            self.endpoints.iter_mut().for_each(|endpoint| endpoint.is_disabled = false);
        }
        self.subscribe_at = None;
        Ok(())
    }

    /// What the table answered; `None` where it, or the right to it, is not there: the subscriptions are written again later.
    fn of_table<T>(&mut self, answer: Result<T, DbError>) -> Result<Option<T>, DbError> {
        match answer {
            Err(error) if webhooks::is_of_before(&error) => {
                self.subscribe_later(&error);
                Ok(None)
            }
            answer => answer.map(Some),
        }
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
        if left_out!(GoneIsWritten) {
            self.gone.clear();
        }
        while let Some(name) = self.gone.last() {
            let answer = self.webhooks.disable(name).await;
            if self.of_table(answer)?.is_none() {
                return Ok(());
            }
            self.gone.pop();
        }
        self.subscribe_refused = 0;
        let now = Instant::now();
        if now < self.next_replay_check || !self.endpoints.iter().any(|endpoint| endpoint.is_disabled) {
            return Ok(());
        }
        self.next_replay_check = now + REPLAY_CHECK_EVERY;
        let answer = self.webhooks.stored().await;
        let Some(stored) = self.of_table(answer)? else { return Ok(()) };
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.is_disabled) {
            let row = stored.iter().find(|row| row.webhook == endpoint.name);
            endpoint.is_disabled = row.is_none_or(|row| row.disabled_at_ms.is_some());
        }
        Ok(())
    }
}
