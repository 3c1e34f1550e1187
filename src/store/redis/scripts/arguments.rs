//! Arguments of a command, written one after the other into one buffer.
//!
//! A script call may have a thousand of them. Each as a `String` would be an allocation here, one more when a call is prepared
//! for a second try, and a copy when it is sent.

use bytes::BytesMut;
use fred::types::Value;
use std::fmt::{Display, Write};

/// Bytes reserved for an argument; most are ids and short numbers.
const BYTES_EACH: usize = 24;

/// Arguments under construction.
pub(in crate::store::redis) struct Arguments {
    written: BytesMut,
    ends: Vec<usize>,
}

impl Arguments {
    /// Room for about `count` arguments.
    pub(in crate::store::redis) fn with_capacity(count: usize) -> Self {
        Self { written: BytesMut::with_capacity(count * BYTES_EACH), ends: Vec::with_capacity(count) }
    }

    /// Adds an argument.
    pub(in crate::store::redis) fn push(&mut self, argument: impl Display) {
        // Writing to a buffer that grows cannot fail.
        let written = write!(self.written, "{argument}");
        debug_assert!(written.is_ok());
        self.ends.push(self.written.len());
    }

    /// The arguments as fred takes them: parts of the one buffer, so that a clone copies nothing.
    pub(in crate::store::redis) fn into_values(self) -> Vec<Value> {
        let written = self.written.freeze();
        let mut from = 0;
        let value = |end| {
            let value = Value::Bytes(written.slice(from..end));
            from = end;
            value
        };
        self.ends.into_iter().map(value).collect()
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
        let texts: Vec<_> = arguments.into_values().iter().map(|value| value.as_string().unwrap()).collect();
        assert_eq!(texts, ["17", "", "ä b"]);
    }
}
