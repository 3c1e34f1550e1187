//! One reading of the MQ DLQ, in bounds, and who was seen in it.
//!
//! Input: the MQ DLQ, held unseen by others meanwhile, one message after the other: each is a command that a quorum queue
//! writes to disk, some hundreds a second on a busy machine. So it ends with the time, the count, the bytes, or with what was
//! there at the beginning, whichever comes first; no repair waits for more. Output: the messages, the requests they are about,
//! and how many messages were not reached.
//!
//! A crash at any line gives every message that was not acknowledged back to the queue, in its place.

use crate::domain::ids::RequestId;
use crate::domain::message;
use crate::domain::request::Accepted;
use crate::store::rabbit::{DlqReader, Parked, RabbitConfig, RabbitError};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Time for reading, connecting and what is done with the messages between two of them included; one message is always
/// read. Sales are audited and repaired behind it, and the lease of the leader is 15 s: a small part of that.
const READ: Duration = Duration::from_secs(2);
/// Bytes held: a stranger's messages can be large.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a reading of the MQ DLQ saw.
#[derive(Debug, Default)]
pub struct MqSeen {
    /// The requests of the readable messages.
    pub(super) ids: HashSet<RequestId>,
    /// What they tell.
    pub(super) requests: Vec<Accepted>,
    /// Messages that were not reached, as the broker counted when the last one was read; `None` when the queue could not be
    /// read at all.
    pub unseen_count: Option<u64>,
}

/// A reading under way.
pub(super) struct Reading<'a> {
    pub reader: DlqReader,
    seen: &'a mut MqSeen,
    until: Instant,
    left: usize,
    bytes: usize,
}

impl<'a> Reading<'a> {
    /// Connects. At most `max` messages will be read, and told to `seen`.
    ///
    /// # Errors
    /// Why there is no usable connection.
    pub async fn begin(rabbit: &RabbitConfig, max: usize, seen: &'a mut MqSeen) -> Result<Self, RabbitError> {
        Self::within(READ, rabbit, max, seen).await
    }

    /// The same with more or less time.
    ///
    /// # Errors
    /// Why there is no usable connection.
    pub async fn within(
        time: Duration,
        rabbit: &RabbitConfig,
        max: usize,
        seen: &'a mut MqSeen,
    ) -> Result<Self, RabbitError> {
        let until = Instant::now() + time;
        *seen = MqSeen::default();
        let reader = DlqReader::connect(rabbit).await?;
        Ok(Self { reader, seen, until, left: max, bytes: 0 })
    }

    /// The next message; `None` at the end or at a bound.
    ///
    /// # Errors
    /// As [`DlqReader::next`]: this reading is over then, and what was seen stays told.
    pub async fn next(&mut self) -> Result<Option<Parked>, RabbitError> {
        let late = self.seen.unseen_count.is_some() && Instant::now() >= self.until;
        if late || self.left == 0 || self.bytes >= BYTES_MAX {
            return Ok(None);
        }
        let Some(parked) = self.reader.next_there().await? else {
            self.seen.unseen_count.get_or_insert(0);
            return Ok(None);
        };
        self.left -= 1;
        self.bytes += parked.body.len();
        self.seen.unseen_count = Some(u64::from(parked.behind_count));
        if let Ok(accepted) = message::decode(&parked.body) {
            self.seen.ids.insert(accepted.purchase.request_id);
            self.seen.requests.push(accepted);
        }
        Ok(Some(parked))
    }

    /// Gives everything back that was not removed.
    ///
    /// # Errors
    /// As [`DlqReader::close`].
    pub async fn close(self) -> Result<(), RabbitError> {
        self.reader.close().await
    }
}
