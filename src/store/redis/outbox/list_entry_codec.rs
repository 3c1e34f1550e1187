//! The two strings of the list outbox (C8), read. `lua/reserve.lua` packs an entry as `<at_ms>-<request id> <sale> <payload>`,
//! `lua/outbox_list.lua` a parked one as `<id> <attempts> <length of the reason> <reason><entry>`.
//!
//! The payload is the rest, whatever its bytes. What is no entry of ours becomes one without the fields the relay needs, so
//! that the relay says what is wrong with it and parks it (C6).

use super::OutboxEntry;

/// Bytes up to the first space, and those behind it; all of them and `None` without a space.
fn word(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    match bytes.iter().position(|byte| *byte == b' ') {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..)),
        None => (bytes, None),
    }
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of a packed entry, under the names a stream's entry has; `raw` alone if it is none.
pub(super) fn fields(packed: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (id, rest) = word(packed);
    let request = id.iter().position(|byte| *byte == b'-').and_then(|at| id.get(at + 1..));
    let (Some(request), Some(rest)) = (request, rest) else { return vec![("raw".to_owned(), packed.to_vec())] };
    let (sale, payload) = word(rest);
    let mut fields = vec![("r".to_owned(), request.to_vec()), ("s".to_owned(), sale.to_vec())];
    fields.extend(payload.map(|payload| ("p".to_owned(), payload.to_vec())));
    fields
}

/// A packed entry whose name is not known beside it.
pub(super) fn entry(packed: &[u8]) -> OutboxEntry {
    OutboxEntry { id: words(word(packed).0), fields: fields(packed) }
}

/// A parked entry, with the fields the stream's relay DLQ has. An entry that no relay put there is for a person.
pub(super) fn parked(member: &[u8]) -> OutboxEntry {
    parts(member).unwrap_or_else(|| {
        let reason = ("reason".to_owned(), b"unreadable: no relay parked this".to_vec());
        OutboxEntry { id: words(word(member).0), fields: vec![("raw".to_owned(), member.to_vec()), reason] }
    })
}

fn parts(member: &[u8]) -> Option<OutboxEntry> {
    let (id, rest) = word(member);
    let (attempts, rest) = word(rest?);
    let (length, rest) = word(rest?);
    let (reason, entry) = rest?.split_at_checked(words(length).parse().ok()?)?;
    let (at_ms, _) = id.split_at(id.iter().position(|byte| *byte == b'-')?);
    let mut all = fields(entry);
    let own = [("reason", reason), ("attempts", attempts), ("parked_at_ms", at_ms)];
    all.extend(own.map(|(name, value)| (name.to_owned(), value.to_vec())));
    Some(OutboxEntry { id: words(id), fields: all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(entry: &OutboxEntry, name: &str) -> String {
        words(entry.field(name).unwrap_or(b"none"))
    }

    #[test]
    fn an_entry_is_read_back_whatever_its_payload_holds() {
        let read = entry(b"170-42 s-1 {\"a\": \"b c\"}\xff \n");
        assert_eq!((read.id.as_str(), &*field(&read, "r"), &*field(&read, "s")), ("170-42", "42", "s-1"));
        assert_eq!(read.field("p"), Some(&b"{\"a\": \"b c\"}\xff \n"[..]));
        assert_eq!(entry(b"1-2 s ").field("p"), Some(&b""[..]));
    }

    #[test]
    fn what_is_no_entry_lacks_what_the_relay_needs() {
        for (packed, has) in [(&b""[..], "raw"), (b"who knows", "raw"), (b"1-2", "raw"), (b"1-2 s", "s")] {
            let read = entry(packed);
            assert!(read.field(has).is_some() && read.field("p").is_none(), "{read:?}");
        }
    }

    #[test]
    fn a_parked_entry_keeps_its_reason_apart_from_its_bytes() {
        let read = parked("900-170-42 3 9 no q\u{fc}eue170-42 s-1 {}".as_bytes());
        assert_eq!(
            (read.id.as_str(), &*field(&read, "reason"), &*field(&read, "attempts")),
            ("900-170-42", "no qüeue", "3")
        );
        assert_eq!(
            (field(&read, "parked_at_ms"), field(&read, "r"), field(&read, "p")),
            ("900".into(), "42".into(), "{}".into())
        );
        let read = parked(b"900-x00ff 0 0 who knows");
        assert_eq!((field(&read, "raw"), field(&read, "reason")), ("who knows".into(), String::new()));
        for broken in ["", "900-1", "900-1 1", "900-1 1 x y", "900-1 1 9 short", "900 1 1 x"] {
            assert!(field(&parked(broken.as_bytes()), "reason").contains("no relay"), "{broken:?}");
        }
    }
}
