//! An outbox entry that this relay has read, and how its state moves.

use crate::domain::ids::SaleId;
use crate::domain::states::{P3Relay, RequestEvent, State};
use crate::store::redis::OutboxEntry;
use crate::telemetry::count;
use crate::telemetry::traces::AttemptSpans;

/// One entry this relay has read.
#[derive(Debug)]
pub(super) struct RelayEntry {
    pub shard: u16,
    /// Names it within the outbox of its shard.
    pub id: String,
    /// The request id, as text: it becomes the message id.
    pub request_id: String,
    pub sale_id: SaleId,
    pub payload: Vec<u8>,
    state: P3Relay,
    spans: Option<AttemptSpans>,
}

impl RelayEntry {
    /// Reads an entry; an error says what is unreadable about it, for the DLQ.
    pub(super) fn read(shard: u16, entry: &OutboxEntry) -> Result<Self, String> {
        let field = |name: &str| entry.field(name).ok_or_else(|| format!("unreadable: field {name} is missing"));
        let text = |name: &str| {
            field(name).and_then(|value| {
                std::str::from_utf8(value).map_err(|_not_text| format!("unreadable: field {name} is not text"))
            })
        };
        let sale_id = SaleId::parse(text("s")?).map_err(|error| format!("unreadable: {error}"))?;
        let mut read = Self {
            shard,
            id: entry.id.clone(),
            request_id: text("r")?.to_owned(),
            sale_id,
            payload: field("p")?.to_vec(),
            state: P3Relay::New,
            spans: AttemptSpans::begin(text("r")?),
        };
        read.happened(RequestEvent::Read);
        Ok(read)
    }

    /// Moves the state by the table and counts the new one.
    pub(super) fn happened(&mut self, event: RequestEvent) {
        match State::P3(self.state).after(event) {
            Ok(State::P3(state)) => {
                self.state = state;
                count(State::P3(state), 1);
            }
            Ok(other @ (State::P1(_) | State::P2(_) | State::P4(_) | State::P5(_))) => {
                tracing::error!(
                    phase = "p3_relay", request_id = %self.request_id, state = other.code(), ?event,
                    "contract violation: not a state of the relay, ignored"
                );
            }
            Err(violation) => {
                tracing::error!(phase = "p3_relay", request_id = %self.request_id, %violation, "ignored");
            }
        }
        if let Some(spans) = &mut self.spans {
            match self.state {
                P3Relay::New | P3Relay::Pending => {}
                P3Relay::SentOk => spans.finish(State::P3(self.state)),
                P3Relay::Retrying | P3Relay::RelayDlq => spans.fail_attempt(State::P3(self.state)),
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An entry that can be read.
    pub(crate) fn readable(shard: u16, id: &str) -> RelayEntry {
        let entry = entry(&[("s", b"s"), ("r", b"1"), ("p", b"x")]);
        RelayEntry::read(shard, &OutboxEntry { id: id.to_owned(), ..entry }).unwrap()
    }

    fn entry(fields: &[(&str, &[u8])]) -> OutboxEntry {
        OutboxEntry { id: "1-1".into(), fields: fields.iter().map(|(n, v)| ((*n).to_owned(), v.to_vec())).collect() }
    }

    #[test]
    fn a_poison_entry_says_what_is_wrong_with_it() {
        for (fields, wrong) in [
            (vec![], "field s"),
            (vec![("s", b"sale".as_slice()), ("r", b"1")], "field p"),
            (vec![("s", b"sale".as_slice()), ("p", b"x")], "field r"),
            (vec![("s", b"a b".as_slice()), ("r", b"1"), ("p", b"x")], "sale_id"),
            (vec![("s", b"s".as_slice()), ("r", b"\xff"), ("p", b"x")], "field r is not text"),
        ] {
            let error = RelayEntry::read(0, &entry(&fields)).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
        assert!(
            RelayEntry::read(0, &entry(&[("s", b"s"), ("r", b"1"), ("p", b"\xff")])).is_ok(),
            "the payload is opaque"
        );
    }
}
