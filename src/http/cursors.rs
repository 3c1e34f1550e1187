//! Where a page of a list ended, as callers get and return it: letters, digits, dots and dashes, which a URL and a shell leave as
//! they are. Callers do not take it apart.
//!
//! Input: such a text, and how its list reads one. Output: the place. Keeps nothing.

use crate::http::bad_form::{BadForm, bad};

/// Longest cursor, bytes: the id of a payment in hexadecimal digits, and its time.
const CURSOR_BYTES_MAX: usize = 300;

/// The last row of a page behind which there may be more: of a full one.
pub(crate) fn last_of_full<T>(page: &[T], limit: u16) -> Option<&T> {
    page.last().filter(|_| page.len() == usize::from(limit))
}

/// The place that a cursor names, by the reader of its list.
pub(crate) fn place_of<P>(cursor: &str, read: impl FnOnce(&str) -> Option<P>) -> Result<P, BadForm> {
    match read(cursor) {
        Some(place) if cursor.len() <= CURSOR_BYTES_MAX => Ok(place),
        Some(_) | None => bad("cursor", "next of the page before", "上一页的 next"),
    }
}

/// A time that the database can hold, Unix milliseconds: up to the year 9999.
pub(crate) fn time(text: &str) -> Option<i64> {
    text.parse().ok().filter(|ms| (0..=253_402_300_799_999).contains(ms))
}
