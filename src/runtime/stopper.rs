//! How a process stops: one signal that every task waits for.

use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The signal to stop, for every task of the process. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Stopper(CancellationToken);

impl Stopper {
    /// A stopper that has not stopped anything yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops every task that waits for it.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when the stop is requested.
    pub(crate) async fn stopped(&self) {
        self.0.cancelled().await;
    }

    /// Sleeps, at most until the stop.
    pub async fn sleep(&self, pause: Duration) {
        tokio::select! {
            () = self.stopped() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
