//! How long something was not whole, from the probes' purchases.

use crate::probes::Purchase;
use crate::servers::roles;

/// A landing that takes longer is not whole.
const LANDS_WITHIN_MS: u64 = 3_000;

/// Until the balancer in front of the hosts has taken a lost one out of service: two checks, each at most `inter`, a connection
/// and `timeout check` (`deploy/three-hosts/haproxy.cfg`).
const TAKEN_OUT_MS: u64 = 2 * (700 + 700 + 1_500);

/// A stretch of the run.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// First millisecond.
    pub from_ms: u64,
    /// The first one after it.
    pub to_ms: u64,
}

impl Span {
    fn has(self, ms: u64) -> bool {
        (self.from_ms..self.to_ms).contains(&ms)
    }
}

fn seconds(from_ms: u64, to_ms: u64) -> f64 {
    (to_ms.saturating_sub(from_ms) / 10) as f64 / 100.0
}

/// Whether a purchase was most likely sent to the lost host's api: it had no answer at all, and began before the balancer could know.
/// No other api can answer it, so it says nothing of the apis that are there.
pub fn under_way_with_the_lost(purchase: &Purchase, fault_ms: u64) -> bool {
    let before_it_knew = (fault_ms..fault_ms + TAKEN_OUT_MS).contains(&purchase.begun_ms);
    roles::through_balancers() && purchase.is_unanswered() && before_it_knew
}

/// Seconds from the beginning of `span` until the answer of the first purchase after the last that was not accepted; 0 when all
/// were. `None`: the last one of the span was not, or there is none.
pub fn accepting_after(purchases: &[Purchase], span: Span, of: impl Fn(u16) -> bool) -> Option<f64> {
    let mut within: Vec<&Purchase> =
        purchases.iter().filter(|purchase| of(purchase.shard) && span.has(purchase.begun_ms)).collect();
    within.sort_by_key(|purchase| purchase.begun_ms);
    let mut latest = 0.0_f64;
    let shards: std::collections::BTreeSet<u16> = within.iter().map(|purchase| purchase.shard).collect();
    for shard in shards {
        let own: Vec<&&Purchase> = within.iter().filter(|purchase| purchase.shard == shard).collect();
        if let Some(last) = own.iter().rposition(|purchase| !purchase.accepted) {
            let next = own.get(last + 1)?;
            latest = latest.max(seconds(span.from_ms, next.ended_ms));
        }
    }
    (!within.is_empty()).then_some(latest)
}

/// The purchases, those that the fault met under way as if they began with it: the one buyer of a shard may have none but that.
pub fn with_under_way(purchases: &[Purchase], fault_ms: u64) -> Vec<Purchase> {
    let met = |purchase: &Purchase| purchase.begun_ms < fault_ms && purchase.ended_ms > fault_ms;
    let begun_ms = |purchase: &Purchase| if met(purchase) { fault_ms } else { purchase.begun_ms };
    purchases.iter().map(|purchase| Purchase { begun_ms: begun_ms(purchase), ..purchase.clone() }).collect()
}

/// The longest time in seconds that a shard's buyer met refusals only, from the first of them to the next accepted purchase; 0
/// when all of the span were accepted. `None`: the last one was not, or there is none.
pub fn longest_outage(purchases: &[Purchase], span: Span) -> Option<f64> {
    let mut longest = 0.0_f64;
    let within = purchases.iter().filter(|purchase| span.has(purchase.begun_ms));
    let mut shards: std::collections::BTreeMap<u16, Vec<&Purchase>> = std::collections::BTreeMap::new();
    within.for_each(|purchase| shards.entry(purchase.shard).or_default().push(purchase));
    for own in shards.values_mut() {
        own.sort_by_key(|purchase| purchase.begun_ms);
        let mut since = None;
        for purchase in own {
            match (purchase.accepted, since) {
                (false, None) => since = Some(purchase.begun_ms),
                (true, Some(from_ms)) => {
                    longest = longest.max(seconds(from_ms, purchase.ended_ms));
                    since = None;
                }
                (false, Some(_)) | (true, None) => {}
            }
        }
        if since.is_some() {
            return None;
        }
    }
    (!shards.is_empty()).then_some(longest)
}

/// Seconds from the beginning of `span` until each shard had a purchase that began after it and was confirmed.
pub fn sold_and_landed_after(purchases: &[Purchase], span: Span) -> Option<f64> {
    let mut latest = 0.0_f64;
    for shard in purchases.iter().map(|purchase| purchase.shard).collect::<std::collections::BTreeSet<u16>>() {
        let own = purchases.iter().filter(|purchase| purchase.shard == shard && span.has(purchase.begun_ms));
        latest = latest.max(seconds(span.from_ms, own.filter_map(|purchase| purchase.confirmed_ms).min()?));
    }
    Some(latest)
}

/// Seconds from the beginning of `span` until the last order that landed late was confirmed; 0 when none was late. `None`: one
/// was never seen to land.
pub fn landing_after(purchases: &[Purchase], span: Span) -> Option<f64> {
    let mut latest = 0.0_f64;
    for purchase in purchases.iter().filter(|purchase| purchase.accepted && span.has(purchase.ended_ms)) {
        let confirmed_ms = purchase.confirmed_ms?;
        if confirmed_ms > purchase.ended_ms + LANDS_WITHIN_MS {
            latest = latest.max(seconds(span.from_ms, confirmed_ms));
        }
    }
    Some(latest)
}

/// Purchases accepted, and orders confirmed, in each second from five before `from_ms` on.
pub fn second_by_second(purchases: &[Purchase], from_ms: u64, to_ms: u64) -> Vec<[usize; 3]> {
    let first = from_ms.saturating_sub(5_000);
    let count = usize::try_from(to_ms.saturating_sub(first) / 1_000).expect("a short run") + 1;
    let mut line = vec![[0; 3]; count];
    let at = |ms: u64| usize::try_from(ms.checked_sub(first)? / 1_000).ok().filter(|at| *at < count);
    for purchase in purchases {
        if let Some(at) = at(purchase.ended_ms) {
            line[at][usize::from(!purchase.accepted)] += 1;
        }
        if let Some(at) = purchase.confirmed_ms.and_then(at) {
            line[at][2] += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purchase(shard: u16, begun_ms: u64, accepted: bool, confirmed_ms: Option<u64>) -> Purchase {
        Purchase { shard, begun_ms, ended_ms: begun_ms + 100, accepted, answer: String::new(), confirmed_ms }
    }

    #[test]
    fn a_shard_is_whole_with_the_first_purchase_after_its_last_failure() {
        let span = Span { from_ms: 1_000, to_ms: 20_000 };
        let mut all =
            vec![purchase(0, 500, false, None), purchase(0, 2_000, false, None), purchase(0, 4_000, true, None)];
        all.push(purchase(1, 2_000, true, None));
        assert_eq!(accepting_after(&all, span, |shard| shard == 0), Some(3.1));
        assert_eq!(accepting_after(&all, span, |shard| shard == 1), Some(0.0));
        all.push(purchase(0, 5_000, false, None));
        assert_eq!(accepting_after(&all, span, |_| true), None, "it ended with a failure");
        assert_eq!(longest_outage(&all, span), None, "it ended with a failure");
        assert_eq!(longest_outage(&all[..4], span), Some(2.1));
        assert_eq!(accepting_after(&all, span, |shard| shard == 7), None, "no purchase there");
    }

    #[test]
    fn a_purchase_that_the_fault_met_under_way_counts_from_the_fault() {
        let span = Span { from_ms: 1_000, to_ms: 20_000 };
        let all = vec![purchase(0, 950, false, None), purchase(0, 7_000, true, None)];
        assert_eq!(accepting_after(&all, span, |_| true), Some(0.0), "begun before");
        assert_eq!(accepting_after(&with_under_way(&all, span.from_ms), span, |_| true), Some(6.1));
    }

    #[test]
    fn landing_is_whole_when_the_last_late_order_is_confirmed() {
        let span = Span { from_ms: 1_000, to_ms: 20_000 };
        let mut all = vec![purchase(0, 2_000, true, Some(2_300)), purchase(0, 3_000, true, Some(9_000))];
        assert_eq!(landing_after(&all, span), Some(8.0));
        assert_eq!(sold_and_landed_after(&all, span), Some(1.3));
        assert_eq!(second_by_second(&all, 1_000, 9_000)[2..4], [[1, 0, 1], [1, 0, 0]]);
        all.push(purchase(0, 3_000, true, None));
        assert_eq!(landing_after(&all, span), None);
    }
}
