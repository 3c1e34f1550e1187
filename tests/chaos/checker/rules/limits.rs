//! C2: one order per request, and no buyer above the limit of a sale or of a drop.

use super::super::Found;
use super::super::index::Index;
use std::collections::{BTreeMap, BTreeSet};

/// Checks C2.
pub fn check(index: &Index<'_>, found: &mut Found) {
    let mut seen = BTreeSet::new();
    let mut bought: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
    for order in &index.input.orders {
        if !seen.insert(&order.request_id) {
            found.add("C2", format!("request {} has two orders", order.request_id));
        }
        if order.limit_returned != 0 {
            continue;
        }
        let of_buyer = bought.entry((&order.sale_id, &order.user_id)).or_default();
        of_buyer.0 += 1;
        of_buyer.1 += order.quantity;
    }
    let limit_of = |sale: &str| index.sales.get(sale).and_then(|sale| sale.per_user_limit);
    for ((sale, user), (count, units)) in &bought {
        match limit_of(sale) {
            Some(1) if *count > 1 => {
                found.add("C2", format!("sale {sale}: {user} has {count} orders, one is allowed"));
            }
            Some(limit) if *units > limit => {
                found.add("C2", format!("sale {sale}: {user} has {units} units, {limit} are allowed"));
            }
            Some(_) | None => {}
        }
    }
    check_drops(index, &bought, found);
    let owned: BTreeMap<(&str, &str), i64> = (index.input.purchases.iter())
        .map(|row| ((row.sale_id.as_str(), row.user_id.as_str()), row.quantity))
        .collect();
    // The table is kept for cumulative limits only.
    let cumulative = |sale: &str| limit_of(sale).is_some_and(|limit| limit > 1);
    let buyers: BTreeSet<&(&str, &str)> = owned.keys().chain(bought.keys()).collect();
    for buyer in buyers.into_iter().filter(|(sale, _)| cumulative(sale)) {
        let noted = owned.get(buyer).copied().unwrap_or(0);
        let units = bought.get(buyer).map_or(0, |(_, units)| *units);
        if noted != units {
            found
                .add("C2", format!("sale {}: {} owns {noted} units by purchases, {units} by orders", buyer.0, buyer.1));
        }
    }
}

/// What each buyer has in all sales of a drop, against its limit and against what the database counted.
fn check_drops(index: &Index<'_>, bought: &BTreeMap<(&str, &str), (i64, i64)>, found: &mut Found) {
    for drop in &index.input.drops {
        let (id, sales): (&str, BTreeSet<&str>) = (&drop.drop_id, drop.sale_ids.split(' ').collect());
        let mut has: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for ((_, user), (_, units)) in bought.iter().filter(|((sale, _), _)| sales.contains(sale)) {
            has.entry(user).or_default().0 += units;
        }
        for row in index.input.drop_purchases.iter().filter(|row| row.drop_id == drop.drop_id) {
            has.entry(&row.user_id).or_default().1 += row.quantity;
        }
        for (user, (units, noted)) in has {
            if drop.per_user_limit.is_some_and(|limit| units > limit) {
                found.add("C2", format!("drop {id}: {user} has {units} units, {:?} are allowed", drop.per_user_limit));
            }
            if units != noted {
                found.add("C2", format!("drop {id}: {user} owns {noted} units by drop_purchases, {units} by orders"));
            }
        }
    }
}
