//! Who used the processors while something was measured: processor seconds of the load generator (this process), of each
//! role and of each server, from its processor clock or `/proc/<pid>/stat`. Where there is neither, the report has no figures.

use super::environment::Environment;
use super::machine_time::{MachineShares, MachineTime, ticks_per_s};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

/// What this process is called: with roles in processes of their own it only makes the load.
pub(super) const LOAD: &str = "load generator";

/// Processor time from now on.
pub(super) struct CpuMeter {
    pids: BTreeMap<String, u32>,
    before: BTreeMap<String, f64>,
    machine: Option<MachineTime>,
    begun: Instant,
}

/// Processor seconds of a measurement, by process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CpuUsage {
    pub seconds: BTreeMap<String, f64>,
    pub elapsed_s: f64,
    /// Who else used the machine; `None` where the system does not say.
    pub machine: Option<MachineShares>,
}

impl CpuMeter {
    pub fn start(environment: &Environment) -> Self {
        Self::start_as(LOAD, environment)
    }

    /// With another name for this process: that of the role whose code it runs itself.
    pub fn start_as(this: &str, environment: &Environment) -> Self {
        Self::of(environment, vec![(this.to_owned(), std::process::id())])
    }

    /// Beside this process with one more than those of the environment.
    pub fn start_with(environment: &Environment, other: (&str, u32)) -> Self {
        Self::of(environment, vec![(LOAD.to_owned(), std::process::id()), (other.0.to_owned(), other.1)])
    }

    /// With these processes, which make the load, instead of this one.
    pub fn of(environment: &Environment, load: Vec<(String, u32)>) -> Self {
        let mut pids = environment.pids();
        pids.extend(load);
        Self { before: all(&pids), machine: MachineTime::now(), pids, begun: Instant::now() }
    }

    /// Processes that were there at both ends.
    pub fn end(&self) -> CpuUsage {
        let after = all(&self.pids);
        let used = after.iter().filter_map(|(name, after)| Some((name.clone(), after - self.before.get(name)?)));
        self.usage(used.collect())
    }

    /// The same, and the processes of the environment that started meanwhile, from their beginning.
    pub fn end_with_started(&self, environment: &Environment) -> CpuUsage {
        let mut pids = environment.pids();
        pids.extend(self.pids.clone());
        let used = |(name, after)| {
            let before = self.before.get(&name).copied().unwrap_or(0.0);
            (name, after - before)
        };
        self.usage(all(&pids).into_iter().map(used).collect())
    }

    fn usage(&self, seconds: BTreeMap<String, f64>) -> CpuUsage {
        let machine = MachineTime::now().zip(self.machine);
        let machine = machine.map(|(now, before)| now.since(before).shares(seconds.values().sum()));
        CpuUsage { seconds, elapsed_s: self.begun.elapsed().as_secs_f64(), machine }
    }
}

impl CpuUsage {
    /// Both together.
    pub fn and(mut self, later: Self) -> Self {
        for (name, seconds) in later.seconds {
            *self.seconds.entry(name).or_default() += seconds;
        }
        let elapsed_s = self.elapsed_s + later.elapsed_s;
        let part = later.elapsed_s / elapsed_s.max(0.001);
        let machine = self.machine.zip(later.machine).map(|(first, second)| first.and(second, part));
        Self { elapsed_s, machine, ..self }
    }

    /// The same with all processes that made the load as one.
    pub fn with_one_load(self) -> Self {
        let mut seconds = BTreeMap::new();
        for (name, used) in self.seconds {
            let name = if name.starts_with(LOAD) { LOAD.to_owned() } else { name };
            *seconds.entry(name).or_default() += used;
        }
        Self { seconds, ..self }
    }

    /// The load generator's part of all processor time distinguished here; `None` when nothing was.
    pub fn load_share(&self) -> Option<f64> {
        let all: f64 = self.seconds.values().sum();
        self.seconds.get(LOAD).filter(|_| all > 0.0).map(|load| load / all)
    }

    /// For people: per cent of one core each, the busiest first.
    pub fn note(&self) -> String {
        let mut parts: Vec<(&String, f64)> =
            self.seconds.iter().map(|(name, seconds)| (name, seconds * 100.0 / self.elapsed_s.max(0.001))).collect();
        parts.sort_by(|one, other| other.1.total_cmp(&one.1));
        let words =
            parts.iter().filter(|(_, percent)| *percent >= 0.5).map(|(name, percent)| format!("{name} {percent:.0} %"));
        let words: Vec<String> = words.collect();
        let disturbed = self.disturbed();
        if words.is_empty() { disturbed } else { format!("; cores: {}{disturbed}", words.join(", ")) }
    }

    /// For people: who else used the machine; empty when nothing did.
    pub fn disturbed(&self) -> String {
        self.machine.map_or_else(String::new, MachineShares::note)
    }

    /// For people: how much of the machine was in use, by this run and by others; empty where the system does not say.
    pub fn busy_note(&self) -> String {
        self.machine
            .map_or_else(String::new, |machine| format!("; the machine was busy to {:.0} %", machine.busy() * 100.0))
    }

    pub fn json(&self) -> Value {
        let share = self.load_share();
        let Self { seconds, elapsed_s, machine } = self;
        json!({ "seconds": seconds, "elapsed_s": elapsed_s, "load_generator_share": share, "machine": machine })
    }
}

fn all(pids: &BTreeMap<String, u32>) -> BTreeMap<String, f64> {
    pids.iter().filter_map(|(name, pid)| Some((name.clone(), seconds(*pid)?))).collect()
}

/// By the process' own clock, to the nanosecond; where there is none by `/proc`, to a clock tick.
fn seconds(pid: u32) -> Option<f64> {
    clock_s(pid).or_else(|| ticks_s(pid))
}

#[cfg(target_os = "linux")]
fn clock_s(pid: u32) -> Option<f64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both write to what they are given, which lives until they are back.
    let is_read = unsafe {
        libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    #[expect(clippy::cast_precision_loss, reason = "seconds of a process; 53 bits are enough")]
    let used = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    is_read.then_some(used)
}

#[cfg(not(target_os = "linux"))]
const fn clock_s(_pid: u32) -> Option<f64> {
    None
}

fn ticks_s(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "clock ticks of a process; 53 bits are enough")]
    let used = ticks(&stat)? as f64;
    Some(used / ticks_per_s())
}

/// User and system time, in clock ticks. The name of the program may hold spaces and parentheses, so it is cut off first.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Most memory the process ever had resident, MiB.
pub(super) fn resident_peak_mib(pid: u32) -> Option<f64> {
    peak_kib(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?).map(|kib| kib / 1024.0)
}

fn peak_kib(status: &str) -> Option<f64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 700 42 0 0 20";
        assert_eq!(ticks(&format!("17 (a) b) {rest}")), Some(742));
        assert_eq!(ticks("17 (redis-server) S 1"), None);
        assert_eq!(peak_kib("Name:\tx\nVmPeak:\t9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t1 kB\n"), Some(2048.0));
    }

    #[test]
    fn a_process_is_distinguished_by_its_own_clock() {
        let before = seconds(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while seconds(std::process::id()).unwrap() - before < 0.02 {
            sum = std::hint::black_box(sum + 1);
        }
        let (clock, ticks) = (seconds(std::process::id()).unwrap(), ticks_s(std::process::id()).unwrap());
        assert!(sum > 0 && (clock - ticks).abs() < 0.5 + clock * 0.2, "{clock} {ticks}");
        assert_eq!(seconds(u32::MAX - 1), None);
    }

    #[test]
    fn shares_are_parts_of_what_was_used() {
        let used = |pairs: &[(&str, f64)]| CpuUsage {
            seconds: pairs.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect(),
            elapsed_s: 2.0,
            machine: None,
        };
        let usage = used(&[(LOAD, 1.0), ("api", 2.0), ("redis", 1.0), ("mysql", 0.0)]);
        assert_eq!(usage.load_share(), Some(0.25));
        assert_eq!(usage.note(), "; cores: api 100 %, load generator 50 %, redis 50 %");
        let several = used(&[(LOAD, 1.0), ("load generator 2", 2.0), ("api", 3.0)]);
        assert_eq!(several.with_one_load(), used(&[(LOAD, 3.0), ("api", 3.0)]));
        assert_eq!((used(&[]).load_share(), used(&[]).note()), (None, String::new()));
        let both = used(&[(LOAD, 1.0), ("api", 2.0)]).and(used(&[("api", 1.0), ("redis", 0.5)]));
        assert_eq!(both, CpuUsage { elapsed_s: 4.0, ..used(&[(LOAD, 1.0), ("api", 3.0), ("redis", 0.5)]) });
    }
}
