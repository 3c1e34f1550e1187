//! Reading what is parked. Changes nothing: messages of the MQ DLQ are held until the sweep is put back or dropped, which gives
//! those that were not removed back to the queue.

use super::entry::{DlqEntry, DlqError, DlqListing, DlqPlace, DlqSource};
use crate::domain::ids::RequestId;
use crate::orders::rows::failed_requests::FailedRequest;
use crate::p5_reconcile::context::ReconcileContext;
use crate::p5_reconcile::ledger_lookup;
use crate::p5_reconcile::pages::{OpenFailurePages, RelayDlqPages};
use crate::store::mysql::codes::Reporter;
use crate::store::rabbit::{DlqReader, HeaderValue, ParkedMessage, attempts};
use crate::store::redis::ParkedEntry;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Messages of the MQ DLQ read at once; more are left for the next time.
const MESSAGES_MAX: usize = 10_000;
/// Pages read of each other place, 10,000 entries.
const PAGES_MAX: usize = 10;
/// Pause before an empty MQ DLQ is read again.
const PAUSE: Duration = Duration::from_millis(200);
/// Reads of an empty MQ DLQ after the first one.
const READS_MORE: u32 = 3;

/// Everything parked, with the reader that holds the broker's part.
pub(super) struct DlqSweep {
    pub entries: Vec<DlqEntry>,
    pub more: bool,
    pub reader: Option<DlqReader>,
}

/// What is parked, with the database's outcome of each request. Changes nothing.
pub(crate) async fn list(context: &ReconcileContext, source: Option<DlqSource>) -> Result<DlqListing, DlqError> {
    let mut listing = sweep(context, source).await?.put_back().await?;
    let ids: Vec<RequestId> = listing.entries.iter().filter_map(|entry| entry.request_id).collect();
    let decided = context.rows.requests.outcomes_of(&ids).await?;
    for entry in &mut listing.entries {
        entry.outcome = entry.request_id.and_then(|id| decided.get(&id)).map(|decided| decided.outcome);
    }
    Ok(listing)
}

/// Collects what is parked in the places of `source` (all without one).
pub(super) async fn sweep(context: &ReconcileContext, source: Option<DlqSource>) -> Result<DlqSweep, DlqError> {
    let mut sweep = DlqSweep { entries: Vec::new(), more: false, reader: None };
    if source != Some(DlqSource::Mq) {
        for shard in 0..context.shards {
            sweep.add_relay(context, shard).await?;
        }
    }
    if source != Some(DlqSource::Relay) {
        sweep.add_mq(context).await?;
    }
    sweep.add_failed_requests(context, source).await?;
    for entry in sweep.entries.iter_mut().filter(|entry| entry.accepted.is_none()) {
        // The message is damaged, the ledger still knows what was accepted.
        if let Some(id) = entry.request_id {
            let known = ledger_lookup::order_message(context, id, entry.sale_id.as_ref()).await?;
            entry.set_accepted(known);
        }
    }
    Ok(sweep)
}

impl DlqSweep {
    /// Gives what was not removed back to the broker.
    pub(crate) async fn put_back(self) -> Result<DlqListing, DlqError> {
        if let Some(reader) = self.reader {
            reader.close().await?;
        }
        Ok(DlqListing { entries: self.entries, more: self.more })
    }

    async fn add_relay(&mut self, context: &ReconcileContext, shard: u16) -> Result<(), DlqError> {
        let mut pages = RelayDlqPages::new(&context.redis.relay_dlq, shard);
        for _ in 0..PAGES_MAX {
            let Some(page) = pages.next().await? else { break };
            self.entries.extend(page.into_iter().map(|parked| of_relay(shard, parked)));
        }
        self.more |= !pages.ended();
        Ok(())
    }

    async fn add_mq(&mut self, context: &ReconcileContext) -> Result<(), DlqError> {
        let mut reader = DlqReader::connect(&context.rabbit).await?;
        let (mut read_again_count, mut count) = (0, 0);
        while count < MESSAGES_MAX {
            match reader.next().await? {
                Some(parked) => {
                    self.entries.push(of_mq(parked));
                    count += 1;
                }
                // An audit or P5 may hold the messages for a moment.
                None if read_again_count < READS_MORE => {
                    read_again_count += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                None => break,
            }
        }
        self.more |= count == MESSAGES_MAX;
        self.reader = Some(reader);
        Ok(())
    }

    async fn add_failed_requests(
        &mut self,
        context: &ReconcileContext,
        source: Option<DlqSource>,
    ) -> Result<(), DlqError> {
        let reporter = source.map(|source| match source {
            DlqSource::Relay => Reporter::RelayDlq,
            DlqSource::Mq => Reporter::MqDlq,
        });
        let mut pages = OpenFailurePages::new(&context.rows.register, None);
        for _ in 0..PAGES_MAX {
            let Some(page) = pages.next().await? else { break };
            let mine = page.into_iter().filter(|row| reporter.is_none_or(|reporter| row.reporter == reporter));
            self.entries.extend(mine.map(of_failed_request));
        }
        self.more |= !pages.ended();
        Ok(())
    }
}

fn of_relay(shard: u16, parked: ParkedEntry) -> DlqEntry {
    let place = DlqPlace::Relay { shard, id: parked.id.clone() };
    let mut entry = DlqEntry::new(format!("relay/{shard}/{}", parked.id), place, parked.payload);
    entry.request_id = entry.request_id.or(parked.request_id);
    entry.sale_id = entry.sale_id.or(parked.sale_id);
    entry.reason = parked.reason;
    entry.attempts = Some(parked.attempts);
    entry.parked_at_ms = Some(parked.parked_at_ms);
    entry
}

/// Why a message is in the MQ DLQ: a code, and words after a colon.
pub(super) fn reason_of(parked: &ParkedMessage) -> String {
    let header = |name: &str| parked.headers.get(name).map(HeaderValue::to_string);
    match (header("x-seckill-reason"), header("x-seckill-detail"), header("x-first-death-reason")) {
        (Some(code), Some(detail), _) => format!("{code}: {detail}"),
        (Some(code), None, _) => code,
        (None, _, Some(broker)) => format!("BROKER: {broker}"),
        (None, _, None) => "UNTOLD".to_owned(),
    }
}

/// The request id that the message came with; its relay wrote it there.
pub(super) fn request_id_of(parked: &ParkedMessage) -> Option<RequestId> {
    parked.message_id.as_deref().and_then(|id| RequestId::parse(id).ok())
}

fn of_mq(parked: ParkedMessage) -> DlqEntry {
    let reason = reason_of(&parked);
    let tried = attempts(&parked.headers);
    let named = request_id_of(&parked);
    let name = format!("mq/{}", fingerprint(&parked.body));
    let payload = parked.body.clone();
    let mut entry = DlqEntry::new(name, DlqPlace::Mq(Box::new(parked)), payload);
    entry.request_id = entry.request_id.or(named);
    entry.reason = reason;
    entry.attempts = Some(tried);
    entry
}

fn of_failed_request(row: FailedRequest) -> DlqEntry {
    let mut entry = DlqEntry::new(format!("register/{}", row.request_id), DlqPlace::FailedRequest, row.payload);
    entry.request_id = Some(row.request_id);
    entry.sale_id = Some(row.sale_id);
    entry.user_id = Some(row.user_id);
    entry.quantity = Some(row.quantity);
    entry.reason = format!("{}: {}", row.reason, row.detail);
    entry.parked_at_ms = Some(row.created_at_ms);
    entry
}

/// The first 12 hex digits of SHA-256: the broker gives its messages no names of their own.
fn fingerprint(body: &[u8]) -> String {
    Sha256::digest(body).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::domain::ids::SaleId;

    /// An entry of the relay DLQ with a readable message.
    pub(crate) fn entry(stream_id: &str, rid: u64, quantity: u32) -> DlqEntry {
        let payload = format!(
            r#"{{"v":1,"rid":"{rid}","sale":"s","user":"u","qty":{quantity},"shard":0,"epoch":1,"no":1,"at":9}}"#
        );
        of_relay(0, parked(stream_id, rid, &payload))
    }

    fn parked(stream_id: &str, rid: u64, payload: &str) -> ParkedEntry {
        ParkedEntry {
            id: stream_id.to_owned(),
            request_id: RequestId::new(rid),
            sale_id: SaleId::parse("s").ok(),
            reason: "NACK".to_owned(),
            attempts: 3,
            parked_at_ms: 9,
            payload: payload.as_bytes().to_vec(),
        }
    }

    #[test]
    fn an_entry_shows_what_its_message_says_and_a_damaged_one_what_is_left() {
        let whole = entry("7-0", 5, 2);
        assert_eq!((whole.entry.as_str(), whole.quantity, whole.attempts), ("relay/0/7-0", Some(2), Some(3)));
        assert!(whole.accepted.is_some());
        let damaged = of_relay(1, parked("7-0", 5, "{"));
        assert_eq!((damaged.request_id, damaged.accepted), (RequestId::new(5), None));
        let json = serde_json::to_value(&whole).unwrap();
        assert_eq!(json["request_id"], "5");
        assert_eq!(json["fate"], serde_json::Value::Null);
    }

    #[test]
    fn fingerprints_are_short_and_distinguish_bodies() {
        assert_eq!(fingerprint(b"").len(), 12);
        assert_ne!(fingerprint(b"a"), fingerprint(b"b"));
    }
}
