//! How many connections the public server takes, so that buyers never use up the files and sockets the process may have.
//!
//! Without room for one more descriptor nothing works: the operators' port accepts no connection, a lost server cannot be connected
//! again, and the accept loop pauses for half a second each time. So it stops earlier; further buyers wait in the accept queue.

use super::worker_count;
use crate::config;
use std::sync::Once;

/// Kept for the operators' port, the servers, logs and event loops; of a small limit the half.
const RESERVED: u64 = 256;

/// Said once a process, however often it is asked for.
static SAID: Once = Once::new();

/// Connections for each worker thread: as configured, or fewer where the system allows fewer open files. Raises the process'
/// limit as far as it may first.
pub(crate) fn connections_max(settings: &config::Http) -> usize {
    let configured = settings.connections_max;
    let Some(open) = raised() else { return configured };
    let allowed = for_each(open, worker_count(settings));
    if allowed < configured {
        SAID.call_once(|| {
            tracing::warn!(
                open_files = open,
                allowed,
                configured,
                "the limit of open files allows fewer connections for each worker than http.connections_max; raise it (LimitNOFILE, ulimit -n)"
            );
        });
    }
    configured.min(allowed)
}

fn for_each(open: u64, workers: usize) -> usize {
    let buyers = open - RESERVED.min(open / 2);
    (usize::try_from(buyers).unwrap_or(usize::MAX) / workers.max(1)).max(1)
}

/// The soft limit of open files, raised to the hard one; none where the system does not say.
fn raised() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to what it is given, which lives until it is back.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return None;
    }
    let most = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: reads what it is given, which lives until it is back.
    let done = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const most) } == 0;
    Some(if done { most.rlim_cur } else { limit.rlim_cur })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_open_files_is_never_a_buyers() {
        assert_eq!([for_each(256, 2), for_each(20_000, 2), for_each(1_024, 1)], [64, 9_872, 768]);
        assert_eq!([for_each(0, 2), for_each(1, 0)], [1, 1]);
        assert!(for_each(u64::MAX, 1) > 1_000_000);
    }
}
