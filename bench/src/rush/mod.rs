//! `rush`: the first second of a sale. Many buyers are due within one second; each opens a connection inside the measurement,
//! most for one purchase only, with an access token that the api sees for the first time. Reported is what they got and when,
//! from the time each was due, and what the kernel counted: a connection that meets a full accept queue waits until its SYN
//! is repeated, a second or three later.
//!
//! The buyers are processes of their own (`generators`), because a process may have a bounded number of sockets. They share the
//! processors with what they measure, so their own lateness is reported too.

mod buyers;
mod generators;
mod seen;
mod tcp_counters;

pub(crate) use generators::serve;

use super::bar::Bar;
use super::cpu::{CpuMeter, CpuUsage, resident_peak_mib};
use super::descriptors;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use generators::Generators;
use seckill::cli::Failure;
use seen::{RushFigures, words};
use serde_json::{Value, json};
use tcp_counters::TcpCounters;

/// Units of the sale.
const STOCK: i64 = 1_000;

/// One rush and what it did to the api.
pub(super) struct RushRun {
    figures: RushFigures,
    /// `None`: this system does not count.
    tcp: Option<TcpCounters>,
    /// Most memory of the api since it started, MiB.
    api_peak_mib: Option<f64>,
    /// Files and sockets the api may have open.
    api_open_max: Option<u64>,
    landed: i64,
    cpu: CpuUsage,
}

/// A rush on a new sale. The roles must run; their servers hold what was sold.
pub(super) async fn one(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<RushRun, Failure> {
    let api = environment.pids().get("api").copied();
    let api_open_max = api.map(descriptors::for_service);
    let sale = environment.sale("rush", STOCK, Some(1)).await?;
    spinner.say("access tokens");
    let mut generators = Generators::start(environment, &sale, sizes.rush).await?;
    spinner.say(&format!("{} buyers", sizes.rush));
    let (watch, before) = (CpuMeter::of(environment, generators.pids()), TcpCounters::now());
    let seen = generators.run().await?;
    let (cpu, after) = (watch.end().with_one_load(), TcpCounters::now());
    drop(generators);
    environment.go_on()?;
    environment.drained(&sale, sizes.patience, &|_landed, _sold| {}).await?;
    let (landed, _) = environment.landed_and_sold(&sale).await?;
    Ok(RushRun {
        figures: RushFigures::of(&seen),
        tcp: after.zip(before).map(|(after, before)| after.since(before)),
        api_peak_mib: api.and_then(resident_peak_mib),
        api_open_max,
        landed,
        cpu,
    })
}

/// The bars of a rush, beside one with the other build of `--against`.
pub(super) fn bars(ours: &RushRun, other: Option<&RushRun>) -> Vec<Bar> {
    let figures = &ours.figures;
    let more = json!({ "rush": ours.json(), "other_build": other.map(RushRun::json) });
    let note = other.map_or_else(|| ours.note(), |other| format!("{}; THE OTHER BUILD: {}", ours.note(), other.note()));
    let waited = Bar::of("rush", ours.waited(), "connections").beside(other.map(RushRun::waited));
    // Without the counters it is unknown whether a SYN was repeated.
    let waited = if ours.tcp.is_some() { waited.at_most(0.0) } else { waited };
    let within = Bar::of("rush_within_1s", figures.within_1s_percent(), "%")
        .beside(other.map(|other| other.figures.within_1s_percent()))
        .note("of all buyers, answered within a second from when they were due".to_owned());
    let p99 = Bar::of("rush_p99", figures.answers.p99_ms, "ms")
        .beside(other.map(|other| other.figures.answers.p99_ms))
        .note("from when a purchase was due to its answer".to_owned());
    vec![waited.note(note).more(more), within, p99]
}

impl RushRun {
    /// SYNs that were repeated or thrown away, and buyers who got nothing.
    #[expect(clippy::cast_precision_loss, reason = "counts of one run")]
    fn waited(&self) -> f64 {
        let lost = self.tcp.map_or(0, |tcp| tcp.syn_retransmits + tcp.listen_drops);
        lost as f64 + self.figures.unanswered() as f64
    }

    fn note(&self) -> String {
        let figures = &self.figures;
        let tcp = self.tcp.map_or_else(
            || "this system does not count SYNs".to_owned(),
            |tcp| format!("{} SYNs repeated, {} dropped by a listener", tcp.syn_retransmits, tcp.listen_drops),
        );
        let memory = self.api_peak_mib.map_or_else(String::new, |mib| format!("; api at most {mib:.0} MiB resident"));
        format!(
            "{} buyers due within 1 s, {} connections opened in it, generator late p99 {:.0} ms; {tcp}, {} without an \
             answer, {} refused as busy; p50 {:.0}, p99 {:.0}, max {:.0} ms; the slowest hundredth: {}; {} of {} kept \
             connections answered again{memory}{}",
            figures.buyers,
            figures.opened_first_s,
            figures.lateness.p99_ms,
            figures.unanswered(),
            figures.busy_answers,
            figures.answers.p50_ms,
            figures.answers.p99_ms,
            figures.answers.max_ms,
            words(&figures.slowest),
            figures.kept,
            figures.kept_asked,
            self.cpu.note()
        )
    }

    fn json(&self) -> Value {
        json!({
            "figures": self.figures, "tcp": self.tcp, "api_peak_mib": self.api_peak_mib,
            "api_open_files_max": self.api_open_max, "stock": STOCK, "landed_units": self.landed, "cpu": self.cpu.json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn run(syn_retransmits: Option<u64>, answered: usize) -> RushRun {
        let tcp = |syn_retransmits| TcpCounters {
            syn_retransmits,
            listen_overflows: 9,
            listen_drops: 0,
            timeouts: 9,
            retransmits: 9,
        };
        let cpu = CpuUsage { seconds: BTreeMap::new(), elapsed_s: 1.0, machine: None };
        let figures = RushFigures { buyers: 10, answered, ..RushFigures::of(&[]) };
        let tcp = syn_retransmits.map(tcp);
        RushRun { figures, tcp, api_peak_mib: None, api_open_max: None, landed: 0, cpu }
    }

    #[test]
    fn a_repeated_syn_and_a_missing_answer_break_the_bar() {
        let bar = |ours: RushRun, other: Option<RushRun>| bars(&ours, other.as_ref()).remove(0);
        assert_eq!(bar(run(Some(0), 10), None).holds, Some(true));
        assert_eq!(bar(run(Some(1), 10), None).holds, Some(false));
        assert_eq!(bar(run(Some(0), 9), None).holds, Some(false));
        assert_eq!(bar(run(None, 10), None).holds, None, "nothing was counted");
        let beside = bar(run(Some(0), 10), Some(run(Some(700), 10)));
        assert_eq!((beside.value, beside.baseline, beside.holds), (0.0, Some(700.0), Some(true)));
        assert!(beside.note.contains("THE OTHER BUILD: 10 buyers") && beside.note.contains("700 SYNs"), "{beside:?}");
    }
}
