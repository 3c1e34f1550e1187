//! What the leader's tries came to, recorded in their rows.
//!
//! Input: results of tries. Output: rows that are delivered, wait again, or are dead, each under a condition on what it is by then. A
//! crash after a receiver took a delivery and before its result is recorded leaves it due, and it is sent again.

use crate::domain::webhook::DeliveryState;
use crate::events::webhooks::rows::WebhookRows;
use crate::faults::left_out;
use crate::store::mysql::codes::cut;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use diesel::sql_types::Text;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};

/// `webhook_deliveries.problem`, in characters.
const PROBLEM_CHARS_MAX: usize = 255;
/// Results in one transaction: a distant database answers them within the deadline of one call.
const RECORDED_MAX: usize = 64;

/// What a try came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriedDelivery {
    /// The receiver has it; its row may be deleted after this number of seconds.
    Delivered {
        /// The delivery.
        delivery_id: u64,
        /// Seconds that the row is kept.
        keep_s: u64,
    },
    /// It failed, and is tried again after this number of milliseconds.
    Again {
        /// The delivery.
        delivery_id: u64,
        /// Tries before this one.
        attempts: u16,
        /// Milliseconds to the next try.
        after_ms: u64,
        /// What the try met, in words.
        problem: String,
    },
    /// The last try failed.
    Dead {
        /// The delivery.
        delivery_id: u64,
        /// Tries before this one.
        attempts: u16,
        /// What the try met, in words.
        problem: String,
    },
}

impl TriedDelivery {
    /// The delivery.
    #[must_use]
    pub const fn delivery_id(&self) -> u64 {
        match self {
            Self::Delivered { delivery_id, .. } | Self::Again { delivery_id, .. } | Self::Dead { delivery_id, .. } => {
                *delivery_id
            }
        }
    }

    /// A delivery that was taken, and how many seconds its row is kept.
    const fn delivered(&self) -> Option<(u64, u64)> {
        match self {
            Self::Delivered { delivery_id, keep_s } => Some((*delivery_id, *keep_s)),
            Self::Again { .. } | Self::Dead { .. } => None,
        }
    }
}

impl WebhookRows {
    /// Records the results of tries, some in one transaction: after an error some may be recorded. A delivery that is not waiting any
    /// more stays as it is, but for one that is dead and was taken after all. A failed try counts once: where several processes send, or a record is repeated, the first counts.
    ///
    /// All that were delivered are one statement: the sender waits for it before it goes on, and a distant database would answer a few
    /// statements a second.
    pub async fn record_tries(&self, tried: &[TriedDelivery]) -> Result<(), DbError> {
        for some in tried.chunks(RECORDED_MAX) {
            self.db
                .run("webhooks_tried", async |conn| {
                    let delivered: Vec<(u64, u64)> = some.iter().filter_map(TriedDelivery::delivered).collect();
                    let kept_alike: Vec<&[(u64, u64)]> = delivered.chunk_by(|one, next| one.1 == next.1).collect();
                    if let [all] = kept_alike.as_slice()
                        && all.len() == some.len()
                    {
                        return record_delivered(conn, all).await;
                    }
                    transaction(conn, async |conn| {
                        for alike in kept_alike {
                            record_delivered(conn, alike).await?;
                        }
                        for one in some {
                            record_failed(conn, one).await?;
                        }
                        Ok::<_, DbError>(())
                    })
                    .await
                })
                .await?;
        }
        Ok(())
    }
}

/// Deliveries that were taken, and how many seconds their rows are kept: the same number for all.
async fn record_delivered(conn: &mut Conn, delivered: &[(u64, u64)]) -> Result<(), DbError> {
    let Some((_, keep_s)) = delivered.first() else { return Ok(()) };
    let open = if left_out!(LateSuccess) { "'WAITING'" } else { "'WAITING', 'DEAD'" };
    let ids: Vec<String> = delivered.iter().map(|(id, _)| id.to_string()).collect();
    let set = format!(
        "/* webhooks::tried */ UPDATE webhook_deliveries SET state = '{}', problem = NULL, attempts = attempts + 1, \
         next_at = NOW(3) + INTERVAL {keep_s} SECOND WHERE delivery_id IN ({}) AND state IN ({open})",
        DeliveryState::Delivered.code(),
        ids.join(", ")
    );
    Ok(conn.batch_execute(&set).await?)
}

async fn record_failed(conn: &mut Conn, tried: &TriedDelivery) -> Result<(), DbError> {
    let (id, attempts, state, later_ms, problem) = match tried {
        TriedDelivery::Delivered { .. } => return Ok(()),
        TriedDelivery::Again { delivery_id, attempts, after_ms, problem } => {
            (delivery_id, attempts, DeliveryState::Waiting, *after_ms, problem)
        }
        TriedDelivery::Dead { delivery_id, attempts, problem } => {
            (delivery_id, attempts, DeliveryState::Dead, 0, problem)
        }
    };
    let condition = match () {
        () if left_out!(FailureOfWaitingRow) => "TRUE".to_owned(),
        () if left_out!(TryCountsOnce) => "state = 'WAITING'".to_owned(),
        () => format!("state = 'WAITING' AND attempts = {attempts}"),
    };
    let later = later_ms.saturating_mul(1000);
    let set = format!(
        "/* webhooks::tried */ UPDATE webhook_deliveries SET state = ?, problem = ?, attempts = attempts + 1, \
         next_at = NOW(3) + INTERVAL {later} MICROSECOND WHERE delivery_id = {id} AND {condition}"
    );
    diesel::sql_query(set)
        .bind::<Text, _>(state.code())
        .bind::<Text, _>(cut(problem, PROBLEM_CHARS_MAX))
        .execute(conn)
        .await?;
    Ok(())
}
