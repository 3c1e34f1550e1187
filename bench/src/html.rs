//! The whole result as one page that needs nothing else: no script, no font, no picture from anywhere.

use super::bar::{Bar, Rule, short};
use super::cpu::LOAD;
use super::plot::{Curve, PlotRow, bars, curves, escaped};
use super::report::{BenchReport, limit, machine_line, value};
use serde_json::Value;

const STYLE: &str = "\
:root{--ink:#1a1d21;--soft:#667080;--paper:#fff;--line:#d9dee5;--good:#2e7d4f;--bad:#c0392b;--plain:#4a6fa5}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#93a0b0;--paper:#14171b;--line:#333b45;--good:#57b47f;--bad:#e57368;--plain:#7f9fd0}}\
body{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid var(--line)}\
td.n{white-space:nowrap;font-variant-numeric:tabular-nums}p.soft,td.note{color:var(--soft);font-size:13px}\
.yes{color:var(--good);font-weight:600}.no{color:var(--bad);font-weight:600}\
svg{width:100%;height:auto;font-size:12px}svg text{fill:var(--ink)}svg text.name{text-anchor:end}svg text.tick{text-anchor:middle}\
svg .good{fill:var(--good)}svg .bad{fill:var(--bad)}svg .plain{fill:var(--plain)}svg .mark{stroke:var(--ink);stroke-width:2}\
svg .grid{stroke:var(--line)}svg polyline{fill:none;stroke-width:2}.curve0{stroke:#4a6fa5}.curve1{stroke:#c9722b}.curve2{stroke:#2e7d4f}\
.part0{fill:#4a6fa5}.part1{fill:#c9722b}.part2{fill:#2e7d4f}.part3{fill:#8e5ea2}.part4{fill:#b59a2c}.part5{fill:#3a9aa8}.part6{fill:#a34a5a}.part7{fill:#7a7f87}\
.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}";
/// In the order they are stacked.
const PROCESSES: [&str; 8] = [LOAD, "api", "redis", "relay", "rabbitmq", "consumer", "mysql", "reconcile"];

pub(super) fn page(report: &BenchReport) -> String {
    let mut out =
        String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>seckill bench</title><style>");
    out.push_str(STYLE);
    out.push_str("</style><h1>seckill bench</h1>");
    out.push_str(&format!("<p>{}</p>", escaped(&report.verdict())));
    if !report.durable {
        out.push_str("<p class=\"no\">Not durable: a server's settings would let accepted requests vanish.</p>");
    }
    out.push_str(&format!("<p class=\"soft\">{}</p>", escaped(&machine_line(&report.machine))));
    section(
        &mut out,
        "Ratios to the baselines, and their bars",
        &bars(&ratios(&report.bars)),
        "The mark is the bar: at least so much.",
    );
    section(
        &mut out,
        "Limits",
        &bars(&limits(&report.bars)),
        "Part of what is allowed; the mark is all of it: at most so much.",
    );
    section(
        &mut out,
        "Latency by quantile",
        &curves(&latencies(&report.bars)),
        "From the time a purchase was due (latency), or was sent (accept, crowd).",
    );
    section(&mut out, "Processor time", &bars(&processors(&report.bars)), &legend());
    out.push_str("<h2>Everything</h2>");
    out.push_str(&table(&report.bars));
    let left_out: Vec<String> = report.left_out.iter().map(|left| format!("{} ({})", left.name, left.why)).collect();
    if !left_out.is_empty() {
        out.push_str(&format!("<p class=\"soft\">Left out: {}</p>", escaped(&left_out.join(", "))));
    }
    out.push_str("</html>\n");
    out
}

fn section(out: &mut String, title: &str, plot: &str, words: &str) {
    if !plot.is_empty() {
        out.push_str(&format!("<h2>{title}</h2>{plot}<p class=\"soft\">{words}</p>"));
    }
}

fn class(bar: &Bar) -> &'static str {
    match bar.holds {
        Some(true) => "good",
        Some(false) => "bad",
        None => "plain",
    }
}

fn ratios(all: &[Bar]) -> Vec<PlotRow> {
    let row = |bar: &Bar| {
        let ratio = bar.ratio?;
        let label = format!("{}× of {} {}", short(ratio), short(bar.baseline?), bar.unit);
        Some(PlotRow { name: bar.name.to_owned(), parts: vec![ratio], mark: bar.bar, label, class: class(bar) })
    };
    all.iter().filter_map(row).collect()
}

fn limits(all: &[Bar]) -> Vec<PlotRow> {
    let row = |bar: &Bar| {
        let most = bar.bar.filter(|most| bar.rule == Rule::AtMost && *most > 0.0)?;
        let part = (bar.value / most).max(0.0);
        let label = format!("{} of {} {}", short(bar.value), short(most), bar.unit);
        Some(PlotRow { name: bar.name.to_owned(), parts: vec![part], mark: Some(1.0), label, class: class(bar) })
    };
    all.iter().filter_map(row).collect()
}

fn latencies(all: &[Bar]) -> Vec<Curve> {
    let read = |bar: &Bar| serde_json::from_value::<Vec<(f64, f64)>>(bar.more.get("curve")?.clone()).ok();
    all.iter().filter_map(|bar| Some((bar.name.to_owned(), read(bar)?))).collect()
}

fn processors(all: &[Bar]) -> Vec<PlotRow> {
    let row = |bar: &Bar| {
        let cpu = bar.more.get("cpu")?;
        let elapsed_s = cpu.get("elapsed_s").and_then(Value::as_f64).filter(|elapsed| *elapsed > 0.0)?;
        let of = |name: &&str| cpu.get("seconds").and_then(|all| all.get(*name)).and_then(Value::as_f64).unwrap_or(0.0);
        let parts: Vec<f64> = PROCESSES.iter().map(|name| of(name) / elapsed_s).collect();
        let label = format!("{} cores", short(parts.iter().sum()));
        Some(PlotRow { name: bar.name.to_owned(), parts, mark: None, label, class: "plain" })
    };
    all.iter().filter_map(row).collect()
}

fn legend() -> String {
    let key = |(no, name): (usize, &&str)| {
        format!(
            "<svg class=\"key\" viewBox=\"0 0 1 1\"><rect class=\"part{no}\" width=\"1\" height=\"1\"/></svg>{name}"
        )
    };
    PROCESSES.iter().enumerate().map(key).collect()
}

fn table(all: &[Bar]) -> String {
    let mut out = String::from("<table><tr><th>name<th>value<th>baseline<th>ratio<th>bar<th>holds<th>note</tr>");
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), short);
    for bar in all {
        let holds = match bar.holds {
            Some(true) => "<td class=\"yes\">yes",
            Some(false) => "<td class=\"no\">no",
            None => "<td>–",
        };
        out.push_str(&format!(
            "<tr><td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}{holds}<td class=\"note\">{}</tr>",
            bar.name,
            escaped(&value(bar)),
            number(bar.baseline),
            number(bar.ratio),
            escaped(&limit(bar)),
            escaped(&bar.note),
        ));
    }
    out.push_str("</table>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LeftOut;
    use serde_json::json;

    #[test]
    fn the_page_shows_everything_and_fetches_nothing() {
        let cpu = json!({ "seconds": { LOAD: 1.0, "api": 2.0 }, "elapsed_s": 2.0 });
        let report = BenchReport {
            machine: json!({ "cpu": "<fast>" }),
            durable: true,
            bars: vec![
                Bar::rate("accept", 130.0)
                    .against(Some(100.0), 1.3)
                    .more(json!({ "cpu": cpu, "curve": [(0.5, 1.0), (1.0, 9.0)] })),
                Bar::of("latency", 7.0, "ms").at_most(5.0).note("a & b".to_owned()),
            ],
            left_out: vec![LeftOut { name: "recovery", why: "takes too long" }],
            audits: vec![],
        };
        let page = page(&report);
        for part in [
            "&lt;fast&gt;",
            "1.30× of 100 1/s",
            "7.00 of 5.00 ms",
            "<polyline",
            "1.50 cores",
            "a &amp; b",
            "recovery (takes too long)",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        assert!(!page.contains("http") && !page.contains("<script"), "{page}");
        assert_eq!(page.matches("<svg viewBox").count(), 4);
    }
}
