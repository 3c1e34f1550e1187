//! What the kernel counts of TCP: repeated SYNs, and connections that a full accept queue threw away.
//!
//! Input: `/proc/net/netstat` and `/proc/net/snmp`. Output: the counters of this network namespace, whatever caused them: the
//! roles' and servers' own connections are among them. A system without these files has no counters.

use serde::Serialize;

/// Counters since the system started, or between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct TcpCounters {
    /// SYNs and SYN-ACKs that were sent again: somebody waited a second or more for a connection.
    pub syn_retransmits: u64,
    /// Connections that met a full accept queue.
    pub listen_overflows: u64,
    /// SYNs and handshakes that a listener threw away, for a full queue or another reason.
    pub listen_drops: u64,
    /// Retransmission timers that ran out.
    pub timeouts: u64,
    /// Segments of any kind that were sent again.
    pub retransmits: u64,
}

impl TcpCounters {
    /// As they are now.
    pub fn now() -> Option<Self> {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/net/{file}")).ok();
        Self::parse(&read("netstat")?, &read("snmp")?)
    }

    fn parse(netstat: &str, snmp: &str) -> Option<Self> {
        Some(Self {
            syn_retransmits: counter(netstat, "TcpExt:", "TCPSynRetrans")?,
            listen_overflows: counter(netstat, "TcpExt:", "ListenOverflows")?,
            listen_drops: counter(netstat, "TcpExt:", "ListenDrops")?,
            timeouts: counter(netstat, "TcpExt:", "TCPTimeouts")?,
            retransmits: counter(snmp, "Tcp:", "RetransSegs")?,
        })
    }

    /// What was added since `before`.
    pub const fn since(self, before: Self) -> Self {
        Self {
            syn_retransmits: self.syn_retransmits.saturating_sub(before.syn_retransmits),
            listen_overflows: self.listen_overflows.saturating_sub(before.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(before.listen_drops),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            retransmits: self.retransmits.saturating_sub(before.retransmits),
        }
    }
}

/// Of a group there are two lines, the names and the values.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, values) = (lines.next()?, lines.next()?);
    names.split_whitespace().zip(values.split_whitespace()).find(|(known, _)| *known == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans\n\
                           TcpExt: 5 7 9 11 13\nIpExt: InNoRoutes ListenDrops\nIpExt: 1 99\n";
    const SNMP: &str = "Ip: Forwarding RetransSegs\nIp: 1 88\nTcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 17\n";

    #[test]
    fn counters_are_found_by_group_and_name() {
        let counters = TcpCounters::parse(NETSTAT, SNMP).unwrap();
        let expected =
            TcpCounters { syn_retransmits: 13, listen_overflows: 7, listen_drops: 9, timeouts: 11, retransmits: 17 };
        assert_eq!(counters, expected);
        let before = TcpCounters { listen_drops: 4, retransmits: 18, ..counters };
        let since = counters.since(before);
        assert_eq!((since.listen_drops, since.retransmits, since.timeouts), (5, 0, 0));
    }

    #[test]
    fn a_system_that_does_not_count_has_no_counters() {
        assert_eq!(TcpCounters::parse("", SNMP), None);
        assert_eq!(TcpCounters::parse(NETSTAT, "Tcp: RtoMin\nTcp: 200\n"), None);
        assert_eq!(TcpCounters::parse("TcpExt: ListenDrops", SNMP), None);
        assert_eq!(counter("Tcp: A B\nTcp: 1\n", "Tcp:", "B"), None);
    }

    #[test]
    fn this_system_counts() {
        assert_eq!(TcpCounters::now().is_some(), cfg!(target_os = "linux"));
    }
}
