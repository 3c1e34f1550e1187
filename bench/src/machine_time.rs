//! What the whole machine did while something was measured, from `/proc/stat`: so that a figure which was measured beside other
//! work says so. Where there is no such file, nothing is said.

use serde::Serialize;

/// Others are mentioned from this share of the machine on; the kernel counts in ticks, so less may be nothing.
const OTHERS_SHOWN: f64 = 0.1;
/// The same of what a host took from a virtual machine.
const STEAL_SHOWN: f64 = 0.03;

/// Processor time since the start of the system, of all processors together, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MachineTime {
    all: f64,
    idle: f64,
    steal: f64,
}

/// Shares of all processor time of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct MachineShares {
    pub idle: f64,
    /// Taken by the host for another virtual machine.
    pub steal: f64,
    /// Used by processes that are not part of the measurement.
    pub others: f64,
}

/// Clock ticks of the kernel, in which `/proc` counts.
#[expect(clippy::cast_precision_loss, reason = "ticks a second")]
pub(super) fn ticks_per_s() -> f64 {
    // SAFETY: a plain question to the system.
    let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    per_s.max(1) as f64
}

impl MachineTime {
    pub fn now() -> Option<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat").ok()?, ticks_per_s())
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal, and guests, which are in user.
    fn read(stat: &str, per_s: f64) -> Option<Self> {
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let [.., idle, iowait, _irq, _softirq, steal] = ticks.as_slice() else { return None };
        let all: f64 = ticks.iter().sum();
        Some(Self { all: all / per_s, idle: (idle + iowait) / per_s, steal: steal / per_s })
    }

    pub fn since(self, before: Self) -> Self {
        Self { all: self.all - before.all, idle: self.idle - before.idle, steal: self.steal - before.steal }
    }

    /// `measured_s`: what the measured processes used.
    pub fn shares(self, measured_s: f64) -> MachineShares {
        let all = self.all.max(0.01);
        let others = self.all - self.idle - self.steal - measured_s;
        MachineShares { idle: self.idle / all, steal: self.steal / all, others: (others / all).max(0.0) }
    }
}

impl MachineShares {
    /// Those of two times together; `part` of them is the later one, 0 to 1.
    pub fn and(self, later: Self, part: f64) -> Self {
        let both = |share: f64, later: f64| (later - share).mul_add(part, share);
        Self {
            idle: both(self.idle, later.idle),
            steal: both(self.steal, later.steal),
            others: both(self.others, later.others),
        }
    }

    /// Not idle, 0 to 1.
    pub fn busy(self) -> f64 {
        1.0 - self.idle
    }

    /// For people; empty when nothing disturbed.
    pub fn note(self) -> String {
        let part = |share: f64, shown: f64, words: &str| {
            if share < shown { String::new() } else { format!("; {words} {:.0} % of the machine", share * 100.0) }
        };
        part(self.others, OTHERS_SHOWN, "OTHERS USED") + &part(self.steal, STEAL_SHOWN, "THE HOST TOOK")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_others_and_of_the_host_is_reported() {
        let before = MachineTime::read("cpu  100 0 50 850 0 0 0 0 0 0\ncpu0 1", 100.0).unwrap();
        let after = MachineTime::read("cpu  200 0 100 880 10 5 5 10 7 0\ncpu0 1", 100.0).unwrap();
        let shares = after.since(before).shares(1.0);
        let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
        // Of 2.1 s: 0.4 idle, 0.1 stolen, 1.0 measured, 0.6 of others.
        assert!(near(shares.idle, 0.4 / 2.1) && near(shares.steal, 0.1 / 2.1) && near(shares.others, 0.6 / 2.1));
        assert!(near(shares.busy(), 1.7 / 2.1));
        assert_eq!(shares.note(), "; OTHERS USED 29 % of the machine; THE HOST TOOK 5 % of the machine");
        assert_eq!(MachineShares { idle: 0.9, steal: 0.0, others: 0.05 }.note(), "");
        assert_eq!(MachineTime::read("intr 1", 100.0), None);
        let (busy, idle) = (
            MachineShares { idle: 0.0, steal: 0.0, others: 0.5 },
            MachineShares { idle: 1.0, steal: 0.0, others: 0.0 },
        );
        let both = busy.and(idle, 0.25);
        assert!(near(both.idle, 0.25) && near(both.others, 0.375));
    }
}
