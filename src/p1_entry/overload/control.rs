//! What the entry does about load: when it is closed, and how much it lets in. Pure: one reading a second in, one order out.
//!
//! Pressure is the larger of lag and backlog, each as a part of its bound. Below half of the bound nothing happens: a queue
//! is there to take a burst. From half on the entry lets in somewhat less than lands, so that the queue shrinks; at the bound
//! it closes, and opens again below half. When the pressure is gone the limit grows in even steps until it limits nothing.

/// The pressure from which on less is let in, and below which a closed entry opens.
pub(super) const EASE: f64 = 0.5;
/// The pressure at which the entry closes.
pub(super) const CLOSE: f64 = 1.0;
/// Of what lands, this part is let in while the pressure is high.
const PART_OF_LANDING: f64 = 0.8;
/// Purchases a second that are let in however little lands: without any no process would see landing come back.
const FLOOR_PER_S: f64 = 50.0;
/// A limit grows by this part of the rate at which it began, each second: twenty seconds from nothing to free.
const STEP: f64 = 0.05;
/// Weight of the last second in the rate of landing; landings come in groups.
const SMOOTHING: f64 = 0.2;

/// What was seen in the last second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LoadReading {
    /// 0 and up; 1 is the bound.
    pub pressure: f64,
    /// Purchases accepted, a second.
    pub(crate) admitted_per_s: f64,
    /// Purchases landed, a second.
    pub(crate) landed_per_s: f64,
}

/// What the entry does until the next reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EntryCommand {
    /// New purchases are refused.
    pub closed: bool,
    /// New purchases a second; none: all of them.
    pub(crate) limit_per_s: Option<u32>,
}

/// Decides, second by second.
#[derive(Debug, Clone)]
pub(super) struct EntryControl {
    adaptive: bool,
    closed: bool,
    landing_per_s: f64,
    /// The limit, and the rate at which it ends.
    limit: Option<(f64, f64)>,
}

impl EntryControl {
    pub(super) const fn new(adaptive: bool) -> Self {
        Self { adaptive, closed: false, landing_per_s: 0.0, limit: None }
    }

    /// One second's decision.
    pub(super) fn decide(&mut self, seen: LoadReading) -> EntryCommand {
        self.closed = seen.pressure >= if self.closed { EASE } else { CLOSE };
        self.landing_per_s += (seen.landed_per_s - self.landing_per_s) * SMOOTHING;
        self.limit = self.next_limit(seen).filter(|_| self.adaptive);
        let whole = |(limit, _)| num_of(limit);
        EntryCommand { closed: self.closed, limit_per_s: self.limit.map(whole) }
    }

    fn next_limit(&self, seen: LoadReading) -> Option<(f64, f64)> {
        if seen.pressure >= EASE {
            let free = self.limit.map_or(seen.admitted_per_s, |(_, free)| free).max(FLOOR_PER_S);
            return Some(((self.landing_per_s * PART_OF_LANDING).max(FLOOR_PER_S), free));
        }
        let (limit, free) = self.limit?;
        let grown = limit + (free * STEP).max(FLOOR_PER_S / 2.0);
        (grown < free).then_some((grown, free))
    }
}

/// A rate as a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the type's range before")]
fn num_of(rate_per_s: f64) -> u32 {
    rate_per_s.clamp(1.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(pressure: f64, admitted_per_s: f64, landed_per_s: f64) -> LoadReading {
        LoadReading { pressure, admitted_per_s, landed_per_s }
    }

    #[test]
    fn it_closes_at_the_bound_and_opens_below_half_of_it() {
        let mut control = EntryControl::new(false);
        let closed: Vec<bool> = [0.0, 0.99, 1.0, 0.99, 0.6, 0.5, 0.49, 0.9, 0.99, 1.5, 0.1]
            .into_iter()
            .map(|pressure| control.decide(seen(pressure, 100.0, 100.0)).closed)
            .collect();
        assert_eq!(closed, [false, false, true, true, true, true, false, false, false, true, false]);
    }

    /// A queue of a database that lands `lands` a second, with `wanted` a second at the door: how long it gets, and what is
    /// let in at the end.
    fn queue(adaptive: bool, wanted: f64, lands: impl Fn(u32) -> f64, seconds: u32) -> (f64, f64) {
        let (lag_max_s, mut control) = (120.0, EntryControl::new(adaptive));
        let (mut waiting, mut longest, mut order, mut admitted) = (0.0_f64, 0.0_f64, EntryCommand::default(), 0.0);
        for second in 0..seconds {
            admitted = order.limit_per_s.map_or(wanted, |limit| wanted.min(f64::from(limit)));
            if order.closed {
                admitted = 1.0;
            }
            let landed = lands(second).min(waiting + admitted);
            waiting += admitted - landed;
            longest = longest.max(waiting);
            order = control.decide(seen(waiting / lands(second).max(1.0) / lag_max_s, admitted, landed));
        }
        (longest, admitted)
    }

    #[test]
    fn a_database_that_lands_less_is_let_in_less_and_what_waits_stays_below_the_bound() {
        let slow = |_: u32| 200.0;
        let (longest, admitted) = queue(true, 2_000.0, slow, 600);
        assert!(longest < 200.0 * 120.0 * 0.7, "{longest} wait at most");
        assert!((100.0..=220.0).contains(&admitted), "{admitted} a second are let in");
        let (longest, _) = queue(false, 2_000.0, slow, 600);
        assert!(longest > 200.0 * 119.0, "without it the queue reaches the bound: {longest}");
        let (_, admitted) = queue(true, 2_000.0, |second| if second < 300 { 200.0 } else { 4_000.0 }, 600);
        assert!((1_999.0..=2_001.0).contains(&admitted), "all of them again when it is well: {admitted}");
    }

    proptest! {
        #[test]
        fn a_change_is_never_without_its_reason_and_calm_frees_the_entry(
            readings in prop::collection::vec((0.0..3.0_f64, 0.0..50_000.0_f64, 0.0..50_000.0_f64), 1..200),
            adaptive: bool,
        ) {
            let mut control = EntryControl::new(adaptive);
            let mut before = EntryCommand::default();
            let most_landed = readings.iter().map(|reading| reading.2).fold(0.0, f64::max);
            for (pressure, admitted, landed) in readings {
                let order = control.decide(seen(pressure, admitted, landed));
                prop_assert!(!order.closed || pressure >= EASE);
                prop_assert!(order.closed || pressure < CLOSE);
                if order.closed != before.closed {
                    let due = if order.closed { pressure >= CLOSE } else { pressure < EASE };
                    prop_assert!(due, "{:?} at {}", order, pressure);
                }
                prop_assert!(adaptive || order.limit_per_s.is_none());
                if adaptive && pressure >= EASE {
                    let limit = f64::from(order.limit_per_s.expect("a limit under pressure"));
                    prop_assert!(limit >= FLOOR_PER_S && limit <= (most_landed * PART_OF_LANDING).max(FLOOR_PER_S));
                }
                before = order;
            }
            let calm = (0..30).map(|_| control.decide(seen(0.1, 1_000.0, 1_000.0))).last();
            prop_assert_eq!(calm, Some(EntryCommand::default()));
        }
    }
}
