//! Switches and holds armed by a test that runs the product in its own process.
//!
//! They are of the whole process: such tests are in a binary where nothing else runs at the same time.

use super::{HOLDS, Hold, Mechanism};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many wait at a [`Hold`].
static HELD: AtomicUsize = AtomicUsize::new(0);

/// How many wait at a [`Hold`] in this process.
#[must_use]
pub fn held_count() -> usize {
    HELD.load(Ordering::SeqCst)
}

/// One that waits; who is ended meanwhile does not.
pub(super) struct Held;

impl Held {
    pub(super) fn new() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Something that is armed in this process as long as this lives.
#[derive(Debug)]
pub struct Armed(&'static str);

impl Armed {
    fn with(name: &'static str, action: &str) -> Self {
        let armed = fail::cfg(name, action);
        debug_assert!(armed.is_ok(), "{action}");
        Self(name)
    }

    /// Who is held goes on waiting; who comes from now on passes.
    pub fn let_others_pass(&self) {
        let armed = fail::cfg(self.0, "return(pass)");
        debug_assert!(armed.is_ok(), "an action");
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        fail::remove(self.0);
    }
}

impl Mechanism {
    /// Leaves it out in this process from now on.
    #[must_use]
    pub fn leave_out(self) -> Armed {
        Armed::with(self.code(), "return")
    }
}

impl Hold {
    /// Holds who comes by in this process from now on.
    #[must_use]
    pub fn hold(self) -> Armed {
        Armed::with(self.code(), &format!("return({HOLDS})"))
    }
}
