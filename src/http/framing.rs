//! Where requests begin and end among the bytes of a connection, as far as its bounds need it: counting, no parsing.
//!
//! Input: the bytes of a client, and when its calls begin and end. Output: whether a head is too large or too many requests
//! wait. An empty line ends a head. One within a body counts as a head, too, until the connection is idle: a client that sends many
//! of them is closed, and no other one. Keeps nothing else; a crash loses it with the connection.

use std::collections::VecDeque;

/// Longest head of a request, bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most requests that wait on a connection for the one under way.
pub(super) const WAITING_REQUESTS_MAX: usize = 16;
/// Most bytes of these requests, beyond a head and a body: with them, less than the 128 KB at which actix-http polls without a rest.
const WAITING_BYTES_MAX: usize = 32 << 10;

/// Which bound a client has broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooMuch {
    Head,
    Requests,
}

/// What was read from a connection and is not answered.
pub(super) struct Framing {
    body_bytes_max: usize,
    /// The requests of which no call has begun, by the length of their heads with the body before; the oldest first.
    waiting: VecDeque<usize>,
    /// What was read behind the last head.
    behind_bytes: usize,
    /// Bytes of the present line, and the last one.
    line_bytes: usize,
    last: u8,
    under_way: u32,
    /// A call has begun before.
    has_served: bool,
    /// The client has sent no more, so what was read is handled as far as it can be.
    drained: bool,
}

impl Framing {
    pub(super) const fn new(body_bytes_max: usize) -> Self {
        Self {
            body_bytes_max,
            waiting: VecDeque::new(),
            behind_bytes: 0,
            // The first line is not empty before it has begun.
            line_bytes: 2,
            last: 0,
            under_way: 0,
            has_served: false,
            drained: true,
        }
    }

    pub(super) fn call_begins(&mut self) {
        self.waiting.pop_front();
        self.under_way += 1;
        self.has_served = true;
    }

    pub(super) fn call_ends(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        if self.is_idle() {
            // Its body, and of the next head what came with it.
            self.behind_bytes = 0;
        }
    }

    fn is_idle(&self) -> bool {
        self.under_way == 0 && self.waiting.is_empty()
    }

    /// Nothing more came: whether the client has begun a head, after another one, and not finished it.
    pub(super) fn is_amid_head(&mut self) -> bool {
        self.drained = true;
        self.has_served && self.is_idle() && self.behind_bytes > 0
    }

    /// Whether a call is under way.
    pub(super) const fn has_call(&self) -> bool {
        self.under_way > 0
    }

    /// Whether a call under way has to end, or one to begin, before more is read.
    pub(super) fn is_full(&self) -> bool {
        let bytes = self.waiting.iter().sum::<usize>() + self.behind_bytes;
        !self.is_idle() && bytes > HEAD_BYTES_MAX + self.body_bytes_max + WAITING_BYTES_MAX
    }

    /// Takes what was read.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), TooMuch> {
        if std::mem::take(&mut self.drained) && self.under_way == 0 && !self.waiting.is_empty() {
            // All that was complete has been answered: what still waits were empty lines of bodies, and so was what stood behind them.
            self.waiting.clear();
            self.behind_bytes = 0;
        }
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            let is_empty = match (self.line_bytes, line) {
                (0, [] | [b'\r']) => true,
                (1, []) => self.last == b'\r',
                _ => false,
            };
            self.behind_bytes += line.len() + 1;
            self.line_bytes = 0;
            bytes = rest.get(1..).unwrap_or_default();
            if is_empty {
                self.head_ends()?;
            }
        }
        self.behind_bytes += bytes.len();
        self.line_bytes += bytes.len();
        self.last = bytes.last().copied().unwrap_or(self.last);
        if self.is_idle() && self.behind_bytes > HEAD_BYTES_MAX { Err(TooMuch::Head) } else { Ok(()) }
    }

    fn head_ends(&mut self) -> Result<(), TooMuch> {
        if self.is_idle() && self.behind_bytes > HEAD_BYTES_MAX {
            return Err(TooMuch::Head);
        }
        // Of the waiting ones, one may be about to begin.
        let most = if self.under_way == 0 { WAITING_REQUESTS_MAX + 1 } else { WAITING_REQUESTS_MAX };
        if self.waiting.len() >= most {
            return Err(TooMuch::Requests);
        }
        self.waiting.push_back(std::mem::take(&mut self.behind_bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
            framing.is_amid_head();
            framing.call_ends();
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
        framing.is_amid_head();
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
}
