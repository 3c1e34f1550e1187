//! The clocks of the servers against this machine's.

use super::check::{CheckVerdict, DoctorCheck};
use crate::roles::Servers;
use crate::runtime::now_ms;
use crate::store::mysql::checks;

/// Clocks may differ by this much, milliseconds. No guarantee depends on it; windows and starts of sales are judged by them.
const CLOCKS_MS: i64 = 1_000;

/// Each server's clock against this machine's, half of the round trip taken off.
pub(super) async fn check_clocks(servers: &Servers) -> Vec<DoctorCheck> {
    let mut found = Vec::new();
    let begin = now_ms();
    let redis = servers.redis.health.clock_ms(0).await.ok();
    let middle = now_ms();
    let mysql = checks::identity(&servers.db).await.ok().map(|identity| identity.clock_ms);
    let end = now_ms();
    for (server, clock, here) in [("redis", redis, (begin + middle) / 2), ("mysql", mysql, (middle + end) / 2)] {
        let Some(clock) = clock else { continue };
        let ahead_ms = clock - here;
        found.push(
            DoctorCheck::new(server, "clock", format!("{ahead_ms} ms ahead of this machine"), "within 1 s").judged(
                ahead_ms.abs() <= CLOCKS_MS,
                CheckVerdict::Warning,
                "starts, ends, token expiry and audit windows are judged by different clocks; nothing is lost by it",
                "synchronise the clocks (NTP)",
            ),
        );
    }
    found
}
