//! Trace validation: was each line that a run wrote (`src/trace_points.rs`) a step that the transition table allows?
//!
//! Input: the folder of a run. Output: a [`TraceVerdict`]. The order between processes is partial: a step lies between the line that
//! began it and its own. What has no line may have happened where its beginning has one: crash, lost confirm, lost reply, a message
//! that the broker dropped.
//!
//! | rule | broken when |
//! |---|---|
//! | T0 | the folder cannot be read, or has no lines |
//! | T1 | lines of a process are missing, or its file was cut |
//! | T2 | a process did something out of order: deleted before the confirm, acknowledged before the outcome, answered without a question |
//! | T3 | the lines of a request are no path of the transition table, in any order that the partial order leaves |
//! | T4 | an acceptance number belongs to two requests, or a request has two |
//! | T5 | a grant or a transfer has two sizes, is given twice, or forgotten before it was given |
//! | T6 | something is ordered in an epoch after the units of a later one were fixed |
//! | T7 | more units were accepted in an epoch than its keys were given |
//! | T8 | the lines of a request are no run of the protocol's model ([`model`]); asked where no server may forget |

mod cells;
mod hands;
mod journey;
mod line;
mod model;
mod questions;
mod request;
mod sales;
#[cfg(test)]
mod tests;

pub use cells::Cells;
use hands::{Context, examine};
use journey::{Step, explain};
use line::{Line, Traced};
pub use model::Tries;
pub use request::Losses;
use request::Said;
use sales::Sales;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Lines around one that is not explained.
const AROUND: usize = 6;
/// Findings that a report prints.
const PRINTED_MAX: usize = 20;

/// One line, or one request, that nothing explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule, as in the table above.
    pub rule: &'static str,
    pub detail: String,
}

impl Finding {
    #[allow(clippy::needless_pass_by_value, reason = "the words are made for it")]
    fn of(rule: &'static str, traced: &Traced, line: &Line, wrong: String) -> Self {
        Self { rule, detail: format!("{wrong}\n  {}", shown(&traced.name, line)) }
    }
}

/// A line for people.
fn shown(process: &str, line: &Line) -> String {
    let Line { n, at, rid, shard, epoch, no, attempts, .. } = line;
    let words = [&line.sale, &line.thing, &line.verdict, &line.outcome, &line.reason, &line.by, &line.about];
    let words: Vec<&str> = words.into_iter().flatten().map(|word| &**word).collect();
    let numbers = [
        rid.map(|rid| format!("rid={rid}")),
        shard.map(|shard| format!("shard={shard}")),
        epoch.map(|epoch| format!("epoch={epoch}")),
        no.map(|no| format!("no={no}")),
        attempts.map(|attempts| format!("attempts={attempts}")),
    ];
    let numbers: Vec<String> = numbers.into_iter().flatten().collect();
    format!("{at} {process}#{n} {} {} {}", line.point(), numbers.join(" "), words.join(" "))
}

/// What the checker says of a run.
#[derive(Debug, Default)]
pub struct TraceVerdict {
    pub findings: Vec<Finding>,
    pub processes: usize,
    pub lines: usize,
    pub requests: usize,
    /// Requests that the model was asked about, and explains.
    pub modelled: usize,
    pub cells: Cells,
}

impl TraceVerdict {
    pub fn is_green(&self) -> bool {
        self.findings.is_empty()
    }

    /// The rules that were broken.
    pub fn rules(&self) -> Vec<&'static str> {
        let mut rules: Vec<&str> = self.findings.iter().map(|found| found.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// In one line.
    pub fn summary(&self) -> String {
        let Self { processes, lines, requests, modelled, .. } = self;
        let (seen, all) = (self.cells.seen(), cells::all().len());
        let unexplained = self.findings.len();
        format!(
            "{lines} trace lines of {processes} processes and {requests} requests: {unexplained} unexplained; {modelled} requests are runs of the model; {seen} of {all} cells"
        )
    }

    /// What is wrong, for people.
    pub fn complaints(&self) -> Vec<String> {
        let printed = self.findings.iter().take(PRINTED_MAX).map(|found| format!("{}: {}", found.rule, found.detail));
        let more = self.findings.len().saturating_sub(PRINTED_MAX);
        printed.chain((more > 0).then(|| format!("and {more} more of the trace"))).collect()
    }
}

/// Checks the lines of a folder. `losses`: what servers may forget.
pub fn check(dir: &Path, losses: Losses) -> TraceVerdict {
    match line::read(dir) {
        Ok(processes) => judge(processes, losses, Tries::read(dir)),
        Err(wrong) => TraceVerdict { findings: vec![Finding { rule: "T0", detail: wrong }], ..TraceVerdict::default() },
    }
}

fn judge(processes: Vec<Traced>, losses: Losses, tries: Option<Tries>) -> TraceVerdict {
    let mut findings = Vec::new();
    let lines = processes.iter().map(|traced| traced.lines.len()).sum();
    if lines == 0 {
        findings.push(Finding { rule: "T0", detail: "there are no lines".to_owned() });
    }
    let mut sales = Sales::default();
    let mut examined = Vec::with_capacity(processes.len());
    let mut of_grants = HashMap::new();
    for traced in processes {
        let found = examine(&traced, &mut findings);
        sales.learn(&traced, losses, &mut findings);
        of_grants.extend(found.orders_of_grant);
        examined.push((traced, found.contexts));
    }
    sales.judge(&examined, losses, &mut findings);
    let requests = steps(&examined, &of_grants, losses);
    let mut cells = Cells::default();
    for (rid, steps) in &requests {
        match explain(steps) {
            Ok(used) => cells.add(&used),
            Err(no_path) => findings.push(reported("T3", *rid, steps, &no_path)),
        }
    }
    let asked = tries.filter(|_| losses == Losses::default());
    let (modelled, unexplained) = asked.map(|tries| model::ask(&requests, tries)).unwrap_or_default();
    findings.extend(unexplained.iter().map(|(rid, no_path)| reported("T8", *rid, &requests[rid], no_path)));
    TraceVerdict { findings, processes: examined.len(), lines, requests: requests.len(), modelled, cells }
}

/// The lines of each request, in the order in which they were written.
fn steps<'a>(
    examined: &'a [(Traced, Vec<Context>)],
    of_grants: &HashMap<line::Word, Vec<u64>>,
    losses: Losses,
) -> BTreeMap<u64, Vec<Step<'a>>> {
    let mut of_requests: BTreeMap<u64, Vec<Step<'_>>> = BTreeMap::new();
    for (traced, contexts) in examined {
        for (line, context) in traced.lines.iter().zip(contexts) {
            let expired = line.about.as_ref().filter(|_| line.point() == "order_changed" && line.rid.is_none());
            let of_grant = expired.and_then(|grant| of_grants.get(grant));
            let said = Said { answered: context.answered, losses };
            for rid in line.rid.or(context.rid).iter().chain(of_grant.into_iter().flatten()) {
                let step = Step { line, process: &traced.name, from: context.from, said };
                of_requests.entry(*rid).or_default().push(step);
            }
        }
    }
    for steps in of_requests.values_mut() {
        steps.sort_by_key(|step| step.line.at);
    }
    of_requests
}

/// What is wrong with a request, and the lines around.
fn reported(rule: &'static str, rid: u64, steps: &[Step<'_>], no_path: &journey::NoPath) -> Finding {
    let (from, to) = (no_path.at.saturating_sub(AROUND), (no_path.at + AROUND).min(steps.len()));
    let around: Vec<String> = (from..to)
        .map(|at| {
            let mark = if at == no_path.at { "→" } else { " " };
            format!("  {mark} {}", shown(steps[at].process, steps[at].line))
        })
        .collect();
    let (explained, all, why) = (no_path.explained, steps.len(), &no_path.why);
    Finding { rule, detail: format!("request {rid}, {explained} of {all} lines: {why}\n{}", around.join("\n")) }
}
