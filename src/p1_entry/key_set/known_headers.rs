//! The headers of tokens that were accepted, each with the keys that can have signed such a token.
//!
//! Input: the header of a token that the judge accepted, still in base64. Output: for the same header again, its keys. An issuer
//! spells its header in one way, and in one more for each key while it changes keys, so there are few. They belong to one set of
//! keys: with another set they are learned anew. A crash leaves nothing.

use std::ops::Range;
use std::sync::OnceLock;

/// Headers that are remembered; tokens with others are the judge's.
pub(in crate::p1_entry) const HEADERS_MAX: usize = 8;

/// The known headers of one set. Filled one after the other, never changed: all threads read them with each request.
#[derive(Default)]
pub(super) struct KnownHeaders([OnceLock<KnownHeader>; HEADERS_MAX]);

struct KnownHeader {
    text: Box<str>,
    /// Places in the set.
    keys: Range<usize>,
}

impl KnownHeaders {
    /// The places of the keys that sign with this header.
    pub(super) fn keys_of(&self, header: &str) -> Option<Range<usize>> {
        let known = self.0.iter().map_while(OnceLock::get).find(|known| *known.text == *header)?;
        Some(known.keys.clone())
    }

    /// Remembers a header, unless there are many.
    pub(super) fn learn(&self, header: &str, keys: Range<usize>) {
        for slot in &self.0 {
            // Another thread may fill it with another header in between.
            if *slot.get_or_init(|| KnownHeader { text: header.into(), keys: keys.clone() }).text == *header {
                return;
            }
        }
    }
}
