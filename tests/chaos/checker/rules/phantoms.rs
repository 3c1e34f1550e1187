//! C4: nothing was ordered or refused that no client asked for.
//!
//! Attempts without a purchase token learn their request id from the answer. One whose answer was lost may have become a
//! request that no client knows; each such attempt excuses one, of the same buyer, sale and quantity.

use super::super::Found;
use super::super::index::Index;
use std::collections::BTreeMap;

/// Something decided, with what it was decided for.
struct Decided<'a> {
    what: &'static str,
    rid: &'a str,
    user: &'a str,
    sale: &'a str,
    quantity: i64,
}

/// Checks C4.
pub fn check(index: &Index<'_>, found: &mut Found) {
    let mut excuses: BTreeMap<(&str, &str, i64), u64> = BTreeMap::new();
    for attempt in &index.input.attempts {
        if attempt.kind == "buy" && attempt.rid.is_none() && attempt.result == "unknown" {
            *excuses.entry((&attempt.user, &attempt.sale, attempt.quantity)).or_default() += 1;
        }
    }
    let orders = index.input.orders.iter().map(|order| Decided {
        what: "order",
        rid: &order.request_id,
        user: &order.user_id,
        sale: &order.sale_id,
        quantity: order.quantity,
    });
    let failures = index.input.failed.iter().map(|row| Decided {
        what: "failure",
        rid: &row.request_id,
        user: &row.user_id,
        sale: &row.sale_id,
        quantity: row.quantity,
    });
    // A row of `failed_request` that an order resolved is covered by the order.
    let failures = failures.filter(|row| !index.orders.contains_key(row.rid));
    for decided in orders.chain(failures) {
        let Decided { what, rid, user, sale, quantity } = decided;
        let Some(attempts) = index.attempts.get(rid) else {
            match excuses.get_mut(&(user, sale, quantity)) {
                Some(left) if *left > 0 => *left -= 1,
                Some(_) | None => {
                    found.add(
                        "C4",
                        format!("{what} {rid} of {user} in {sale}, {quantity} units: no client asked for it"),
                    );
                }
            }
            continue;
        };
        let mut bought = attempts.iter().filter(|attempt| attempt.kind == "buy").peekable();
        if bought.peek().is_none() {
            found.add(
                "C4",
                format!("{what} {rid} of {user} in {sale}: a token was issued for it, but no client used it"),
            );
        } else if !bought.any(|a| a.user == user && a.sale == sale && a.quantity == quantity) {
            found
                .add("C4", format!("{what} {rid} of {user} in {sale}, {quantity} units: something else was asked for"));
        }
    }
}
