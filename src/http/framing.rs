//! Where requests begin and end among the bytes of a connection, as far as its bounds need it: counting, no parsing.
//!
//! Input: the bytes of a client, and when its calls begin and end. Output: whether a head is too large or too many requests
//! wait. An empty line ends a head, unless it ends the chunks of a body. One within a body counts as a head, too, until the connection
//! is idle: a client that sends many of them is closed, and no other one. Keeps nothing else; a crash loses it with the connection.

use memchr::memchr;
use std::collections::VecDeque;

/// Longest head of a request, bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most requests that wait on a connection for the one under way.
pub(super) const WAITING_REQUESTS_MAX: usize = 16;
/// Most bytes of these requests, beyond a head and a body: with them, less than the 128 KB at which actix-http polls without a rest.
const WAITING_BYTES_MAX: usize = 32 << 10;

/// Longest line that may be the last chunk of a body, bytes.
const ZERO_LINE_BYTES_MAX: usize = 17;

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
    /// How many of them are the digit 0, and whether the last line was nothing else.
    line_zeros: usize,
    after_zero: bool,
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
            line_zeros: 0,
            after_zero: false,
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

    /// Nothing more came.
    pub(super) const fn drained(&mut self) {
        self.drained = true;
    }

    /// Whether the client has begun a head, after another one, and not finished it.
    pub(super) fn is_amid_head(&self) -> bool {
        self.has_served && self.is_idle() && self.behind_bytes > 0
    }

    /// Whether a call has begun before.
    pub(super) const fn has_served(&self) -> bool {
        self.has_served
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
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            let is_empty = match (self.line_bytes, line) {
                (0, [] | [b'\r']) => true,
                (1, []) => self.last == b'\r',
                _ => false,
            };
            self.behind_bytes += line.len() + 1;
            self.count_line(line);
            let is_zero = self.is_zero_line();
            (self.line_bytes, self.line_zeros) = (0, 0);
            bytes = rest.get(1..).unwrap_or_default();
            match (is_empty, std::mem::replace(&mut self.after_zero, is_zero)) {
                (true, true) => self.chunks_end(),
                (true, false) => self.head_ends()?,
                (false, _) => {}
            }
        }
        self.behind_bytes += bytes.len();
        self.count_line(bytes);
        if self.is_idle() && self.behind_bytes > HEAD_BYTES_MAX { Err(TooMuch::Head) } else { Ok(()) }
    }

    /// A part of the present line.
    fn count_line(&mut self, part: &[u8]) {
        // No longer line is of interest.
        if self.line_bytes + part.len() <= ZERO_LINE_BYTES_MAX {
            self.line_zeros += part.iter().filter(|byte| **byte == b'0').count();
        }
        self.line_bytes += part.len();
        self.last = part.last().copied().unwrap_or(self.last);
    }

    /// Whether the line that ends here is 0 and nothing else: the last chunk of a body, or a head that actix-http refuses.
    fn is_zero_line(&self) -> bool {
        let others = self.line_bytes - self.line_zeros;
        self.line_zeros > 0 && (others == 0 || others == 1 && self.last == b'\r')
    }

    /// An empty line that ends the chunks of a body, and no head.
    fn chunks_end(&mut self) {
        if self.is_idle() {
            // Their call had ended before them.
            self.behind_bytes = 0;
        }
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
mod tests;
