//! One direction of one connection through a link.

use super::conditions::{Direction, LinkConditions, OneWayConditions};
use super::link::{Shared, Trap};
use crate::support::basics::time::time_passes;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// A server that has not answered a request by then will not be waited for: the client is cut off all the same.
const REPLY_WAIT: Duration = Duration::from_millis(200);
/// After the first reply, what else was on its way may come too: replies are pipelined.
const REPLY_REST_MS: u64 = 20;
/// A throttled link hands over this many slices a second.
const SLICES_PER_S: usize = 20;

/// What becomes of the server's answers on one connection.
#[derive(Default)]
pub(super) struct Reply {
    /// The one to the request that was searched for.
    unwanted: AtomicBool,
    /// All of them from now on.
    lost: AtomicBool,
    /// The client has said something that has no answer yet.
    is_due: AtomicBool,
    asked: Notify,
    came: Notify,
}

impl Reply {
    /// Ends when the request was sent and the server had its chance to execute it.
    pub(super) async fn dropped(&self) {
        self.asked.notified().await;
        drop(timeout(REPLY_WAIT, self.came.notified()).await);
        time_passes(REPLY_REST_MS).await;
    }
}

pub(super) struct Pump<'a> {
    link: &'a Shared,
    direction: Direction,
    reply: &'a Reply,
    from: OwnedReadHalf,
    pub(super) to: OwnedWriteHalf,
    conditions: watch::Receiver<LinkConditions>,
    /// Beside that of the conditions, from the beginning to the end.
    delay_ms: u64,
    /// It has lost bytes, and stays so: what came after the gap would be read as nonsense.
    is_silent: bool,
    /// The end of what went before, where a pattern may have begun.
    tail: Vec<u8>,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        link: &'a Shared,
        direction: Direction,
        reply: &'a Reply,
        (from, to): (OwnedReadHalf, OwnedWriteHalf),
    ) -> Self {
        let conditions = link.conditions.subscribe();
        let delay_ms = match direction {
            Direction::ToServer => 0,
            Direction::ToClient => conditions.borrow().new_ones_delay_ms,
        };
        Self { link, direction, reply, from, to, conditions, delay_ms, is_silent: false, tail: Vec::new() }
    }

    pub(super) async fn run(&mut self) -> std::io::Result<()> {
        let mut buffer = vec![0; 65_536];
        loop {
            let count = self.from.read(&mut buffer).await?;
            let direction = self.direction;
            let passable = |conditions: &LinkConditions| !conditions.lane(direction).black_hole;
            let lane = match self.conditions.wait_for(passable).await {
                Ok(conditions) => conditions.lane(direction),
                Err(_closed) => return Ok(()),
            };
            if count == 0 {
                return self.to.shutdown().await;
            }
            let chunk = &buffer[..count];
            self.is_silent |= lane.lost;
            match direction {
                Direction::ToServer => {
                    self.reply.is_due.store(true, SeqCst);
                    self.search(chunk);
                }
                Direction::ToClient => {
                    self.link.trips.fetch_add(self.reply.is_due.swap(false, SeqCst).into(), SeqCst);
                    if self.reply.unwanted.load(SeqCst) {
                        self.reply.came.notify_one();
                        continue;
                    }
                    self.is_silent |= self.reply.lost.load(SeqCst);
                }
            }
            if self.is_silent {
                continue;
            }
            self.hand_over(chunk, lane).await?;
            self.link.passed_bytes.fetch_add(count as u64, SeqCst);
        }
    }

    async fn hand_over(&mut self, chunk: &[u8], lane: OneWayConditions) -> std::io::Result<()> {
        let delay_ms = lane.delay_ms + self.delay_ms;
        if delay_ms > 0 {
            time_passes(delay_ms).await;
        }
        if lane.bytes_per_s == 0 {
            return self.to.write_all(chunk).await;
        }
        for slice in chunk.chunks((lane.bytes_per_s / SLICES_PER_S).max(1)) {
            // The link may have healed meanwhile, then the rest goes at once.
            if self.conditions.borrow().lane(self.direction).bytes_per_s > 0 {
                time_passes(1000 / SLICES_PER_S as u64).await;
            }
            self.to.write_all(slice).await?;
        }
        Ok(())
    }

    /// Searches what the client says for what is armed.
    fn search(&mut self, chunk: &[u8]) {
        let mut armed = self.link.armed.lock().expect("not poisoned");
        let Some((pattern, trap)) = armed.as_ref() else {
            self.tail.clear();
            return;
        };
        self.tail.extend_from_slice(chunk);
        if !(pattern.is_empty() || self.tail.windows(pattern.len()).any(|window| window == pattern)) {
            let keep = self.tail.len().min(pattern.len() - 1);
            self.tail.drain(..self.tail.len() - keep);
            return;
        }
        self.tail.clear();
        self.link.fired.fetch_add(1, SeqCst);
        match trap {
            Trap::DropsReply => {
                *armed = None;
                self.reply.unwanted.store(true, SeqCst);
                self.reply.asked.notify_one();
            }
            Trap::Silences => self.reply.lost.store(true, SeqCst),
        }
    }
}
