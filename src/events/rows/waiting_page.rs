//! Events that wait in a table, read a page at a time. A row that cannot be read hides no other: it is returned apart, and the
//! next page begins behind it.
//!
//! Input: rows in the order of their ids. Output: a page. Nothing here is written, so a crash leaves nothing.

use crate::store::mysql::fault::DbError;
use serde::de::IgnoredAny;

/// The first rows of a table behind some row.
pub struct WaitingPage<E> {
    /// Of the rows that can be read.
    pub events: Vec<E>,
    /// The keys of these rows.
    pub rows: Vec<u64>,
    /// The others: a person has to check them.
    pub unreadable: Vec<UnreadableRow>,
    /// Whether there may be more rows behind these.
    pub is_full: bool,
    /// The next page begins behind this row; 0: at the beginning. Ids are not committed in their order, so only rows that cannot
    /// be read are passed over: what can be read is deleted once it is published.
    pub next_after: u64,
}

/// A row that cannot be read.
pub struct UnreadableRow {
    /// Its key.
    pub id: u64,
    /// What is wrong with it.
    pub problem: DbError,
}

impl<E> WaitingPage<E> {
    /// Reads each row by itself. `rows` are at most `rows_max`.
    pub(crate) fn of<R>(
        rows: Vec<R>,
        rows_max: u16,
        id: impl Fn(&R) -> u64,
        read: impl Fn(R) -> Result<E, DbError>,
    ) -> Self {
        let is_full = rows.len() >= usize::from(rows_max);
        let last = rows.last().map_or(0, &id);
        let mut events = Vec::with_capacity(rows.len());
        let (mut read_rows, mut unreadable) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            let id = id(&row);
            match read(row) {
                Ok(event) => {
                    events.push(event);
                    read_rows.push(id);
                }
                Err(problem) => unreadable.push(UnreadableRow { id, problem }),
            }
        }
        let next_after = if is_full && !unreadable.is_empty() { last } else { 0 };
        Self { events, rows: read_rows, unreadable, is_full, next_after }
    }
}

/// Refuses a body that is no JSON object: a message that holds it could not be read, and neither could the events beside it.
pub(crate) fn check_event(table: &str, body: &[u8]) -> Result<(), DbError> {
    // The parser does not check the bytes of texts that it passes over.
    let problem = match std::str::from_utf8(body).map(serde_json::from_str::<IgnoredAny>) {
        Ok(Ok(_)) if body.first() == Some(&b'{') => return Ok(()),
        Ok(Ok(_)) => "it is no JSON object".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(DbError::Other(format!("{table}.body is no event: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[u64], rows_max: u16) -> WaitingPage<u64> {
        let read = |row: u64| if row.is_multiple_of(2) { Ok(row) } else { Err(DbError::Other("odd".to_owned())) };
        WaitingPage::of(rows.to_vec(), rows_max, |row| *row, read)
    }

    #[test]
    fn rows_that_cannot_be_read_are_passed_over_and_others_are_not() {
        let part = page(&[1, 2, 4], 4);
        assert_eq!(
            (part.events, part.is_full, part.next_after),
            (vec![2, 4], false, 0),
            "the next read begins at the first"
        );
        assert_eq!(part.rows, [2, 4]);
        assert_eq!(part.unreadable.iter().map(|row| row.id).collect::<Vec<_>>(), [1]);
        let full = page(&[1, 2, 4], 3);
        assert_eq!((full.is_full, full.next_after), (true, 4));
        // All of these are deleted; a row with a smaller id may be committed meanwhile.
        let readable = page(&[2, 4], 2);
        assert_eq!((readable.is_full, readable.next_after), (true, 0));
        assert_eq!(page(&[], 2).next_after, 0);
    }

    #[test]
    fn a_body_that_is_no_object_is_no_event() {
        assert!(check_event("t", b"{\"v\":1}").is_ok());
        for body in ["", "{", "7", "{},{}"] {
            let refused = check_event("t", body.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains("t.body is no event"), "{body}: {refused}");
        }
    }
}
