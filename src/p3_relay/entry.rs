//! An outbox entry that this relay has read, and how its state moves.

use crate::domain::ids::SaleId;
use crate::domain::message::{OrderMessage, decode, decode_lines, encode, request_ids_of_lines};
use crate::domain::states::{P3Relay, RequestEvent, State};
use crate::faults::left_out;
use crate::store::redis::{OutboxEntry, ParkedOrder};
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
    /// How many orders it has, from 1.
    pub orders: usize,
    /// Its payload is orders in lines; else one message: from a list, or as 0.2.0 wrote it with `redis.outbox_format` 1.
    pub in_lines: bool,
    state: P3Relay,
    spans: Vec<AttemptSpans>,
}

/// An entry that this relay cannot read.
#[derive(Debug)]
pub(super) struct UnreadableEntry {
    pub id: String,
    /// What is wrong with it, for the DLQ.
    pub reason: String,
}

impl RelayEntry {
    /// Reads an entry.
    pub(super) fn read(shard: u16, mut entry: OutboxEntry) -> Result<Self, UnreadableEntry> {
        match Self::read_fields(shard, &mut entry) {
            Ok(mut read) => {
                read.happened(RequestEvent::Read);
                Ok(read)
            }
            Err(wrong) => Err(UnreadableEntry { id: entry.id, reason: format!("unreadable: {wrong}") }),
        }
    }

    fn read_fields(shard: u16, entry: &mut OutboxEntry) -> Result<Self, String> {
        let missing = |name: &str| format!("field {name} is missing");
        let text = |name: &str| {
            let value = entry.field(name).ok_or_else(|| missing(name))?;
            std::str::from_utf8(value).map_err(|_not_text| format!("field {name} is not text"))
        };
        let sale_id = SaleId::parse(text("s")?).map_err(|error| error.to_string())?;
        let (orders, lines) = (entry.orders(), entry.field("o"));
        let in_lines = lines.is_some();
        let request_id = match lines {
            // Of several orders the first gives its name. Whether the others can be read is the consumer's to find out.
            Some(lines) => request_ids_of_lines(lines).next().ok_or("field o has no order")?.to_string(),
            None => text("r")?.to_owned(),
        };
        let spans = AttemptSpans::of_all(|| entry.request_ids());
        let payload = entry.take(if in_lines { "o" } else { "p" }).ok_or_else(|| missing("p"))?;
        let id = std::mem::take(&mut entry.id);
        Ok(Self { shard, id, request_id, sale_id, payload, orders, in_lines, state: P3Relay::New, spans })
    }

    /// Its orders as messages of their own, for the DLQ; none where it has only one, or where they cannot be read.
    pub(super) fn parked_orders(&self) -> Vec<ParkedOrder> {
        let orders = if self.in_lines { decode_lines(&self.payload).unwrap_or_default() } else { Vec::new() };
        let parked =
            |order: &OrderMessage| ParkedOrder { request_id: order.purchase.request_id, message: encode(order) };
        let count = if left_out!(ParkEachOrder) { 1 } else { orders.len() };
        orders.iter().take(count).map(parked).collect()
    }

    /// Its orders, for the trace of a test build; none where they cannot be read.
    pub(super) fn traced_orders(&self) -> Vec<OrderMessage> {
        if self.in_lines {
            decode_lines(&self.payload).unwrap_or_default()
        } else {
            decode(&self.payload).into_iter().collect()
        }
    }

    /// Moves the state by the table and counts the new one.
    pub(super) fn happened(&mut self, event: RequestEvent) {
        match State::P3(self.state).after(event) {
            Ok(State::P3(state)) => {
                self.state = state;
                count(State::P3(state), self.orders);
            }
            Ok(other @ (State::P1(_) | State::P2(_) | State::P4(_) | State::P5(_) | State::P6(_))) => {
                tracing::error!(
                    phase = "p3_relay", request_id = %self.request_id, state = other.code(), ?event,
                    "contract violation: not a state of the relay, ignored"
                );
            }
            Err(violation) => {
                tracing::error!(phase = "p3_relay", request_id = %self.request_id, %violation, "ignored");
            }
        }
        for spans in &mut self.spans {
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
        RelayEntry::read(shard, OutboxEntry { id: id.to_owned(), ..entry }).unwrap()
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
            (vec![("s", b"s".as_slice()), ("n", b"2"), ("o", b"@0 1 9 1 s\n")], "no order"),
        ] {
            let error = RelayEntry::read(0, entry(&fields)).unwrap_err();
            assert!(error.id == "1-1" && error.reason.contains(wrong), "{error:?}");
        }
        assert!(
            RelayEntry::read(0, entry(&[("s", b"s"), ("r", b"1"), ("p", b"\xff")])).is_ok(),
            "the payload is opaque"
        );
    }

    #[test]
    fn an_entry_with_several_orders_is_one_message_and_is_parked_order_by_order() {
        let lines = b"@0 1 9 7 s\n5 1 a\n6 2 b c\n".as_slice();
        let read = RelayEntry::read(0, entry(&[("s", b"s"), ("n", b"2"), ("o", lines)])).unwrap();
        assert_eq!((read.orders, read.request_id.as_str(), read.payload.as_slice()), (2, "5", lines));
        let parked = read.parked_orders();
        assert_eq!(parked.len(), 2);
        let second = decode(parked[1].message.as_bytes()).unwrap();
        assert_eq!((second.purchase.request_id, second.number), (parked[1].request_id, 8));
    }
}
