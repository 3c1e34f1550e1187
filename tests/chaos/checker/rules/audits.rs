//! C13: what the audit reported beside the crowd is so.
//!
//! A leak may be: a fault destroyed a message, and the audit persisted its request again. Nothing else comes and goes. A sum that does
//! not add up, a number without a request or a sale that lost its keys at noon would be so at the end, and another rule would say so.

use super::super::Found;
use super::super::index::Index;

/// The code of a finding that can be true for a while.
const LEAK: &str = "P5-RC1";
/// The same in an answer to an operator.
const LEAK_BY_HAND: &str = "LEAK";

/// Checks C13, after all other rules: an audit that says what they say is right.
pub fn check(index: &Index<'_>, found: &mut Found) {
    if !found.0.is_empty() {
        return;
    }
    for finding in index.input.findings.iter().filter(|finding| finding.code != LEAK) {
        let sale = finding.sale_id.as_deref().unwrap_or("-");
        found.add("C13", format!("the audit reported {} of sale {sale}: {}", finding.code, finding.detail));
    }
    for act in &index.input.acts {
        for code in act.findings.iter().filter(|code| *code != LEAK_BY_HAND) {
            let (sale, at_ms) = (&act.sale, act.complete_ms);
            found.add("C13", format!("an audit by hand reported {code} of sale {sale} at {at_ms} ms"));
        }
    }
}
