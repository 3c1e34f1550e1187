//! The alert rules as the tests of `tests/system/alerts` use them: shipped but for their time.

use crate::support::outside::prometheus::{shipped, shortened};

#[test]
fn only_the_time_of_the_rules_is_changed() {
    let short = shortened("expr: increase(a[15m]) > 5 unless a offset 1h # 5m\n  for: 2m\n  summary: 10m is long\n");
    assert_eq!(short, "expr: increase(a[15s]) > 5 unless a offset 60s # 5m\n  for: 2s\n  summary: 10m is long\n");
    let rules = shipped();
    let short = shortened(&rules);
    assert!(!short.contains("m]") && !short.contains("h]"), "{short}");
    let differ = rules.lines().zip(short.lines()).filter(|(long, short)| long != short).count();
    let timed = rules.lines().filter(|line| line.contains(" for: ") || line.contains("m]") || line.contains("h]"));
    assert_eq!((differ, short.lines().count()), (timed.count(), rules.lines().count()));
}
