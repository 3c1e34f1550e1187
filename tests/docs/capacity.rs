//! The table of bars, what an order costs each process, and how much a large crowd would need: `docs/performance.md` has all of
//! it from one raw file, so that arithmetic and figures cannot part.

use crate::bars::{bar, number, raw, table};
use crate::markdown::{Page, root};
use serde_json::Value;
use std::fs;

const PAGE: &str = "docs/performance.md";
const BARS: [&str; 2] = ["<!-- bars: written by UPDATE_DOCS=1 cargo test --test docs -->\n", "<!-- end of bars -->\n"];
const COSTS: [&str; 2] =
    ["<!-- costs: written by UPDATE_DOCS=1 cargo test --test docs -->\n", "<!-- end of costs -->\n"];
const CAPACITY: [&str; 2] =
    ["<!-- capacity: written by UPDATE_DOCS=1 cargo test --test docs -->\n", "<!-- end of capacity -->\n"];
/// Every process is planned at this part of its cores.
const PLANNED: f64 = 0.6;

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// µs of processor time for an order, as the page shows them: the arithmetic begins with the shown figures.
struct Costs {
    api: f64,
    reserve_redis: f64,
    relay: f64,
    relay_redis: f64,
    relay_rabbit: f64,
    consumer: f64,
    landing_rabbit: f64,
    landing_redis: f64,
    mysql: f64,
    refused: f64,
    under_load: [f64; 2],
}

impl Costs {
    fn of(json: &Value) -> Self {
        let value = |name: &str| tenth(bar(json, name)["value"].as_f64().unwrap());
        let each = |name: &str, process: &str| {
            let more = &bar(json, name)["more"];
            let seconds = more["cpu"]["seconds"][process].as_f64().unwrap();
            let answers = more["answers"].as_array().map(|all| all.iter().filter_map(|of| of["count"].as_f64()).sum());
            let count = answers.or(more["entries"].as_f64()).or(more["orders"].as_f64()).expect("how many");
            tenth(seconds * 1e6 / count)
        };
        let under_load = bar(json, "cost_end_to_end");
        Self {
            api: value("cost_api"),
            reserve_redis: value("cost_redis"),
            relay: each("relay", "relay"),
            relay_redis: each("relay", "redis"),
            relay_rabbit: each("relay", "rabbitmq"),
            consumer: each("landing", "consumer"),
            landing_rabbit: each("landing", "rabbitmq"),
            landing_redis: each("landing", "redis"),
            mysql: each("landing", "mysql"),
            refused: each("sold_out", "api"),
            under_load: [&under_load["value"], &under_load["baseline"]].map(|of| of.as_f64().unwrap()),
        }
    }

    fn redis(&self) -> f64 {
        tenth(self.reserve_redis + self.relay_redis + self.landing_redis)
    }

    fn rabbit(&self) -> f64 {
        tenth(self.relay_rabbit + self.landing_rabbit)
    }

    fn table(&self) -> String {
        let Self { api, reserve_redis, relay, relay_redis, relay_rabbit, consumer, .. } = self;
        let Self { landing_rabbit, landing_redis, mysql, refused, under_load: [ours, other], .. } = self;
        let (redis, rabbit) = (self.redis(), self.rabbit());
        let sum = api + redis + relay + rabbit + consumer + mysql;
        format!(
            "| step | process | µs for an order | what for |\n|---|---|---|---|\n\
             | reserve | api | {api:.1} | HTTP, access token, grouping, the answer |\n\
             | | Redis | {reserve_redis:.1} | the script in groups: ledger, buyer, stock, outbox; AOF |\n\
             | relay | relay | {relay:.1} | read, publish with confirm, delete: an entry has up to 64 orders |\n\
             | | Redis | {relay_redis:.1} | read as a group, delete |\n\
             | | RabbitMQ | {relay_rabbit:.1} | persistent message in, confirm |\n\
             | landing | consumer | {consumer:.1} | decode, group, transaction, ack, mark |\n\
             | | RabbitMQ | {landing_rabbit:.1} | deliver, ack, events |\n\
             | | Redis | {landing_redis:.1} | the marks in the ledger |\n\
             | | MariaDB | {mysql:.1} | multi-row inserts, one update of the sale for each group, commit |\n\
             | **sum** | api {api:.1} · Redis {redis:.1} · relay {relay:.1} · RabbitMQ {rabbit:.1} · consumer {consumer:.1} \
             · MariaDB {mysql:.1} | **{sum:.1}** | |\n\
             | refused, sold out | api | {refused:.1} | HTTP, access token, the sold-out mark in memory; no server |\n\n\
             While a crowd keeps buying and groups are smaller, an order costs {ours:.0} µs (`cost_end_to_end`); with the\n\
             build that it is compared with {other:.0} in the same run.\n"
        )
    }

    fn capacity(&self) -> String {
        [self.crowd(), self.worst(), self.saturates(), self.a_minute()].join("\n")
    }

    fn crowd(&self) -> String {
        let second = |us: f64| format!("{:.2} s", us * 10_000.0 / 1e6);
        format!(
            "**A real crowd: 1,000,000 requests/s for 10,000 units.** Everybody but the winners gets \"sold out\" from the api's\n\
             memory; refusals cost neither Redis nor broker nor database anything.\n\n\
             - api: 1,000,000 × {refused:.1} µs = {refused:.1} cores; planned **{cores} cores**.\n\
             - The 10,000 winners, processor time in all: Redis {redis}, relay {relay}, RabbitMQ {rabbit}, consumer {consumer}, \
             MariaDB\n  {mysql}. **One of each** is enough.\n",
            refused = self.refused,
            cores = planned(self.refused),
            redis = second(self.redis()),
            relay = second(self.relay),
            rabbit = second(self.rabbit()),
            consumer = second(self.consumer),
            mysql = second(self.mysql),
        )
    }

    fn worst(&self) -> String {
        let row = |part: &str, costs: &[f64], what: &str| {
            let sum = tenth(costs.iter().sum());
            let parts = costs.iter().map(|cost| format!("{cost:.1}")).collect::<Vec<_>>().join(" + ");
            let parts = if costs.len() > 1 { format!("({parts})") } else { parts };
            format!("| {part} | 1,000,000 × {parts} µs | {sum:.1} | {} {what} |\n", planned(sum))
        };
        let rows = [
            row("api", &[self.api], "cores"),
            row(
                "Redis",
                &[self.reserve_redis, self.relay_redis, self.landing_redis],
                "primaries, one core each: `redis.shards` at least as many, at most 64",
            ),
            row("relay", &[self.relay], "processes"),
            row(
                "RabbitMQ",
                &[self.relay_rabbit, self.landing_rabbit],
                "cores; quorum queues of three take about three times that",
            ),
            row("consumer", &[self.consumer], "processes"),
            row("MariaDB", &[self.mysql], "cores, but see below"),
        ];
        format!(
            "**The worst case: 1,000,000 accepted orders/s, sustained.**\n\n\
             | part | arithmetic | busy cores | planned |\n|---|---|---|---|\n{}",
            rows.concat()
        )
    }

    fn saturates(&self) -> String {
        let rate = |us: f64| number((1e6 / us / 1_000.0).round() * 1_000.0);
        format!(
            "Orders a second that one full core bears: Redis {alone} while nothing is relayed, {redis} with everything; \
             RabbitMQ\n{rabbit}; MariaDB {mysql}. Redis and MariaDB saturate first.\n",
            alone = rate(self.reserve_redis),
            redis = rate(self.redis()),
            rabbit = rate(self.rabbit()),
            mysql = rate(self.mysql),
        )
    }

    fn a_minute(&self) -> String {
        const ORDERS_PER_S: f64 = 17_000.0;
        let cores = |us: f64| ORDERS_PER_S * us / 1e6;
        format!(
            "Requests are a million, units are not. A sale of 1,000,000 units that lands within a minute needs 17,000 orders/s:\n\
             api {winners:.1} cores for the winners and {others:.1} for the refusals, one Redis at {redis:.0} %, RabbitMQ \
             {rabbit:.2} cores,\nconsumer {consumer:.2}, MariaDB {mysql:.1}.\n",
            winners = cores(self.api),
            others = (1e6 - ORDERS_PER_S) * self.refused / 1e6,
            redis = cores(self.redis()) * 100.0,
            rabbit = cores(self.rabbit()),
            consumer = cores(self.consumer),
            mysql = cores(self.mysql),
        )
    }
}

/// Cores or processes for this number of busy ones: the next whole number.
fn planned(busy: f64) -> String {
    number((busy / PLANNED - 1e-9).ceil())
}

/// The page with `printed` between the two marks.
fn with(text: &str, [begin, end]: [&str; 2], printed: &str) -> String {
    let (before, rest) = text.split_once(begin).expect("where it begins");
    let (_, after) = rest.split_once(end).expect("where it ends");
    format!("{before}{begin}\n{printed}\n{end}{after}")
}

#[test]
fn bars_costs_and_capacity_are_those_of_the_raw_data() {
    let json = raw();
    let costs = Costs::of(&json);
    let text = Page::read(PAGE).text;
    let blocks = [(BARS, table(&json)), (COSTS, costs.table()), (CAPACITY, costs.capacity())];
    let printed = blocks.iter().fold(text, |text, (marks, block)| with(&text, *marks, block));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // In one piece: other tests read the page meanwhile.
        let whole = root().join(format!("{PAGE}.new"));
        fs::write(&whole, &printed).unwrap();
        fs::rename(whole, root().join(PAGE)).unwrap();
    }
    let written = fs::read_to_string(root().join(PAGE)).unwrap();
    assert!(written == printed, "UPDATE_DOCS=1 cargo test --test docs writes the figures of {PAGE}");
}
