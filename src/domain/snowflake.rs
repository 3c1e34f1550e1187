//! Request ids: 41 bits of milliseconds since 2025-01-01 UTC, 10 bits of node id, 12 bits of sequence.
//!
//! Two protections that ready-made generators lack, and why this is our own code:
//! - *clock steps*: a clock that jumps back never yields a repeated id; the generator goes on from its own last
//!   millisecond, borrowing from the future when a millisecond's sequence is spent.
//! - *leased nodes with a time fence*: a node id comes with the last millisecond its lease covers. Ids beyond it are
//!   refused, and the next holder of the node id starts after it. So two processes never make the same id even when one of
//!   them was stopped for an hour or their clocks disagree.
//!
//! Pure: the caller passes the clock in.

use super::ids::RequestId;

/// Milliseconds between the Unix epoch and the ids' own epoch (2025-01-01T00:00:00Z).
pub(crate) const EPOCH_MS: i64 = 1_735_689_600_000;
/// Node ids are `0..NODES`.
pub const NODES: u16 = 1 << NODE_BITS;
const NODE_BITS: u32 = 10;
const SEQUENCE_BITS: u32 = 12;
const SEQUENCE_MAX: u16 = (1 << SEQUENCE_BITS) - 1;
const TIME_MAX_MS: i64 = (1 << 41) - 1;

/// Why no id can be made right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnowflakeError {
    /// The lease has to be renewed first; retrying after the renewal works.
    #[error("the node lease covers ids up to {fence_ms} ms only, renew it")]
    LeaseSpent {
        /// Last covered millisecond (Unix time).
        fence_ms: i64,
    },
    /// The clock is outside what 41 bits can hold (before 2025 or after 2094).
    #[error("the clock shows {now_ms} ms, outside 2025 to 2094")]
    ClockOutOfRange {
        /// What the clock said, Unix time.
        now_ms: i64,
    },
}

/// Makes ids for one leased node. Not shared: one owner, `&mut`.
#[derive(Debug)]
pub(crate) struct Snowflake {
    node: u16,
    /// The millisecond of the newest id (Unix time); the next id is never in an earlier one.
    last_ms: i64,
    sequence: u16,
    fence_ms: i64,
}

impl Snowflake {
    /// A generator for `node` (taken modulo [`NODES`]) whose ids lie in `(after_ms, fence_ms]`, both Unix time.
    ///
    /// `after_ms` is the previous holder's fence: nothing at or before it is ever issued again.
    #[must_use]
    pub(crate) const fn new(node: u16, after_ms: i64, fence_ms: i64) -> Self {
        Self { node: node % NODES, last_ms: after_ms, sequence: SEQUENCE_MAX, fence_ms }
    }

    /// Moves the fence forward after a renewal. A fence never moves back.
    pub(crate) fn extend(&mut self, fence_ms: i64) {
        self.fence_ms = self.fence_ms.max(fence_ms);
    }

    /// The next id.
    pub(crate) fn next(&mut self, now_ms: i64) -> Result<RequestId, SnowflakeError> {
        let (ms, sequence) = if now_ms > self.last_ms {
            (now_ms, 0)
        } else if self.sequence < SEQUENCE_MAX {
            (self.last_ms, self.sequence + 1)
        } else {
            (self.last_ms + 1, 0)
        };
        if ms > self.fence_ms {
            return Err(SnowflakeError::LeaseSpent { fence_ms: self.fence_ms });
        }
        let since_epoch_ms = ms - EPOCH_MS;
        if !(0..=TIME_MAX_MS).contains(&since_epoch_ms) {
            return Err(SnowflakeError::ClockOutOfRange { now_ms });
        }
        let id = (since_epoch_ms.unsigned_abs() << (NODE_BITS + SEQUENCE_BITS))
            | (u64::from(self.node) << SEQUENCE_BITS)
            | u64::from(sequence);
        let id = RequestId::new(id).ok_or(SnowflakeError::ClockOutOfRange { now_ms })?;
        self.last_ms = ms;
        self.sequence = sequence;
        Ok(id)
    }
}

/// The millisecond (Unix time) an id was made in, by its maker's clock.
#[must_use]
pub(crate) fn made_at_ms(id: RequestId) -> i64 {
    EPOCH_MS + i64::try_from(id.get() >> (NODE_BITS + SEQUENCE_BITS)).unwrap_or(TIME_MAX_MS)
}

/// The lowest id that could be made in that millisecond (Unix time), or the nearest that there is.
#[must_use]
pub(crate) fn first_id_at(unix_ms: i64) -> RequestId {
    let ms = unix_ms.saturating_sub(EPOCH_MS).clamp(0, TIME_MAX_MS);
    let id = u64::try_from(ms).unwrap_or(0) << (NODE_BITS + SEQUENCE_BITS);
    RequestId::new(id).unwrap_or(RequestId::LOWEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const T0: i64 = EPOCH_MS + 1_000_000;

    proptest! {
        #[test]
        fn ids_never_repeat_and_only_rise_whatever_the_clock_does(steps in prop::collection::vec(-5_000i64..5_000, 1..3_000)) {
            let mut generator = Snowflake::new(7, T0, i64::MAX);
            let mut now = T0;
            let mut last = 0;
            for step in steps {
                now = (now + step).max(EPOCH_MS);
                let id = generator.next(now).unwrap().get();
                prop_assert!(id > last);
                last = id;
            }
        }

        #[test]
        fn a_new_holder_of_the_node_never_repeats_the_old_holders_ids(
            fence in 1i64..50, skew in -100i64..100, count in 1usize..5_000,
        ) {
            let mut seen = HashSet::new();
            let mut old = Snowflake::new(3, T0, T0 + fence);
            for i in 0..count {
                if let Ok(id) = old.next(T0 + i64::try_from(i).unwrap() / 10) { seen.insert(id); }
            }
            let mut new = Snowflake::new(3, T0 + fence, T0 + fence + 1_000);
            for _ in 0..count {
                if let Ok(id) = new.next(T0 + skew) { prop_assert!(seen.insert(id)); }
            }
        }
    }

    #[test]
    fn the_fence_stops_ids_until_it_is_extended() {
        let mut generator = Snowflake::new(1, T0, T0 + 10);
        assert!(generator.next(T0 + 10).is_ok());
        assert_eq!(generator.next(T0 + 11), Err(SnowflakeError::LeaseSpent { fence_ms: T0 + 10 }));
        generator.extend(T0 + 20);
        assert_eq!(made_at_ms(generator.next(T0 + 11).unwrap()), T0 + 11);
    }

    #[test]
    fn an_absurd_clock_is_an_error_not_an_id() {
        let mut generator = Snowflake::new(1, 0, i64::MAX);
        assert!(matches!(generator.next(5), Err(SnowflakeError::ClockOutOfRange { .. })));
    }
}
