//! How old an undecided request may be. Values only.

use std::time::Duration;

/// How old an undecided request may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// This many milliseconds.
    Ms(u64),
    /// It may not be undecided at all.
    Now,
}

impl Window {
    /// Milliseconds; below zero with [`Window::Now`], so that every age is beyond it.
    pub(super) fn limit_ms(self) -> i64 {
        match self {
            Self::Ms(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
            Self::Now => -1,
        }
    }

    pub(super) const fn duration(self) -> Duration {
        match self {
            Self::Ms(ms) => Duration::from_millis(ms),
            Self::Now => Duration::ZERO,
        }
    }
}
