//! The id of one HTTP exchange (`X-Request-Id`): in the answer's head, in a problem document, in every log line that is written
//! while the request is handled.
//!
//! It names a call, not a purchase: one purchase (a request id) takes several calls, and the log line of each has both.
//!
//! Every request passes here, so an id costs next to nothing: ids are cut off a block that is made for many, and the one in hand
//! lies in a thread-local while its request is polled.

use std::cell::RefCell;
use std::fmt;
use tokio_util::bytes::{Bytes, BytesMut};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Longest id taken over from a caller, bytes.
pub const BYTES_MAX: usize = 64;
/// Length of an id made here, hexadecimal digits.
const MADE_BYTES: usize = 16;
/// Ids made in one go.
const BLOCK_COUNT: usize = 256;

thread_local! {
    static CURRENT: RefCell<Option<ExchangeId>> = const { RefCell::new(None) };
    static BLOCK: RefCell<BytesMut> = RefCell::default();
}

/// One id: plain characters only, so that it can stand in a header, a URN and a log line as it is. Cloning copies nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeId(Bytes);

impl ExchangeId {
    /// The caller's own: 1 to [`BYTES_MAX`] of `A-Z a-z 0-9 . _ -`. `None`: another one is made.
    #[must_use]
    pub fn given(text: &[u8]) -> Option<Self> {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let usable = (1..=BYTES_MAX).contains(&text.len()) && text.iter().all(plain);
        usable.then(|| Self(Bytes::copy_from_slice(text)))
    }

    /// A new one. Nothing is allocated but once for many.
    #[must_use]
    pub fn made() -> Self {
        BLOCK.with_borrow_mut(|block| {
            if block.is_empty() {
                *block = a_block();
            }
            Self(block.split_to(MADE_BYTES).freeze())
        })
    }

    /// The id as bytes of a header's value.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Makes it the id of whatever this thread does until the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> Entered {
        Entered { before: CURRENT.replace(Some(self.clone())) }
    }
}

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

/// Random where it begins and counted from there: two blocks do not meet.
fn a_block() -> BytesMut {
    use std::fmt::Write;
    let first = rand::random::<u64>();
    let mut text = String::with_capacity(BLOCK_COUNT * MADE_BYTES);
    for n in 0..BLOCK_COUNT as u64 {
        let written = write!(text, "{:016x}", first.wrapping_add(n));
        debug_assert!(written.is_ok());
    }
    BytesMut::from(text.as_str())
}

/// While it lives, an id is the current one.
#[derive(Debug)]
pub struct Entered {
    before: Option<ExchangeId>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// The id of the exchange this thread is busy with.
#[must_use]
pub fn current() -> Option<ExchangeId> {
    CURRENT.with_borrow(Clone::clone)
}

/// A log format whose lines end with the current id, if there is one.
pub(super) struct Named<F>(pub F);

impl<S, N, F> FormatEvent<S, N> for Named<F>
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
            assert_eq!(ExchangeId::given(good.as_bytes()).unwrap().to_string(), good);
        }
        for bad in ["", " ", "a b", "a\n", "ä", "a\"b", "a{b", "<a>", &"x".repeat(65)] {
            assert_eq!(ExchangeId::given(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn made_ids_differ_and_could_be_given() {
        let made: HashSet<String> = (0..2 * BLOCK_COUNT + 1).map(|_| ExchangeId::made().to_string()).collect();
        assert_eq!(made.len(), 2 * BLOCK_COUNT + 1);
        assert!(made.iter().all(|id| id.len() == MADE_BYTES && ExchangeId::given(id.as_bytes()).is_some()));
    }

    #[test]
    fn the_one_before_comes_back_when_one_ends() {
        let (outer, inner) = (ExchangeId::made(), ExchangeId::made());
        let first = outer.enter();
        let second = inner.enter();
        assert_eq!(current(), Some(inner));
        drop(second);
        assert_eq!(current(), Some(outer));
        drop(first);
        assert_eq!(current(), None);
    }
}
