//! One scan of the MQ DLQ, in bounds, and the requests in it.
//!
//! Input: the MQ DLQ; meanwhile no other reader gets its messages. Each message is a command that a quorum queue writes to disk,
//! some hundreds a second on a busy machine. So the scan ends with the time, the count, the bytes, or the last message that was
//! there at the beginning, whichever comes first; no repair waits for more. Output: the messages, the requests they are about,
//! and how many messages were not reached.
//!
//! A crash at any line gives every message that was not acknowledged back to the queue, in its place.

use crate::domain::ids::RequestId;
use crate::domain::message::{self, OrderMessage};
use crate::store::rabbit::{DlqReader, ParkedMessage, RabbitConfig, RabbitError};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Time for the scan, with connecting and with the work between two messages; one message is always read. The sales of the round
/// wait for it; the leader's lease of 6 s is renewed meanwhile.
const TIME: Duration = Duration::from_secs(2);
/// Bytes held: messages of other systems can be large.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a scan of the MQ DLQ read.
#[derive(Debug, Default)]
pub struct MqDlqContents {
    /// The requests of the readable messages.
    pub(in crate::p5_reconcile) ids: HashSet<RequestId>,
    /// The same with their content.
    pub(in crate::p5_reconcile) requests: Vec<OrderMessage>,
    /// Messages that were not reached, as the broker counted when the last one was read; `None` when the queue could not be
    /// read at all.
    pub unseen_count: Option<u64>,
}

/// A scan under way.
pub(in crate::p5_reconcile) struct MqDlqScan<'a> {
    pub reader: DlqReader,
    contents: &'a mut MqDlqContents,
    until: Instant,
    left: usize,
    bytes: usize,
}

impl<'a> MqDlqScan<'a> {
    /// Connects. The scan reads at most `max` messages, and adds their requests to `contents`.
    pub(crate) async fn begin(
        rabbit: &RabbitConfig,
        max: usize,
        contents: &'a mut MqDlqContents,
    ) -> Result<Self, RabbitError> {
        Self::within(TIME, rabbit, max, contents).await
    }

    /// The same with another time.
    pub(crate) async fn within(
        time: Duration,
        rabbit: &RabbitConfig,
        max: usize,
        contents: &'a mut MqDlqContents,
    ) -> Result<Self, RabbitError> {
        let until = Instant::now() + time;
        *contents = MqDlqContents::default();
        let reader = DlqReader::connect(rabbit).await?;
        Ok(Self { reader, contents, until, left: max, bytes: 0 })
    }

    /// The next message; `None` at the end or at a bound. After an error the scan is over; its contents are right so far.
    pub(crate) async fn next(&mut self) -> Result<Option<ParkedMessage>, RabbitError> {
        let late = self.contents.unseen_count.is_some() && Instant::now() >= self.until;
        if late || self.left == 0 || self.bytes >= BYTES_MAX {
            return Ok(None);
        }
        let Some(parked) = self.reader.next_there().await? else {
            self.contents.unseen_count.get_or_insert(0);
            return Ok(None);
        };
        self.left -= 1;
        self.bytes += parked.body.len();
        self.contents.unseen_count = Some(u64::from(parked.behind_count));
        if let Ok(accepted) = message::decode(&parked.body) {
            self.contents.ids.insert(accepted.purchase.request_id);
            self.contents.requests.push(accepted);
        }
        Ok(Some(parked))
    }

    /// Gives everything back that was not removed.
    pub(crate) async fn close(self) -> Result<(), RabbitError> {
        self.reader.close().await
    }
}
