//! What is measured, and how much of it.

use super::BenchArgs;
use super::report::LeftOut;
use crate::loadgen::plan::BUYERS_MAX;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::Duration;

/// Buyers for each second of a measurement.
const BUYERS_PER_S: f64 = 200_000.0;
/// A relay that is measured for less says more about its first and its last call.
const RELAYING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Scenario {
    /// Purchases accepted a second, one a buyer, and what one costs, against a plain handler, a bare script and a SET
    Accept,
    /// The same with RS256 access tokens, each buyer asking three times, against HS256
    AcceptRs256,
    /// Refusals a second on a sold-out sale, against a plain Actix handler with the same JWT check
    SoldOut,
    /// Repeated requests of winners a second
    Replay,
    /// Status answers a second
    Poll,
    /// Purchases beside many long polls (--waiters) while nothing lands, without and with a replica to wait for
    Waiters,
    /// Time to an answer at half of the peak rate, at 10,000/s beside a plain handler with a bare script, and to the order at a low rate
    Latency,
    /// Confirmed messages a second out of a full outbox, against a bare confirmed publisher
    Relay,
    /// Orders a second out of a full queue, against one transaction an order and against bare multi-row INSERTs
    Landing,
    /// Redis' bytes a request in flight and a settled one; resident memory of the roles under full load
    Memory,
    /// Orders landed a second while buyers keep buying
    EndToEnd,
    /// Whole sales under the three policies, checked for exactness
    Sale,
    /// Many buyers (--users) for 500 units, each until an answer
    Crowd,
    /// Buyers (--rush) who all open a connection within one second: what they get, and whether a SYN is repeated
    Rush,
    /// Time until a purchase works again after kill -9 of each role and each server, and after a host vanished
    Recovery,
    /// What an order costs as everything grows by tens (only when asked for)
    Growth,
    /// What a round of P5 costs beside a sale of ten thousand and of a million (--orders) orders (only when asked for)
    GrowthReconcile,
    /// What a thousand sales cost the servers without a purchase, with one and with four api processes (only when asked for)
    GrowthSalesIdle,
    /// What a purchase in a drop costs, against one in a plain sale, and that against another build (only when asked for)
    CostDrop,
    /// How late entries of a line are answered at 2,000 a second, and what an entry and an offer cost (only when asked for)
    Line,
    /// What an order costs that expires unpaid, against landing it, and what buyers notice (only when asked for)
    Expiry,
    /// What the indexes of orders cost an order that lands (only when asked for)
    IndexCost,
    /// The field's ways to take stock, side by side (only when asked for)
    Strategies,
}

impl Scenario {
    pub const ALL: [Self; 23] = [
        Self::Accept,
        Self::AcceptRs256,
        Self::SoldOut,
        Self::Replay,
        Self::Poll,
        Self::Waiters,
        Self::Latency,
        Self::Relay,
        Self::Landing,
        Self::Memory,
        Self::EndToEnd,
        Self::Sale,
        Self::Crowd,
        Self::Rush,
        Self::Recovery,
        Self::Growth,
        Self::GrowthReconcile,
        Self::GrowthSalesIdle,
        Self::CostDrop,
        Self::Line,
        Self::Expiry,
        Self::IndexCost,
        Self::Strategies,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::AcceptRs256 => "accept_rs256",
            Self::SoldOut => "sold_out",
            Self::Replay => "replay",
            Self::Poll => "poll",
            Self::Waiters => "waiters",
            Self::Latency => "latency",
            Self::Relay => "relay",
            Self::Landing => "landing",
            Self::Memory => "memory",
            Self::EndToEnd => "end_to_end",
            Self::Sale => "sale",
            Self::Crowd => "crowd",
            Self::Rush => "rush",
            Self::Recovery => "recovery",
            Self::Growth => "growth",
            Self::GrowthReconcile => "growth_reconcile",
            Self::GrowthSalesIdle => "growth_sales_idle",
            Self::CostDrop => "cost_drop",
            Self::Line => "line",
            Self::Expiry => "expiry",
            Self::IndexCost => "index_cost",
            Self::Strategies => "strategies",
        }
    }

    /// Why it is not measured; `asked`: `--only` names it.
    const fn obstacle(self, quick: bool, asked: bool, here: bool) -> Option<&'static str> {
        match self {
            Self::Relay
            | Self::Landing
            | Self::Memory
            | Self::AcceptRs256
            | Self::Waiters
            | Self::Rush
            | Self::Recovery
            | Self::Growth
            | Self::GrowthReconcile
            | Self::GrowthSalesIdle
            | Self::CostDrop
            | Self::Line
            | Self::Expiry
            | Self::IndexCost
            | Self::Strategies
                if here =>
            {
                Some("needs servers and roles of its own")
            }
            Self::AcceptRs256 | Self::Waiters | Self::Crowd | Self::Recovery if quick && !asked => {
                Some("takes too long for --quick")
            }
            Self::Growth
            | Self::GrowthReconcile
            | Self::GrowthSalesIdle
            | Self::CostDrop
            | Self::Line
            | Self::Expiry
            | Self::IndexCost
            | Self::Strategies
                if !asked =>
            {
                Some("only when asked for")
            }
            Self::Accept
            | Self::AcceptRs256
            | Self::SoldOut
            | Self::Replay
            | Self::Poll
            | Self::Waiters
            | Self::Latency
            | Self::Relay
            | Self::Landing
            | Self::Memory
            | Self::EndToEnd
            | Self::Sale
            | Self::Crowd
            | Self::Rush
            | Self::Recovery
            | Self::Growth
            | Self::GrowthReconcile
            | Self::GrowthSalesIdle
            | Self::CostDrop
            | Self::Line
            | Self::Expiry
            | Self::IndexCost
            | Self::Strategies => None,
        }
    }
}

/// The scenarios to measure, and those left out with the reason. With `--only`, what was not named is not mentioned.
pub(super) fn choose(args: &BenchArgs) -> (Vec<Scenario>, Vec<LeftOut>) {
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for scenario in Scenario::ALL {
        let asked = args.only.contains(&scenario);
        if !args.only.is_empty() && !asked {
            continue;
        }
        match scenario.obstacle(args.quick, asked, args.here) {
            Some(why) => left_out.push(LeftOut { name: scenario.name(), why }),
            None => chosen.push(scenario),
        }
    }
    (chosen, left_out)
}

/// How much is done.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    pub connections: u32,
    /// Each measurement takes this long.
    pub lasting: Duration,
    pub sale_buyers: u64,
    /// Buyers of the scenario `crowd`.
    pub users: u64,
    /// Buyers of the scenario `rush`.
    pub rush: u64,
    /// Long polls of the scenario `waiters`.
    pub waiters: u64,
    /// Entries of `memory`, `expiry` and `index_cost`, and of each round of `relay`, all of which `landing` has; the largest size of
    /// `growth`.
    pub entries: u64,
    /// Rounds of `relay` go on until it has worked for this long; so does its baseline. Zero: one round.
    pub relaying: Duration,
    /// Orders of the large sale of `growth_reconcile`.
    pub orders: u64,
    pub baseline_requests: u64,
    /// Another build of `seckill` whose roles are measured beside these.
    pub against: Option<PathBuf>,
    /// Longest wait until everything has landed.
    pub patience: Duration,
    /// How often everything is measured.
    pub runs: u32,
}

impl Sizes {
    /// Connections of `accept` and of the open loop at half of its rate: enough that a core does not wait because all buyers of a
    /// closed loop are in one group, and that a purchase that is due finds an idle one.
    pub const fn crowd_connections(&self) -> u32 {
        self.connections.saturating_mul(4)
    }

    /// Buyers who are ready for a measurement in which each buys once: more than two cores can answer in its time. A crowd that
    /// is used up earlier ends earlier, and its own time counts.
    pub fn buyers(&self) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "a million")]
        let buyers = (self.lasting.as_secs_f64() * BUYERS_PER_S).clamp(1.0, BUYERS_MAX as f64);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1 … 1,000,000")]
        let buyers = buyers as u64;
        buyers
    }

    pub fn of(args: &BenchArgs) -> Self {
        let rush = args.rush.unwrap_or(if args.quick { 2_000 } else { 20_000 });
        let (lasting_s, baseline_requests, patience_s, entries) =
            if args.quick { (1.0, 50_000, 60, 20_000) } else { (5.0, 300_000, 300, 100_000) };
        Self {
            connections: args.connections,
            lasting: Duration::from_secs_f64(args.seconds.unwrap_or(lasting_s)),
            sale_buyers: args.buyers,
            users: args.users,
            rush,
            waiters: args.waiters,
            entries: args.entries.unwrap_or(entries),
            relaying: if args.quick || args.entries.is_some() { Duration::ZERO } else { RELAYING },
            orders: args.orders,
            baseline_requests,
            against: args.against.clone(),
            patience: Duration::from_secs(patience_s),
            runs: args.runs,
        }
    }
}

/// Says on standard error what is going on; silent when that is not a terminal.
#[derive(Clone)]
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    pub fn start(name: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_prefix(name);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    pub fn say(&self, words: &str) {
        self.0.set_message(words.to_owned());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        // Clones share the bar; the first that ends clears it.
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct SizesLine {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn chosen(words: &str) -> (Vec<&'static str>, Vec<&'static str>) {
        let line = SizesLine::try_parse_from(std::iter::once("bench").chain(words.split_whitespace())).unwrap();
        let (chosen, left_out) = choose(&line.args);
        (chosen.into_iter().map(Scenario::name).collect(), left_out.into_iter().map(|left| left.name).collect())
    }

    #[test]
    fn what_is_left_out_is_named() {
        let (all, left_out) = chosen("");
        assert_eq!(
            (all.len(), left_out),
            (
                15,
                vec![
                    "growth",
                    "growth_reconcile",
                    "growth_sales_idle",
                    "cost_drop",
                    "line",
                    "expiry",
                    "index_cost",
                    "strategies"
                ]
            )
        );
        let long = [
            "accept_rs256",
            "waiters",
            "crowd",
            "recovery",
            "growth",
            "growth_reconcile",
            "growth_sales_idle",
            "cost_drop",
            "line",
            "expiry",
            "index_cost",
            "strategies",
        ];
        assert_eq!(chosen("--quick").1, long);
        assert_eq!(chosen("--quick --only recovery"), (vec!["recovery"], vec![]));
        assert_eq!(chosen("--only strategies").0, ["strategies"]);
        assert_eq!(chosen("--here --only relay --only poll"), (vec!["poll"], vec!["relay"]));
    }

    #[test]
    fn a_crowd_has_buyers_for_its_time_and_never_more_than_a_run_takes() {
        let sizes = Sizes::of(&SizesLine::parse_from(["bench"]).args);
        let of = |lasting| Sizes { lasting, ..sizes.clone() }.buyers();
        assert_eq!(
            (sizes.buyers(), of(Duration::from_secs(1)), of(Duration::from_secs(60))),
            (BUYERS_MAX, 200_000, BUYERS_MAX)
        );
        assert_eq!(of(Duration::ZERO), 1);
    }

    #[test]
    fn a_relay_is_measured_for_long_enough_unless_the_caller_says_how_much() {
        let relaying = |words: &[&str]| Sizes::of(&SizesLine::parse_from([&["bench"], words].concat()).args).relaying;
        assert_eq!(
            [relaying(&[]), relaying(&["--quick"]), relaying(&["--entries", "700"])],
            [RELAYING, Duration::ZERO, Duration::ZERO]
        );
    }

    #[test]
    fn each_scenario_has_one_name_on_the_command_line_and_in_the_report() {
        use clap::ValueEnum;
        for scenario in Scenario::ALL {
            assert_eq!(scenario.to_possible_value().unwrap().get_name(), scenario.name());
        }
        assert_eq!(Scenario::ALL.len(), Scenario::value_variants().len());
    }
}
