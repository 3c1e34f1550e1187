//! The id of one HTTP call (`X-Request-Id`): in the head of the answer, in a problem document, and in every log line that is
//! written while the call is handled.
//!
//! It names a call, not a purchase: a purchase (a request id) may take several calls, and the log line of each has both.
//!
//! Written by hand because every purchase passes here: ids are cut off a block of many, and the current id is in a
//! thread-local while its request is polled. Input: a header or nothing. Output: an id. A crash leaves nothing.

use std::cell::RefCell;
use std::fmt;
use tokio_util::bytes::{Bytes, BytesMut};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Longest id taken over from a caller, bytes.
pub(crate) const BYTES_MAX: usize = 64;
/// Length of an id made here, hexadecimal digits.
const MADE_BYTES: usize = 16;
/// Ids made in one go.
const BLOCK_COUNT: usize = 256;

thread_local! {
    static CURRENT: RefCell<Option<HttpRequestId>> = const { RefCell::new(None) };
    static BLOCK: RefCell<BytesMut> = RefCell::default();
}

/// One id: plain characters only, so that it can stand in a header, a URN and a log line as it is. Cloning copies nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequestId(Bytes);

impl HttpRequestId {
    /// The caller's own id: 1 to [`BYTES_MAX`] of `A-Z a-z 0-9 . _ -`. `None`: it cannot be used, and a new one is made.
    #[must_use]
    pub(crate) fn given(text: &[u8]) -> Option<Self> {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let usable = (1..=BYTES_MAX).contains(&text.len()) && text.iter().all(plain);
        usable.then(|| Self(Bytes::copy_from_slice(text)))
    }

    /// A new id. One allocation serves many ids.
    #[must_use]
    pub(crate) fn made() -> Self {
        BLOCK.with_borrow_mut(|block| {
            if block.is_empty() {
                *block = new_block();
            }
            Self(block.split_to(MADE_BYTES).freeze())
        })
    }

    /// The id as bytes of a header's value.
    #[must_use]
    pub(crate) fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Makes it the current id of this thread until the guard is dropped.
    #[must_use]
    pub(crate) fn enter(&self) -> CurrentRequestId {
        CurrentRequestId { before: CURRENT.replace(Some(self.clone())) }
    }
}

impl fmt::Display for HttpRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

/// Ids counted up from a random start, so that two blocks do not overlap.
fn new_block() -> BytesMut {
    use std::fmt::Write;
    let first = rand::random::<u64>();
    let mut text = String::with_capacity(BLOCK_COUNT * MADE_BYTES);
    for n in 0..BLOCK_COUNT as u64 {
        let written = write!(text, "{:016x}", first.wrapping_add(n));
        debug_assert!(written.is_ok());
    }
    BytesMut::from(text.as_str())
}

/// Keeps an id current while it lives; restores the id before it when it is dropped.
#[derive(Debug)]
pub(crate) struct CurrentRequestId {
    before: Option<HttpRequestId>,
}

impl Drop for CurrentRequestId {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// The id of the HTTP call that this thread is handling.
#[must_use]
pub(crate) fn current() -> Option<HttpRequestId> {
    CURRENT.with_borrow(Clone::clone)
}

/// A log format whose lines end with the current id, if there is one.
pub(super) struct WithRequestId<F>(pub F);

impl<S, N, F> FormatEvent<S, N> for WithRequestId<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let Some(id) = current() else { return self.0.format_event(context, writer, event) };
        let mut line = String::with_capacity(256);
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end();
        match line.strip_suffix('}').filter(|_| line.starts_with('{')) {
            Some(document) => writeln!(writer, r#"{document},"x_request_id":"{id}"}}"#),
            None => writeln!(writer, "{line} x_request_id={id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn only_plain_and_short_ids_are_taken_over() {
        for good in ["a", "7f3a-99.B_c", &"x".repeat(64)] {
            assert_eq!(HttpRequestId::given(good.as_bytes()).unwrap().to_string(), good);
        }
        for bad in ["", " ", "a b", "a\n", "ä", "a\"b", "a{b", "<a>", &"x".repeat(65)] {
            assert_eq!(HttpRequestId::given(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn made_ids_differ_and_could_be_given() {
        let made: HashSet<String> = (0..2 * BLOCK_COUNT + 1).map(|_| HttpRequestId::made().to_string()).collect();
        assert_eq!(made.len(), 2 * BLOCK_COUNT + 1);
        assert!(made.iter().all(|id| id.len() == MADE_BYTES && HttpRequestId::given(id.as_bytes()).is_some()));
    }

    #[test]
    fn the_id_before_is_restored_when_one_ends() {
        let (outer, inner) = (HttpRequestId::made(), HttpRequestId::made());
        let first = outer.enter();
        let second = inner.enter();
        assert_eq!(current(), Some(inner));
        drop(second);
        assert_eq!(current(), Some(outer));
        drop(first);
        assert_eq!(current(), None);
    }
}
