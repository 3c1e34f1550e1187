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
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, RunQueryDsl};

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
}

impl WebhookRows {
    /// Records the results of tries, some in one transaction: after an error some may be recorded. A delivery that is not waiting any
    /// more stays as it is, but for one that is dead and was taken after all. A failed try counts once: where several processes send, or a record is repeated, the first counts.
    pub async fn record_tries(&self, tried: &[TriedDelivery]) -> Result<(), DbError> {
        for some in tried.chunks(RECORDED_MAX) {
            self.db
                .run("webhooks_tried", async |conn| {
                    conn.transaction(async |conn| {
                        for one in some {
                            record_one(conn, one).await?;
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

async fn record_one(conn: &mut Conn, tried: &TriedDelivery) -> Result<(), DbError> {
    let failed = |attempts: &u16| match () {
        () if left_out!(FailureOfWaitingRow) => "TRUE".to_owned(),
        () if left_out!(TryCountsOnce) => "state = 'WAITING'".to_owned(),
        () => format!("state = 'WAITING' AND attempts = {attempts}"),
    };
    let (id, state, seconds_or_ms, problem, condition) = match tried {
        TriedDelivery::Delivered { delivery_id, keep_s } => {
            let open = if left_out!(LateSuccess) { "state = 'WAITING'" } else { "state IN ('WAITING', 'DEAD')" };
            (delivery_id, DeliveryState::Delivered, format!("{keep_s} SECOND"), None, open.to_owned())
        }
        TriedDelivery::Again { delivery_id, attempts, after_ms, problem } => {
            let later = format!("{} MICROSECOND", after_ms.saturating_mul(1000));
            (delivery_id, DeliveryState::Waiting, later, Some(problem), failed(attempts))
        }
        TriedDelivery::Dead { delivery_id, attempts, problem } => {
            (delivery_id, DeliveryState::Dead, "0 SECOND".to_owned(), Some(problem), failed(attempts))
        }
    };
    let set = format!(
        "/* webhooks::tried */ UPDATE webhook_deliveries SET state = ?, problem = ?, attempts = attempts + 1, \
         next_at = NOW(3) + INTERVAL {seconds_or_ms} WHERE delivery_id = {id} AND {condition}"
    );
    diesel::sql_query(set)
        .bind::<Text, _>(state.code())
        .bind::<diesel::sql_types::Nullable<Text>, _>(problem.map(|words| cut(words, PROBLEM_CHARS_MAX)))
        .execute(conn)
        .await?;
    Ok(())
}
