//! Reads one HTTP/1.1 answer out of a buffer: status, the few headers a buyer needs, where the body is.
//!
//! Input: the bytes received so far. Output: the head once it is complete. Pure; keeps nothing, copies nothing.

use std::ops::Range;

/// Longest accepted head, bytes. The API's heads have about 200.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longest accepted body, bytes. The API's answers have about 150; a listing of many sales is the largest.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
const HEADERS_COUNT_MAX: usize = 64;

/// Why bytes are not an answer this client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not HTTP/1.x, or two headers contradict each other.
    #[error("the answer is not HTTP/1.1: {0}")]
    Malformed(&'static str),
    /// No end of the head within the bound.
    #[error("the answer's head has more than {HEAD_BYTES_MAX} bytes")]
    HeadTooLarge,
    /// The announced body is larger than the bound.
    #[error("the answer's body has more than {BODY_BYTES_MAX} bytes")]
    BodyTooLarge,
    /// Neither a length nor a status without a body.
    #[error("the answer has no content-length, so its end cannot be found")]
    NoLength,
    /// Chunked or otherwise encoded; the API never does that for the calls made here.
    #[error(
        "the answer has a transfer-encoding; this client reads only answers with a content-length, ask a call that has one"
    )]
    Chunked,
}

/// A complete head. The body follows it directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status, 200–999.
    pub status: u16,
    /// Length of the head with its empty line, bytes.
    pub head_bytes: usize,
    /// Length of the body, bytes.
    pub body_bytes: usize,
    /// `Retry-After` in seconds; a date is not understood and gives `None`.
    pub retry_after_s: Option<u64>,
    /// Where in the buffer the value of `Location` stands.
    pub location: Option<Range<usize>>,
    /// The server will close the connection after this answer.
    pub closes: bool,
}

impl ResponseHead {
    /// Length of the whole answer, bytes.
    #[must_use]
    pub const fn total_bytes(&self) -> usize {
        self.head_bytes + self.body_bytes
    }
}

/// Reads the head at the start of `buffer`; `None` while it is incomplete.
///
/// # Errors
/// [`ParseError`]; the connection cannot be used any further then.
pub fn parse_head(buffer: &[u8]) -> Result<Option<ResponseHead>, ParseError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_COUNT_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let head_bytes = match answer.parse(buffer) {
        Ok(httparse::Status::Complete(bytes)) if bytes <= HEAD_BYTES_MAX => bytes,
        Ok(httparse::Status::Partial) if buffer.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Complete(_) | httparse::Status::Partial) => return Err(ParseError::HeadTooLarge),
        Err(httparse::Error::TooManyHeaders) => return Err(ParseError::Malformed("too many headers")),
        Err(_) => return Err(ParseError::Malformed("unreadable head")),
    };
    let status = answer.code.unwrap_or(0);
    if status < 200 {
        return Err(ParseError::Malformed("an interim answer to no request"));
    }
    let mut head = ResponseHead {
        status,
        head_bytes,
        body_bytes: 0,
        retry_after_s: None,
        location: None,
        closes: answer.version == Some(0),
    };
    let mut length = None;
    for header in answer.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let bytes = decimal(header.value).ok_or(ParseError::Malformed("content-length is not a number"))?;
            if length.is_some_and(|other| other != bytes) {
                return Err(ParseError::Malformed("two different content-lengths"));
            }
            length = Some(bytes);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(ParseError::Chunked);
        } else if header.name.eq_ignore_ascii_case("retry-after") {
            head.retry_after_s = decimal(header.value);
        } else if header.name.eq_ignore_ascii_case("location") {
            let start = header.value.as_ptr().addr() - buffer.as_ptr().addr();
            head.location = Some(start..start + header.value.len());
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.closes = header.value.eq_ignore_ascii_case(b"close");
        }
    }
    head.body_bytes = match length {
        _ if status == 204 || status == 304 => 0,
        Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
        None => return Err(ParseError::NoLength),
    };
    if head.body_bytes > BODY_BYTES_MAX { Err(ParseError::BodyTooLarge) } else { Ok(Some(head)) }
}

/// The text of a JSON string field, found without reading the rest: good for ids and codes, which have no escapes.
/// `None` when the field is missing, not a string, or has an escape.
#[must_use]
pub fn text_field<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let mut at = 0;
    while let Some(found) = find(body.get(at..)?, name.as_bytes()) {
        let (start, end) = (at + found, at + found + name.len());
        at = end;
        let quoted = start > 0 && body.get(start - 1) == Some(&b'"');
        let Some(rest) = body.get(end..).and_then(|rest| rest.strip_prefix(b"\"")).filter(|_| quoted) else { continue };
        let Some(rest) = rest.trim_ascii_start().strip_prefix(b":") else { continue };
        let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
        let value = rest.get(..rest.iter().position(|byte| *byte == b'"')?)?;
        return std::str::from_utf8(value).ok().filter(|text| !text.contains('\\'));
    }
    None
}

fn find(body: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut at = 0;
    loop {
        at += body.get(at..)?.iter().position(|byte| *byte == first)?;
        if body.get(at..)?.starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Length: 20\r\nRetry-After: 3\r\nlocation: /v1/x\r\n\r\n{\"request_id\":\"12\"}\n";

    #[test]
    fn a_head_is_complete_at_its_last_byte_and_not_before() {
        let end = ANSWER.len() - 20;
        for cut in 0..end {
            assert_eq!(parse_head(&ANSWER[..cut]), Ok(None), "{cut} bytes");
        }
        for cut in end..=ANSWER.len() {
            let head = parse_head(&ANSWER[..cut]).unwrap().unwrap();
            assert_eq!((head.status, head.head_bytes, head.body_bytes), (202, end, 20));
            assert_eq!(
                (head.retry_after_s, &ANSWER[head.location.unwrap()], head.closes),
                (Some(3), &b"/v1/x"[..], false)
            );
        }
    }

    #[test]
    fn several_answers_in_one_buffer_are_distinguished() {
        let buffer = [ANSWER, b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", ANSWER].concat();
        let (mut at, mut seen) = (0, Vec::new());
        while at < buffer.len() {
            let head = parse_head(&buffer[at..]).unwrap().unwrap();
            seen.push((head.status, head.closes));
            at += head.total_bytes();
        }
        assert_eq!((seen, at), (vec![(202, false), (204, true), (202, false)], buffer.len()));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let with = |headers: &str| parse_head(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes());
        assert_eq!(with(""), Err(ParseError::NoLength));
        assert_eq!(with("Transfer-Encoding: chunked\r\n"), Err(ParseError::Chunked));
        assert_eq!(with("Content-Length: 1048577\r\n"), Err(ParseError::BodyTooLarge));
        assert_eq!(
            with("Content-Length: 99999999999999999999\r\n"),
            Err(ParseError::Malformed("content-length is not a number"))
        );
        assert_eq!(with("Content-Length: +1\r\n"), Err(ParseError::Malformed("content-length is not a number")));
        assert_eq!(
            with("Content-Length: 1\r\nContent-Length: 2\r\n"),
            Err(ParseError::Malformed("two different content-lengths"))
        );
        assert_eq!(
            with(&format!("X: {}\r\nContent-Length: 0\r\n", "x".repeat(HEAD_BYTES_MAX))),
            Err(ParseError::HeadTooLarge)
        );
        assert_eq!(
            parse_head(format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_BYTES_MAX)).as_bytes()),
            Err(ParseError::HeadTooLarge)
        );
        assert_eq!(with(&"A: b\r\n".repeat(65)), Err(ParseError::Malformed("too many headers")));
        assert_eq!(parse_head(b"SSH-2.0-x\r\n\r\n"), Err(ParseError::Malformed("unreadable head")));
        assert!(matches!(parse_head(b"HTTP/1.1 100 Continue\r\n\r\n"), Err(ParseError::Malformed(_))));
        assert!(
            with("Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n")
                .unwrap()
                .unwrap()
                .retry_after_s
                .is_none()
        );
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let body =
            br#"{"type":"urn:code","title":"code","status":409,"first_code":"no", "code" : "P2-R1","request_id":"77"}"#;
        assert_eq!(text_field(body, "code"), Some("P2-R1"));
        assert_eq!(text_field(body, "request_id"), Some("77"));
        assert_eq!(text_field(body, "status"), None);
        assert_eq!(text_field(body, "missing"), None);
        assert_eq!(text_field(br#"{"code":"a\"b"}"#, "code"), None);
        assert_eq!(text_field(br#"{"code":"cut"#, "code"), None);
    }
}
