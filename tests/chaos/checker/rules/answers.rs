//! C6: A client that got "accepted" is never refused afterwards.

use super::super::Found;
use super::super::index::Index;

const REFUSALS: [&str; 4] = ["sold_out", "not_found", "limit", "duplicate"];

/// Checks C6. Attempts that overlap have no order, so only what began after the promise arrived counts.
pub fn check(index: &Index<'_>, found: &mut Found) {
    for (rid, attempts) in &index.attempts {
        let promise = attempts.iter().find(|attempt| attempt.kind == "buy" && attempt.result == "accepted");
        let Some(promise) = promise else { continue };
        for later in
            attempts.iter().filter(|attempt| attempt.invoke_ms >= promise.complete_ms && attempt.kind != "token")
        {
            if REFUSALS.contains(&later.result.as_str()) {
                let other = later.other_rid.as_ref().map(|other| format!(" naming {other}")).unwrap_or_default();
                found.add(
                    "C6",
                    format!(
                        "request {rid}: accepted at {} ms, then {} to a {} at {} ms{other}",
                        promise.complete_ms, later.result, later.kind, later.complete_ms
                    ),
                );
            }
        }
    }
}
