//! Heads, bodies, chunks and empty lines, however their bytes are cut.

use super::*;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn framing() -> Framing {
    Framing::new(2048)
}

#[test]
fn requests_one_after_the_other_leave_nothing_behind() {
    let mut framing = framing();
    for n in 0..1000 {
        let body = if n % 2 == 0 { &b""[..] } else { b"{\"a\":1,\r\n\r\n\r\n\"b\":2}" };
        framing.take(&[GET, body].concat()).unwrap();
        framing.call_begins();
        framing.drained();
        framing.call_ends();
        framing.drained();
        assert!(!framing.is_amid_head() && !framing.is_full(), "{n}");
    }
}

#[test]
fn an_empty_line_is_found_however_the_bytes_are_cut() {
    for cut in 1..GET.len() {
        let mut framing = framing();
        for part in GET.chunks(cut) {
            framing.take(part).unwrap();
        }
        assert_eq!((framing.waiting.len(), framing.behind_bytes), (1, 0), "parts of {cut}");
    }
    let mut bare = framing();
    bare.take(b"GET / HTTP/1.0\n\n").unwrap();
    assert_eq!(bare.waiting.len(), 1, "bare line feeds are taken, too");
}

#[test]
fn a_head_may_have_16_kib_and_not_a_byte_more() {
    let head = |bytes: usize| {
        let mut head = b"GET / HTTP/1.1\r\nX: ".to_vec();
        head.resize(bytes - 4, b'x');
        [&head[..], b"\r\n\r\n"].concat()
    };
    assert_eq!(framing().take(&head(HEAD_BYTES_MAX)), Ok(()));
    assert_eq!(framing().take(&head(HEAD_BYTES_MAX + 1)), Err(TooMuch::Head), "in one read");
    let mut slow = framing();
    let parts: Vec<_> = head(HEAD_BYTES_MAX + 5000).chunks(1000).map(|part| slow.take(part)).collect();
    assert_eq!(parts.iter().position(Result::is_err), Some(HEAD_BYTES_MAX / 1000), "{parts:?}");
    let mut second = framing();
    second.take(GET).unwrap();
    second.call_begins();
    second.call_ends();
    assert_eq!(second.take(&head(HEAD_BYTES_MAX + 1)), Err(TooMuch::Head), "on a connection that served before");
}

#[test]
fn sixteen_requests_may_wait_for_the_one_under_way() {
    let many = |count: usize| GET.repeat(count);
    assert_eq!(framing().take(&many(17)), Ok(()));
    assert_eq!(framing().take(&many(18)), Err(TooMuch::Requests));
    let mut busy = framing();
    busy.take(GET).unwrap();
    busy.call_begins();
    assert_eq!((busy.take(&many(16)), busy.take(GET)), (Ok(()), Err(TooMuch::Requests)));
}

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n3\r\n10}\r\n0\r\n\r\n";

#[test]
fn a_request_whose_body_comes_in_chunks_counts_once() {
    for cut in 1..=CHUNKED.len() {
        let mut framing = framing();
        let many = CHUNKED.repeat(17);
        assert!(many.chunks(cut).all(|part| framing.take(part).is_ok()), "parts of {cut}");
        assert_eq!(framing.waiting.len(), 17, "parts of {cut}");
        assert_eq!(framing.take(CHUNKED), Err(TooMuch::Requests), "parts of {cut}");
    }
    let mut bare = framing();
    bare.take(b"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n00\n\n").unwrap();
    assert_eq!(bare.waiting.len(), 1, "bare line feeds are taken, too");
}

#[test]
fn only_a_line_of_zeros_ends_chunks() {
    for line in ["10", "0 ", "0:", "", "00x0", "x"] {
        let mut framing = framing();
        framing.take(format!("POST / HTTP/1.1\r\n\r\n{line}\r\n\r\n").as_bytes()).unwrap();
        assert!(framing.waiting.len() > 1, "{line:?}");
    }
}

#[test]
fn chunks_that_end_behind_their_answer_are_no_half_head() {
    let mut framing = framing();
    let (head, body) = CHUNKED.split_at(CHUNKED.len() - 12);
    framing.take(head).unwrap();
    framing.call_begins();
    framing.call_ends();
    framing.drained();
    framing.take(body).unwrap();
    framing.drained();
    assert!(!framing.is_amid_head());
    assert_eq!(framing.take(&GET.repeat(17)), Ok(()));
}

#[test]
fn a_body_is_no_head_and_more_than_is_allowed_waits_for_the_answer() {
    let mut framing = framing();
    framing.take(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    for _ in 0..60 {
        framing.take(&[b'x'; 1000]).unwrap();
    }
    assert!(framing.is_full());
    framing.call_begins();
    assert!(framing.is_full(), "the call has its head only");
    framing.call_ends();
    assert!(!framing.is_full());
}

#[test]
fn an_empty_line_in_a_body_costs_the_next_request_nothing() {
    let mut framing = framing();
    framing.take(b"POST / HTTP/1.1\r\nContent-Length: 20004\r\n\r\n{\n\n").unwrap();
    framing.call_begins();
    framing.take(&[b'x'; 20_000]).unwrap();
    framing.call_ends();
    framing.drained();
    assert_eq!(framing.take(GET), Ok(()));
    assert!(!framing.has_call());
}

#[test]
fn half_a_head_is_awaited_only_after_a_whole_one() {
    let mut framing = framing();
    framing.take(b"GET / HT").unwrap();
    assert!(!framing.is_amid_head(), "actix-http has a deadline for the first");
    framing.take(b"TP/1.1\r\n\r\n").unwrap();
    framing.call_begins();
    framing.call_ends();
    assert!(!framing.is_amid_head());
    framing.take(b"GET /").unwrap();
    assert!(framing.is_amid_head());
}
