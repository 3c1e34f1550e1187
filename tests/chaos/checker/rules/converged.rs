//! C7: what was unknown became certain, and the client's last answer is what the database says.

use super::super::Found;
use super::super::index::Index;
use super::super::read::Attempt;

/// Checks C7.
pub fn check(index: &Index<'_>, found: &mut Found) {
    for (rid, attempts) in &index.attempts {
        let answers: Vec<&&Attempt> =
            attempts.iter().filter(|attempt| attempt.kind == "status" && is_definite(&attempt.result)).collect();
        let unknown = attempts.iter().any(|attempt| attempt.kind == "buy" && attempt.result == "unknown");
        if unknown {
            certain(index, rid, attempts, &answers, found);
        }
        if let Some(last) = answers.last() {
            agrees(index, rid, last, found);
        }
    }
}

/// Whether an answer says anything about the request.
fn is_definite(result: &str) -> bool {
    ["queued", "confirmed", "failed", "not_found"].contains(&result)
}

fn certain(index: &Index<'_>, rid: &str, attempts: &[&Attempt], answers: &[&&Attempt], found: &mut Found) {
    let Some(last) = answers.last() else {
        // A repeat with the same token is as good a question as a GET.
        let known = |attempt: &&&Attempt| {
            attempt.kind == "buy" && ["accepted", "sold_out", "limit", "duplicate"].contains(&attempt.result.as_str())
        };
        if !attempts.iter().any(|attempt| known(&attempt)) {
            found.add("C7", format!("request {rid}: its answer was unknown and no client ever learned it"));
        }
        return;
    };
    let before = answers.iter().rev().nth(1).map(|answer| answer.result.as_str());
    match last.result.as_str() {
        "queued" if !index.parked.contains(rid) => {
            found.add("C7", format!("request {rid}: still QUEUED at {} ms, and nothing is parked", last.complete_ms));
        }
        "not_found" if before != Some("not_found") => {
            found.add("C7", format!("request {rid}: not found once only, at {} ms", last.complete_ms));
        }
        _ => {}
    }
}

/// Whether the client's last answer is what the database says.
fn agrees(index: &Index<'_>, rid: &str, last: &Attempt, found: &mut Found) {
    let outcome = index.outcomes.get(rid);
    let kind = outcome.map_or("none", |outcome| outcome.kind.as_str());
    let wanted = match last.result.as_str() {
        "confirmed" => "ORDER",
        "failed" => "FAILED",
        "not_found" => "none",
        _ => return,
    };
    if kind != wanted {
        found.add("C7", format!("request {rid}: a client got {} last, the outcome is {kind}", last.result));
        return;
    }
    let reason = outcome.and_then(|outcome| outcome.reason.as_deref());
    if wanted == "FAILED" && last.reason.as_deref() != reason {
        found.add(
            "C7",
            format!("request {rid}: a client got the reason {:?}, the outcome says {reason:?}", last.reason),
        );
    }
    if wanted == "none" && index.ledger.contains_key(rid) {
        found.add("C7", format!("request {rid}: a client got not found last, but it is in the ledger"));
    }
}
