//! Plots as SVG text: drawn here, because three kinds of simple plots are less than a drawing library.
//!
//! Colours come from the page's style sheet by class, so that the plots follow it in the dark too.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
/// Room for names at the left and for figures at the right.
const LEFT: f64 = 170.0;
const RIGHT: f64 = 120.0;
const ROW: f64 = 26.0;
const CURVE_HEIGHT: f64 = 280.0;
const MARGIN: f64 = 46.0;

/// One horizontal bar.
pub(super) struct PlotRow {
    pub name: String,
    /// Length of each part, in the order they are stacked.
    pub parts: Vec<f64>,
    /// Where the mark stands, on the same scale.
    pub mark: Option<f64>,
    /// What stands behind it.
    pub label: String,
    /// CSS class of a bar with a single part.
    pub class: &'static str,
}

/// Text that may stand in SVG or HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

/// Horizontal bars on one scale that begins at 0; empty without rows.
pub(super) fn bars(rows: &[PlotRow]) -> String {
    let most = rows.iter().map(|row| row.parts.iter().sum::<f64>().max(row.mark.unwrap_or(0.0))).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let x = |value: f64| value / most * (WIDTH - LEFT - RIGHT);
    let mut height = 8.0;
    let mut out = String::new();
    for row in rows {
        let middle = height + ROW / 2.0;
        add(
            &mut out,
            format_args!(
                r#"<text class="name" x="{:.0}" y="{:.0}">{}</text>"#,
                LEFT - 8.0,
                middle + 4.0,
                escaped(&row.name)
            ),
        );
        let mut at = LEFT;
        for (no, part) in row.parts.iter().enumerate() {
            let class = if row.parts.len() == 1 { row.class.to_owned() } else { format!("part{no}") };
            add(
                &mut out,
                format_args!(
                    r#"<rect class="{class}" x="{at:.1}" y="{:.1}" width="{:.1}" height="16"/>"#,
                    middle - 8.0,
                    x(*part).max(0.5)
                ),
            );
            at += x(*part);
        }
        if let Some(mark) = row.mark {
            let at = LEFT + x(mark);
            add(
                &mut out,
                format_args!(
                    r#"<line class="mark" x1="{at:.1}" x2="{at:.1}" y1="{:.1}" y2="{:.1}"/>"#,
                    middle - 12.0,
                    middle + 12.0
                ),
            );
            // The words stand behind whatever reaches farthest.
        }
        let end = at.max(LEFT + x(row.mark.unwrap_or(0.0)));
        add(
            &mut out,
            format_args!(r#"<text x="{:.1}" y="{:.1}">{}</text>"#, end + 6.0, middle + 4.0, escaped(&row.label)),
        );
        height += ROW;
    }
    framed(&out, height + 8.0)
}

fn framed(inside: &str, height: f64) -> String {
    format!(r#"<svg viewBox="0 0 {WIDTH:.0} {height:.0}" role="img">{inside}</svg>"#)
}

/// A latency curve: its name, quantiles (0 to 1) and milliseconds.
pub(super) type Curve = (String, Vec<(f64, f64)>);

/// Where a quantile stands: the nines are evenly spread, 1 stands at the fifth.
fn nines(quantile: f64) -> f64 {
    if quantile >= 1.0 { 5.0 } else { (-(1.0 - quantile).log10()).clamp(0.0, 5.0) }
}

/// Latency by quantile, both logarithmic; empty without curves.
pub(super) fn curves(curves: &[Curve]) -> String {
    let all = || curves.iter().flat_map(|(_, points)| points.iter().map(|(_, ms)| ms.max(0.01)));
    let (low, high) = (all().fold(f64::INFINITY, f64::min).log10().floor(), all().fold(0.01, f64::max).log10().ceil());
    if !low.is_finite() {
        return String::new();
    }
    let high = high.max(low + 1.0);
    let x = |quantile: f64| MARGIN + nines(quantile) / 5.0 * (WIDTH - MARGIN - RIGHT);
    let y = |ms: f64| 12.0 + (high - ms.max(0.01).log10()) / (high - low) * (CURVE_HEIGHT - MARGIN - 12.0);
    let mut out = String::new();
    let floor = CURVE_HEIGHT - MARGIN;
    for (quantile, words) in
        [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"), (1.0, "max")]
    {
        let at = x(quantile);
        add(
            &mut out,
            format_args!(
                r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="12" y2="{floor:.1}"/><text class="tick" x="{at:.1}" y="{:.1}">{words}</text>"#,
                floor + 16.0
            ),
        );
    }
    let mut power = low;
    while power <= high {
        let at = y(10f64.powf(power));
        add(
            &mut out,
            format_args!(
                r#"<line class="grid" x1="{MARGIN}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}"/><text class="name" x="{:.1}" y="{:.1}">{} ms</text>"#,
                WIDTH - RIGHT,
                MARGIN - 4.0,
                at + 4.0,
                10f64.powf(power)
            ),
        );
        power += 1.0;
    }
    for (no, (name, points)) in curves.iter().enumerate() {
        let path: Vec<String> =
            points.iter().map(|(quantile, ms)| format!("{:.1},{:.1}", x(*quantile), y(*ms))).collect();
        add(&mut out, format_args!(r#"<polyline class="curve{no}" points="{}"/>"#, path.join(" ")));
        if let Some((quantile, ms)) = points.last() {
            add(
                &mut out,
                format_args!(r#"<text x="{:.1}" y="{:.1}">{}</text>"#, x(*quantile) + 6.0, y(*ms) + 4.0, escaped(name)),
            );
        }
    }
    framed(&out, CURVE_HEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_scale_and_show_their_mark() {
        let row = |name: &str, parts: &[f64], mark| PlotRow {
            name: name.to_owned(),
            parts: parts.to_vec(),
            mark,
            label: "x".to_owned(),
            class: "good",
        };
        let svg = bars(&[row("a<b", &[1.0], Some(2.0)), row("c", &[0.5, 0.5], None)]);
        // The longest reaches 470 of 760: the mark at 2, so a bar of 1 has half of it.
        assert!(svg.contains(r#"class="good" x="170.0" y="13.0" width="235.0""#), "{svg}");
        assert!(svg.contains(r#"x1="640.0""#) && svg.contains("a&lt;b") && svg.contains(r#"class="part1""#), "{svg}");
        assert_eq!((bars(&[]), bars(&[row("z", &[0.0], None)])), (String::new(), String::new()));
    }

    #[test]
    fn quantiles_are_spread_by_their_nines() {
        assert!((nines(0.9) - 1.0).abs() < 1e-9 && (nines(0.999) - 3.0).abs() < 1e-9);
        assert_eq!([nines(0.0), nines(1.0)], [0.0, 5.0]);
        let svg = curves(&[("accept".to_owned(), vec![(0.5, 0.3), (0.99, 4.0), (1.0, 30.0)])]);
        assert!(svg.matches("<polyline").count() == 1 && svg.contains("100 ms") && !svg.contains("NaN"), "{svg}");
        assert_eq!(curves(&[]), "");
    }
}
