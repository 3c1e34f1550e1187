//! Finding what is parked. Reads only; messages of the MQ DLQ are held until the sweep is put back or dropped, which gives
//! those that were not removed back to the queue.

use super::super::audit::Auditor;
use super::{DlqError, ENTRIES_MAX, Entry, Listing, Place, Source};
use crate::domain::ids::RequestId;
use crate::domain::message;
use crate::domain::request::Accepted;
use crate::store::mysql::codes::{FailureStatus, Reporter};
use crate::store::mysql::failed_requests::{self, FailedRequest, FailedRequestFilter};
use crate::store::rabbit::{DlqReader, HeaderValue, Parked, attempts};
use crate::store::redis::ParkedEntry;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Pause before an empty queue is believed to be empty.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Looks after the first one.
const LOOKS_AGAIN: u32 = 3;
/// Entries read with one call.
const PAGE: usize = 500;

/// Everything parked, with the reader that holds the broker's part.
pub(super) struct Sweep {
    pub entries: Vec<Entry>,
    pub more: bool,
    pub reader: Option<DlqReader>,
}

impl Sweep {
    /// Gives what was not removed back to the broker.
    pub async fn put_back(self) -> Result<Listing, DlqError> {
        if let Some(reader) = self.reader {
            reader.close().await?;
        }
        Ok(Listing { entries: self.entries, more: self.more })
    }
}

/// Collects what is parked in the places of `source` (all without one).
pub(super) async fn sweep(auditor: &Auditor, source: Option<Source>) -> Result<Sweep, DlqError> {
    let mut sweep = Sweep { entries: Vec::new(), more: false, reader: None };
    if source != Some(Source::Mq) {
        for shard in 0..auditor.shards {
            sweep.relay(auditor, shard).await?;
        }
    }
    if source != Some(Source::Relay) {
        sweep.mq(auditor).await?;
    }
    sweep.register(auditor, source).await?;
    for entry in sweep.entries.iter_mut().filter(|entry| entry.accepted.is_none()) {
        // The message is damaged, the ledger still knows what was accepted.
        if let Some(id) = entry.request_id {
            let known = auditor.accepted_in_ledger(id).await?;
            entry.takes(known);
        }
    }
    Ok(sweep)
}

impl Sweep {
    async fn relay(&mut self, auditor: &Auditor, shard: u16) -> Result<(), DlqError> {
        let mut start = "-".to_owned();
        for _ in 0..ENTRIES_MAX / PAGE {
            let page = auditor.redis.parked_page(shard, &start, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            start = format!("({}", last.id);
            let ended = page.len() < PAGE;
            self.entries.extend(page.into_iter().map(|parked| of_relay(shard, parked)));
            if ended {
                return Ok(());
            }
        }
        self.more = true;
        Ok(())
    }

    async fn mq(&mut self, auditor: &Auditor) -> Result<(), DlqError> {
        let mut reader = DlqReader::connect(&auditor.rabbit).await?;
        let mut looked_again_count = 0;
        let mut count = 0;
        while count < ENTRIES_MAX {
            match reader.next().await? {
                Some(parked) => {
                    self.entries.push(of_mq(parked));
                    count += 1;
                }
                // An audit or P5 may be holding them for a moment.
                None if looked_again_count < LOOKS_AGAIN => {
                    looked_again_count += 1;
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                None => break,
            }
        }
        self.more |= count == ENTRIES_MAX;
        self.reader = Some(reader);
        Ok(())
    }

    async fn register(&mut self, auditor: &Auditor, source: Option<Source>) -> Result<(), DlqError> {
        let reporter = source.map(|source| match source {
            Source::Relay => Reporter::RelayDlq,
            Source::Mq => Reporter::MqDlq,
        });
        let limit = failed_requests::PAGE_MAX;
        let mut wanted =
            FailedRequestFilter { status: Some(FailureStatus::Open), limit, ..FailedRequestFilter::default() };
        for _ in 0..ENTRIES_MAX.div_ceil(usize::try_from(limit).unwrap_or(1)) {
            let page = failed_requests::list(&auditor.db, &wanted).await?;
            let Some(last) = page.last() else { return Ok(()) };
            wanted.after = Some(last.request_id);
            let mine = page.into_iter().filter(|row| reporter.is_none_or(|reporter| row.reporter == reporter));
            self.entries.extend(mine.map(of_register));
        }
        self.more = true;
        Ok(())
    }
}

impl Entry {
    fn new(entry: String, place: Place, payload: Vec<u8>) -> Self {
        let mut new = Self {
            entry,
            request_id: None,
            sale_id: None,
            user_id: None,
            quantity: None,
            reason: String::new(),
            attempts: None,
            parked_at_ms: None,
            outcome: None,
            accepted: None,
            payload,
            place,
        };
        let read = message::decode(&new.payload).ok();
        new.takes(read);
        new
    }

    fn takes(&mut self, accepted: Option<Accepted>) {
        if let Some(accepted) = &accepted {
            let purchase = &accepted.purchase;
            self.request_id = Some(purchase.request_id);
            self.sale_id = Some(purchase.sale_id.clone());
            self.user_id = Some(purchase.user_id.clone());
            self.quantity = Some(purchase.quantity.get());
        }
        self.accepted = accepted;
    }
}

fn of_relay(shard: u16, parked: ParkedEntry) -> Entry {
    let place = Place::Relay { shard, id: parked.id.clone() };
    let mut entry = Entry::new(format!("relay/{shard}/{}", parked.id), place, parked.payload);
    entry.request_id = entry.request_id.or(parked.request_id);
    entry.reason = parked.reason;
    entry.attempts = Some(parked.attempts);
    entry.parked_at_ms = Some(parked.parked_at_ms);
    entry
}

/// Why a message of the MQ DLQ is there: a code, and words after a colon.
pub(in super::super) fn reason_of(parked: &Parked) -> String {
    let header = |name: &str| parked.headers.get(name).map(HeaderValue::to_string);
    match (header("x-seckill-reason"), header("x-seckill-detail"), header("x-first-death-reason")) {
        (Some(code), Some(detail), _) => format!("{code}: {detail}"),
        (Some(code), None, _) => code,
        (None, _, Some(broker)) => format!("BROKER: {broker}"),
        (None, _, None) => "UNTOLD".to_owned(),
    }
}

fn of_mq(parked: Parked) -> Entry {
    let reason = reason_of(&parked);
    let tried = attempts(&parked.headers);
    let named = parked.message_id.as_deref().and_then(|id| RequestId::parse(id).ok());
    let name = format!("mq/{}", fingerprint(&parked.body));
    let payload = parked.body.clone();
    let mut entry = Entry::new(name, Place::Mq(Box::new(parked)), payload);
    entry.request_id = entry.request_id.or(named);
    entry.reason = reason;
    entry.attempts = Some(tried);
    entry
}

fn of_register(row: FailedRequest) -> Entry {
    let mut entry = Entry::new(format!("register/{}", row.request_id), Place::Register, row.payload);
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

    /// An entry of the relay DLQ with a readable message.
    pub fn entry(stream_id: &str, rid: u64, quantity: u32) -> Entry {
        let payload = format!(
            r#"{{"v":1,"rid":"{rid}","sale":"s","user":"u","qty":{quantity},"shard":0,"epoch":1,"no":1,"at":9}}"#
        );
        of_relay(0, parked(stream_id, rid, &payload))
    }

    fn parked(stream_id: &str, rid: u64, payload: &str) -> ParkedEntry {
        ParkedEntry {
            id: stream_id.to_owned(),
            request_id: RequestId::new(rid),
            reason: "NACK".to_owned(),
            attempts: 3,
            parked_at_ms: 9,
            payload: payload.as_bytes().to_vec(),
        }
    }

    #[test]
    fn an_entry_tells_what_its_message_tells_and_a_damaged_one_what_is_left() {
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
    fn fingerprints_are_short_and_tell_bodies_apart() {
        assert_eq!(fingerprint(b"").len(), 12);
        assert_ne!(fingerprint(b"a"), fingerprint(b"b"));
    }
}
