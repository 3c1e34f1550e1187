//! Trouble of a background phase as a whole, and what one step of it achieved. What happens to a single item is a state
//! ([`super::states`]).

use std::borrow::Cow;

/// What a step of a background phase achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// This many items moved on; step again at once.
    Moved(usize),
    /// Nothing to do right now.
    Idle,
}

/// Trouble of the loop itself: a server is unavailable or an invariant is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A server did not answer; wait with growing pauses, then step again.
    #[error("{0}")]
    BackOff(Cow<'static, str>),
    /// A server answered and the step failed all the same; wait with growing pauses, then step again.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// Going on would do harm; the process ends with this message.
    #[error("{0}")]
    Stop(Cow<'static, str>),
}

/// An error that may say that a server is away.
pub(crate) trait MayBeOutage {
    /// Whether a server as a whole is unavailable; else this call has failed, and others may work.
    fn is_outage(&self) -> bool;
}

impl Fault {
    /// A fault after which the step is tried again.
    #[allow(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
    pub(crate) fn back_off(error: impl std::fmt::Display + MayBeOutage) -> Self {
        let text = error.to_string().into();
        if error.is_outage() { Self::BackOff(text) } else { Self::Failed(text) }
    }
}
