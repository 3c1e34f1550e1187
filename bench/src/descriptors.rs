//! How many files and sockets a process may have open. Each buyer of a rush, and each that waits, is a
//! socket here and one in the api.

use seckill::cli::Failure;

/// For what is open beside the buyers.
const SPARE: u64 = 1_000;
/// What a service gets that `deploy/systemd` starts.
const OF_A_SERVICE: u64 = 262_144;

/// How many of `buyers` one process can be, after its limit was raised as far as is allowed. The processes it starts inherit
/// the limit.
pub(super) fn buyers_of_a_process(buyers: u64) -> Result<u64, Failure> {
    let open = raised(0, buyers + SPARE);
    let most = open.saturating_sub(SPARE).min(buyers);
    let few = || format!("this process may have only {open} open files; raise the limit (ulimit -n)");
    if most > 0 { Ok(most) } else { Err(Failure::Failed(few())) }
}

/// Lets the process `pid` have as many as a service has, or as near as the system allows. Returns how many.
pub(super) fn for_service(pid: u32) -> u64 {
    libc::pid_t::try_from(pid).map_or(0, |pid| raised(pid, OF_A_SERVICE))
}

/// Raises the limit of `pid` (0: of this process) to `wanted`, if it is lower; returns what it is then.
#[cfg(target_os = "linux")]
fn raised(pid: libc::pid_t, wanted: u64) -> u64 {
    let limited = |limit: Option<&libc::rlimit>| {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let limit = limit.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: both pointers are null or live until it is back.
        let done = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, limit, &raw mut before) } == 0;
        done.then_some(before)
    };
    let Some(now) = limited(None) else { return 0 };
    if now.rlim_cur >= wanted {
        return now.rlim_cur;
    }
    // Above the hard limit only with a privilege; up to it anyone may.
    for soft in [wanted, now.rlim_max.min(wanted)] {
        if limited(Some(&libc::rlimit { rlim_cur: soft, rlim_max: soft.max(now.rlim_max) })).is_some() {
            return soft;
        }
    }
    now.rlim_cur
}

/// Elsewhere there is no such call for another process, and none is needed for a small rush.
#[cfg(not(target_os = "linux"))]
const fn raised(_pid: libc::pid_t, wanted: u64) -> u64 {
    wanted
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_as_far_as_it_goes() {
        assert_eq!(buyers_of_a_process(20).unwrap(), 20);
        let own = for_service(std::process::id());
        assert!(own >= 1_020, "{own}");
        let most = buyers_of_a_process(u64::MAX / 4).unwrap();
        assert!((20..u64::MAX / 4).contains(&most), "no system allows this number: {most}");
        assert_eq!(for_service(u32::MAX), 0, "no such process");
    }
}
