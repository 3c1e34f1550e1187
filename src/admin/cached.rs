//! Reads that many screens share: one at a time, and none while the last answer is fresh.
//!
//! Input: a read. Output: its answer, or the last one. A read that was under way when something changed may be shown until it
//! is not fresh any more. A crash leaves nothing.

use moka::future::Cache;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The last answer to one question.
pub(super) struct Cached<T>(Cache<(), Arc<T>>);

impl<T: Send + Sync + 'static> Cached<T> {
    /// Nothing read yet; an answer is used again for `fresh_ms`.
    pub(super) fn new(fresh_ms: u64) -> Self {
        Self(Cache::builder().max_capacity(1).time_to_live(Duration::from_millis(fresh_ms)).build())
    }

    /// The fresh answer, or what `read` answers now; concurrent callers share one read.
    pub(super) async fn get(&self, read: impl Future<Output = T>) -> Arc<T> {
        self.0.get_with((), async { Arc::new(read.await) }).await
    }

    /// As [`Cached::get`], for a read that can fail. An error is not kept.
    pub(super) async fn try_get<E: Clone + Send + Sync + 'static>(
        &self,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        let read = async { read.await.map(Arc::new) };
        self.0.try_get_with((), read).await.map_err(|error| (*error).clone())
    }

    /// Forgets the answer, because something was changed.
    pub(super) async fn forget(&self) {
        self.0.invalidate(&()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn many_screens_are_one_read() {
        let (cached, reads) = (Cached::new(60_000), AtomicU32::new(0));
        let read = || async {
            reads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            7
        };
        let answers = futures::future::join_all((0..10).map(|_| cached.get(read()))).await;
        assert!(answers.iter().all(|answer| **answer == 7));
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        cached.forget().await;
        cached.get(read()).await;
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let cached = Cached::new(60_000);
        assert_eq!(cached.try_get(async { Err::<u32, _>("unavailable") }).await, Err("unavailable"));
        assert_eq!(cached.try_get(async { Ok::<_, &str>(1) }).await.as_deref(), Ok(&1));
    }
}
