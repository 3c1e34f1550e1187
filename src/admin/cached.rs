//! Reads that many screens share: one at a time, and none while the last one is fresh.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The last answer to one question.
pub(super) struct Cached<T> {
    fresh: Duration,
    last: Mutex<Option<(Instant, Arc<T>)>>,
}

impl<T> Cached<T> {
    /// Nothing read yet; an answer is used again for `fresh_ms`.
    pub(super) fn new(fresh_ms: u64) -> Self {
        Self { fresh: Duration::from_millis(fresh_ms), last: Mutex::default() }
    }

    /// The fresh answer, or what `read` answers now; whoever comes meanwhile waits for that one. An error is not kept.
    pub(super) async fn get<E>(&self, read: impl Future<Output = Result<T, E>>) -> Result<Arc<T>, E> {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = last.as_ref()
            && at.elapsed() < self.fresh
        {
            return Ok(answer.clone());
        }
        let answer = Arc::new(read.await?);
        *last = Some((Instant::now(), answer.clone()));
        Ok(answer)
    }

    /// Forgets the answer, because something was changed.
    pub(super) async fn forget(&self) {
        *self.last.lock().await = None;
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
            Ok::<_, ()>(7)
        };
        let answers = futures::future::join_all((0..10).map(|_| cached.get(read()))).await;
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| **answer == 7)));
        assert_eq!(reads.load(Ordering::SeqCst), 1);
        cached.forget().await;
        cached.get(read()).await.unwrap();
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn an_error_is_asked_again() {
        let cached = Cached::new(60_000);
        assert_eq!(cached.get(async { Err::<u32, _>("away") }).await, Err("away"));
        assert_eq!(cached.get(async { Ok::<_, &str>(1) }).await.as_deref(), Ok(&1));
    }
}
