//! Free loopback ports that stay free while their server is down for a restart.
//!
//! Ports come from *below* the kernel's range for outgoing connections. From inside that range (where `bind` to port 0
//! gives them) a client that keeps dialling a dead server sooner or later gets the server's port as its own source port,
//! connects to itself, and the server cannot come back.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rand::Rng;

use super::DevError;

/// Below this, well-known services live.
const LOWEST_PORT: u16 = 10_000;
/// Fewer candidates than this are not worth rolling dice on.
const CANDIDATES_MIN: u16 = 1_000;
/// Tries before giving up; with thousands of candidates even ten would do.
const TRIES_MAX: u32 = 1_000;

/// Ports given out by this process, so that two servers started side by side never get the same one.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A loopback TCP port without a listener, never given twice by this process.
pub fn free_port() -> Result<u16, DevError> {
    let candidates = candidates();
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES_MAX {
        let port = rand::rng().random_range(candidates.clone());
        if !given.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            given.insert(port);
            return Ok(port);
        }
    }
    Err(DevError::NoPort { tried: TRIES_MAX })
}

fn candidates() -> Range<u16> {
    let ephemeral = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    candidates_outside(&ephemeral)
}

/// `ephemeral` is the text of `ip_local_port_range`: lowest and highest port, or empty when the system has none.
fn candidates_outside(ephemeral: &str) -> Range<u16> {
    let mut bounds = ephemeral.split_whitespace().filter_map(|word| word.parse::<u16>().ok());
    let (low, high) = (bounds.next().unwrap_or(32_768), bounds.next().unwrap_or(60_999));
    if low.saturating_sub(LOWEST_PORT) >= CANDIDATES_MIN {
        LOWEST_PORT..low
    } else if u16::MAX - high >= CANDIDATES_MIN {
        high..u16::MAX
    } else {
        // Everything is ephemeral here; a rare clash is better than no port.
        LOWEST_PORT..u16::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_avoid_the_range_of_outgoing_connections() {
        assert_eq!(candidates_outside("32768\t60999\n"), 10_000..32_768);
        assert_eq!(candidates_outside("1024 60999"), 60_999..u16::MAX);
        assert_eq!(candidates_outside("1024 65535"), 10_000..u16::MAX);
        assert_eq!(candidates_outside(""), 10_000..32_768);
    }

    #[test]
    fn no_port_is_given_twice() {
        let ports: Vec<u16> = (0..50).filter_map(|_| free_port().ok()).collect();
        assert_eq!(ports.len(), 50);
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 50);
    }
}
