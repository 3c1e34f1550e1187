//! Arguments of a command, written one after the other into one buffer.
//!
//! A script call may have a thousand of them. Each as a `String` would be an allocation here, one more when a call is prepared
//! for a second try, and a copy when it is sent. An argument may also be a part of what was written for another one.

use bytes::BytesMut;
use fred::types::Value;
use std::fmt::{Display, Write};
use std::ops::Range;

/// Bytes reserved for an argument; most are ids and short numbers.
const BYTES_EACH: usize = 24;

/// Arguments under construction.
pub(in crate::store::redis) struct Arguments {
    written: BytesMut,
    parts: Vec<Range<usize>>,
}

impl Arguments {
    /// Room for about `count` arguments.
    pub(in crate::store::redis) fn with_capacity(count: usize) -> Self {
        Self { written: BytesMut::with_capacity(count * BYTES_EACH), parts: Vec::with_capacity(count) }
    }

    /// Adds an argument.
    pub(in crate::store::redis) fn push(&mut self, argument: impl Display) {
        let part = self.write(argument);
        self.push_part(part);
    }

    /// Writes a text that is no argument yet; returns where it stands.
    pub(in crate::store::redis) fn write(&mut self, text: impl Display) -> Range<usize> {
        let from = self.written.len();
        // Writing to a buffer that grows cannot fail.
        let written = write!(self.written, "{text}");
        debug_assert!(written.is_ok());
        from..self.written.len()
    }

    /// Adds what stands there as an argument.
    pub(in crate::store::redis) fn push_part(&mut self, part: Range<usize>) {
        self.parts.push(part);
    }

    /// The arguments as fred takes them: parts of the one buffer, so that a clone copies nothing.
    pub(in crate::store::redis) fn into_values(self) -> Vec<Value> {
        let written = self.written.freeze();
        self.parts.into_iter().map(|part| Value::Bytes(written.slice(part))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_out_in_their_order_and_each_by_itself() {
        let mut arguments = Arguments::with_capacity(1);
        arguments.push(17);
        arguments.push("");
        arguments.push("ä b");
        let (first, second) = (arguments.write("5 "), arguments.write(6));
        arguments.push_part(first.start..second.end);
        arguments.push_part(second);
        let texts: Vec<_> = arguments.into_values().iter().map(|value| value.as_string().unwrap()).collect();
        assert_eq!(texts, ["17", "", "ä b", "5 6", "6"]);
    }
}
