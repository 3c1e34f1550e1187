//! How the process keeps its memory. Input and output: none. A crash here leaves nothing.
//!
//! What one crowd needed is kept for the next: given back to the system after a second, as mimalloc does by itself, it came
//! back page by page in the middle of the next crowd, and everybody waited for the page faults (measured: 250–400 ms).
//! Huge pages are off (feature `no_thp`): on virtual machines one is zeroed in milliseconds.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
use std::ffi::c_long;

/// `mi_option_purge_delay` of mimalloc 2 and 3 (`include/mimalloc.h`); the crate names only the options it calls stable.
const PURGE_DELAY: mi_option_t = 15;
/// Unused memory goes back to the system after this long, milliseconds. mimalloc's own default is 1,000.
const PURGE_DELAY_MS: c_long = 60_000;

/// Keeps unused memory for a minute, unless the environment says otherwise (`MIMALLOC_PURGE_DELAY`, milliseconds; -1: for
/// good). To be called before other threads exist.
pub fn keep_memory() {
    // SAFETY: sets a number in mimalloc's table of options; not thread-safe, and there is one thread.
    unsafe { mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    #[test]
    fn it_is_the_purge_delay_that_is_set() {
        // SAFETY: reads a number.
        let read = || unsafe { mi_option_get(PURGE_DELAY) };
        // Nothing else has this default: a mimalloc that numbers its options anew is noticed here.
        assert_eq!(read(), 1_000, "MIMALLOC_PURGE_DELAY must not be set");
        keep_memory();
        assert_eq!(read(), PURGE_DELAY_MS);
    }
}
