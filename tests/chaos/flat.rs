//! Whether a figure of a long run stays flat after the run's first quarter: memory, open files, rows of a table.
//!
//! Input: samples of one figure, each with the life of the process that it is of. Output: what was compared, and what is wrong. Pure.
//!
//! Two rules, both with the bound [`GROWTH_MAX`] and a floor, below which growth is no news:
//! - the median of the last quarter is not above the median of the second quarter. Medians, so that a fault's peak is none of the figure.
//! - within the lives of a process nothing adds up: what it grows by, from a minute after its start on, times half the run. A process that is
//!   killed again and again would hide a leak from the first rule.

/// The last quarter may have this much more than the second.
pub const GROWTH_MAX: f64 = 0.10;
/// A life counts from then on: caches and pools are filled by use.
const WARM_S: f64 = 60.0;
/// Lives are judged when they make up this share of the run after its first quarter.
const LIVES_MIN: f64 = 0.5;
/// Samples that a quarter needs.
const SAMPLES_MIN: usize = 8;

/// One sample.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Since the beginning, seconds.
    pub at_s: f64,
    /// Which life of its process; always 0 for what has no lives.
    pub life: u32,
    /// The figure.
    pub value: f64,
}

/// The samples of a figure, in order.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Growth below this is no news.
    pub floor: f64,
    /// Oldest first.
    pub points: Vec<Point>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Flatness {
    /// Median of the second quarter.
    pub second: f64,
    /// Median of the last quarter.
    pub last: f64,
    /// Growth within lives, for half a run; `None` where lives were too short.
    pub within_lives: Option<f64>,
    /// What is wrong.
    pub wrong: Option<String>,
}

/// Judges a figure of a run of `length_s`.
pub fn judge(series: &Series, length_s: f64) -> Flatness {
    let quarter = |from: f64| {
        let within = |point: &&Point| point.at_s >= from * length_s && point.at_s < (from + 0.25) * length_s;
        series.points.iter().filter(within).map(|point| point.value).collect::<Vec<f64>>()
    };
    let (second, last) = (quarter(0.25), quarter(0.75));
    let few = second.len().min(last.len());
    let (second, last) = (median(second), median(last));
    let allowed = (second * GROWTH_MAX).max(series.floor);
    let within_lives = within_lives(&series.points, length_s);
    let wrong = if few < SAMPLES_MIN {
        Some(format!("a quarter has {few} samples, {SAMPLES_MIN} are needed"))
    } else if last > second + allowed {
        Some(format!("{last:.1} in the last quarter, {second:.1} in the second; {allowed:.1} more are allowed"))
    } else {
        within_lives
            .filter(|grown| *grown > allowed)
            .map(|grown| format!("grows by {grown:.1} in half a run while a process lives; {allowed:.1} are allowed"))
    };
    Flatness { second, last, within_lives, wrong }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Growth of all lives after the first quarter, as a rate, for half a run. Each life by the medians of its two halves: a single
/// sample may be a peak.
fn within_lives(points: &[Point], length_s: f64) -> Option<f64> {
    let (mut grown, mut lived_s) = (0.0, 0.0);
    for life in points.chunk_by(|one, next| one.life == next.life) {
        let born_s = life[0].at_s;
        let from_s = (born_s + WARM_S).max(0.25 * length_s);
        let warm: Vec<&Point> = life.iter().filter(|point| point.at_s >= from_s).collect();
        if warm.len() < SAMPLES_MIN {
            continue;
        }
        let (early, late) = warm.split_at(warm.len() / 2);
        let value = |half: &[&Point]| median(half.iter().map(|point| point.value).collect());
        // From the middle of one half to the middle of the other it is half of the life.
        grown += 2.0 * (value(late) - value(early));
        lived_s += warm[warm.len() - 1].at_s - warm[0].at_s;
    }
    (lived_s >= LIVES_MIN * 0.75 * length_s).then(|| grown / lived_s * length_s / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const LENGTH_S: f64 = 7_200.0;
    const EVERY_S: u32 = 10;

    /// One process that never ends.
    const FOR_EVER: u32 = u32::MAX;

    /// Samples of a run; `value` from the time and the time since the life began, both in seconds. A life lasts `life_s`.
    fn series(life_s: u32, value: impl Fn(f64, f64) -> f64) -> Series {
        let point = |number: u32| {
            let at_s = number * EVERY_S;
            let age_s = f64::from(at_s % life_s);
            Point { at_s: at_s.into(), life: at_s / life_s, value: value(at_s.into(), age_s) }
        };
        Series { floor: 4.0, points: (0..720).map(point).collect() }
    }

    fn wrong(series: &Series) -> Option<String> {
        judge(series, LENGTH_S).wrong
    }

    #[test]
    fn noise_a_saw_and_a_slow_start_are_flat() {
        let mut noisy = series(FOR_EVER, |_, _| 100.0);
        let mut random = StdRng::seed_from_u64(1);
        noisy.points.iter_mut().for_each(|point| point.value *= random.random_range(0.8..1.2));
        assert_eq!(wrong(&noisy), None);
        assert_eq!(wrong(&series(FOR_EVER, |at_s, _| 1_000.0 + 10.0 * (at_s % 60.0))), None, "rows come and go");
        assert_eq!(wrong(&series(FOR_EVER, |at_s, _| 50.0 + (at_s / 20.0).min(80.0))), None, "caches fill up");
        assert_eq!(wrong(&series(600, |_, age_s| 60.0 + (age_s / 2.0).min(30.0))), None, "each life begins small");
        assert_eq!(wrong(&series(FOR_EVER, |at_s, _| 10.0 + at_s / 3_000.0)), None, "below the floor");
        let peaks = series(FOR_EVER, |at_s, _| if at_s % 600.0 < 100.0 { 900.0 } else { 100.0 });
        assert_eq!(wrong(&peaks), None, "a fault fills a queue");
    }

    #[test]
    fn a_leak_is_seen_also_behind_noise_and_behind_deaths() {
        let leak = |at_s: f64| 100.0 + at_s / 200.0;
        assert!(wrong(&series(FOR_EVER, |at_s, _| leak(at_s))).unwrap().contains("last quarter"));
        let mut noisy = series(FOR_EVER, |at_s, _| leak(at_s));
        let mut random = StdRng::seed_from_u64(2);
        noisy.points.iter_mut().for_each(|point| point.value *= random.random_range(0.9..1.1));
        assert!(wrong(&noisy).is_some());
        // Half a megabyte a minute, and a death every ten minutes.
        let hidden = series(600, |_, age_s| 100.0 + age_s / 120.0);
        assert!(wrong(&hidden).unwrap().contains("while a process lives"), "{:?}", judge(&hidden, LENGTH_S));
    }

    #[test]
    fn few_samples_prove_nothing_and_short_lives_are_not_judged() {
        let mut few = series(FOR_EVER, |_, _| 1.0);
        few.points.retain(|point| point.at_s < 0.8 * LENGTH_S && point.at_s % 400.0 < 10.0);
        assert!(wrong(&few).unwrap().contains("samples"));
        assert_eq!(judge(&series(70, |_, age_s| age_s), LENGTH_S).within_lives, None);
    }
}
