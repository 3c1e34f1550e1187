//! Settings that are allowed and weaken a guarantee.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::Settings;
use crate::orders::persist::HELD_MAX;

/// Whether a rebuild waits longer than a process may hold a request that is in no queue.
pub(super) fn quiet_time(settings: &Settings) -> DoctorCheck {
    let (quiet_ms, relay) = (settings.p5_reconcile.quiet_ms, &settings.p3_relay);
    let locks_ms = u64::try_from(HELD_MAX.as_millis()).unwrap_or(u64::MAX);
    let statements_ms = settings.mysql.statement_timeout_ms.saturating_mul(2);
    let relay_ms = (relay.claim_idle_ms / 3).saturating_add(relay.confirm_timeout_ms);
    let held_ms = locks_ms.max(statements_ms).max(relay_ms);
    let check = DoctorCheck::new("settings", "p5_reconcile.quiet_ms", quiet_ms.to_string(), format!("above {held_ms}"));
    check.judged(
        quiet_ms > held_ms,
        CheckVerdict::Warning,
        "a consumer that waits for locked rows, or a relay, may hold a request for so long: a rebuild before its end sells its unit again",
        &format!("set p5_reconcile.quiet_ms above {held_ms}: row locks {locks_ms}, statements {statements_ms}, relay {relay_ms}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn the_quiet_time_is_longer_than_anything_is_held() {
        let with = |set: &[&str]| {
            let set = set.iter().map(|set| (*set).to_owned()).collect();
            quiet_time(&Settings::load(&Layers { files: vec![], set }).unwrap())
        };
        assert_eq!(with(&[]).verdict, CheckVerdict::Fine);
        for (set, least) in [
            (["p5_reconcile.quiet_ms=27000", "p3_relay.claim_idle_ms=30000"], "above 27000"),
            (["p5_reconcile.quiet_ms=40000", "mysql.statement_timeout_ms=20000"], "above 40000"),
            (["p3_relay.claim_idle_ms=90000", "p3_relay.confirm_timeout_ms=5000"], "above 35000"),
        ] {
            let check = with(&set);
            assert_eq!((check.verdict, check.expected.as_str()), (CheckVerdict::Warning, least), "{set:?}");
        }
    }
}
