//! Several processes do the same to a sale at once (an api process warms a sale that is due, an operator does, too), and a cluster of
//! the database undoes the work of all but one. The loser tries again: every verb may be repeated.
//!
//! Input: a verb. Output: what it came to, after a few tries. A crash leaves what one try leaves.

use super::control_error::SaleControlError;
use crate::runtime::{exponential_backoff, jittered};
use crate::sales::rows::error::SaleError;
use crate::store::mysql::DbError;
use std::time::Duration;

/// Tries in all, with the pauses about a second.
const TRIES: u32 = 8;
/// Before the second try; doubles.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(300);

/// The result of `work`, which is begun again when contention undid it. In a box: a warm-up is deep enough without this.
pub(super) async fn again_after_contention<T, F>(work: impl Fn() -> F) -> Result<T, SaleControlError>
where
    F: Future<Output = Result<T, SaleControlError>>,
{
    for tried in 0..TRIES - 1 {
        match Box::pin(work()).await {
            Err(error) if is_contention(&error) => {
                tokio::time::sleep(jittered(exponential_backoff(PAUSE, tried, PAUSE_MAX))).await;
            }
            done => return done,
        }
    }
    Box::pin(work()).await
}

fn is_contention(error: &SaleControlError) -> bool {
    matches!(
        error,
        SaleControlError::Database(DbError::Deadlock) | SaleControlError::Sale(SaleError::Db(DbError::Deadlock))
    )
}
