//! What an order cost at one size, and how that compares with the smallest.

use super::cpu::CpuUsage;
use serde::Serialize;
use std::collections::BTreeMap;

/// Cost of one step for each order, microseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct OrderCost {
    /// Processor time of all processes together.
    pub cpu_us: f64,
    /// Of each process; `seckill` is the step's own code and what feeds it.
    pub by_process_us: BTreeMap<String, f64>,
    /// Time passed.
    pub elapsed_us: f64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct GrowthPoint {
    pub size: u64,
    pub reserve: OrderCost,
    pub relay: OrderCost,
    pub landing: OrderCost,
}

impl OrderCost {
    /// Of `count` orders.
    #[expect(clippy::cast_precision_loss, reason = "a count of one run; 53 bits are enough")]
    pub fn of(usage: &CpuUsage, count: u64) -> Self {
        let us = |seconds: f64| seconds * 1_000_000.0 / count.max(1) as f64;
        let by_process_us: BTreeMap<String, f64> =
            usage.seconds.iter().map(|(name, seconds)| (name.clone(), us(*seconds))).collect();
        Self { cpu_us: by_process_us.values().sum(), by_process_us, elapsed_us: us(usage.elapsed_s) }
    }

    /// With that of another piece of the same orders.
    pub fn add(&mut self, other: &Self) {
        self.cpu_us += other.cpu_us;
        self.elapsed_us += other.elapsed_us;
        for (name, us) in &other.by_process_us {
            *self.by_process_us.entry(name.clone()).or_default() += us;
        }
    }
}

impl GrowthPoint {
    fn steps(&self) -> [(&'static str, &OrderCost); 3] {
        [("reserve", &self.reserve), ("relay", &self.relay), ("landing", &self.landing)]
    }

    /// For people.
    pub fn words(&self) -> String {
        let [reserve, relay, landing] = self.steps().map(|(_, cost)| cost.cpu_us);
        format!("{}: {reserve:.0} + {relay:.0} + {landing:.0}", self.size)
    }
}

/// The highest ratio of a step's cost to the same step's at the first size, and which step that is.
pub(super) fn worst(points: &[GrowthPoint]) -> (f64, &'static str) {
    let Some(first) = points.first() else { return (0.0, "none") };
    let ratios = points.iter().skip(1).flat_map(|point| {
        let steps = point.steps().into_iter().zip(first.steps());
        steps.map(|((name, cost), (_, smallest))| (each(cost.cpu_us, smallest.cpu_us), name))
    });
    ratios.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((1.0, "none"))
}

/// A ratio; infinite to nothing, so that it cannot pass for a good one.
pub(super) fn each(value: f64, smallest: f64) -> f64 {
    if smallest > 0.0 { value / smallest } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(size: u64, us: [f64; 3]) -> GrowthPoint {
        let [reserve, relay, landing] = us.map(|cpu_us| OrderCost { cpu_us, ..OrderCost::default() });
        GrowthPoint { size, reserve, relay, landing }
    }

    #[test]
    fn one_dear_step_at_one_size_is_found() {
        let points = [point(1, [10.0; 3]), point(10, [9.0, 16.0, 8.0]), point(100, [12.0, 10.0, 10.0])];
        assert_eq!(worst(&points), (1.6, "relay"));
        assert_eq!(worst(&points[..1]), (1.0, "none"));
        assert_eq!(worst(&[point(1, [0.0; 3]), point(2, [1.0; 3])]).0, f64::INFINITY, "nothing was measured");
    }

    #[test]
    fn cost_is_given_for_each_order() {
        let seconds = [("redis".to_owned(), 0.5), ("seckill".to_owned(), 1.5)].into();
        let cost = OrderCost::of(&CpuUsage { seconds, elapsed_s: 1.0, machine: None }, 100_000);
        assert_eq!((cost.cpu_us, cost.elapsed_us, cost.by_process_us["redis"]), (20.0, 10.0, 5.0));
    }
}
