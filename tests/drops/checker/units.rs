//! Units: never more than there were, and each of them is somewhere.

use super::{Played, SaleTerms, Violation, violation};

/// Names of the grants that a sale may have, besides those that carry units back: `first`, `release-<no>`, `move-<name>`.
const BACK: [&str; 4] = ["cancel-", "return-", "reclaim-", "withdraw-"];

/// What a sale got by its file and from others, less what left it.
fn got(played: &Played<'_>, sale: &SaleTerms) -> i64 {
    sale.units() + played.books.moved_in(&sale.sale_id) - played.books.taken_from(&sale.sale_id)
}

/// OVERSOLD.
pub(super) fn oversold(played: &Played<'_>) -> Vec<Violation> {
    let Played { terms, books, .. } = played;
    let used = |sale: &SaleTerms| books.ordered(&sale.sale_id) + books.failed_units(&sale.sale_id);
    let of_sale = terms.sales.iter().filter(|sale| used(sale) > got(played, sale)).map(|sale| {
        violation("OVERSOLD", format!("{}: {} units, it got {}", sale.sale_id, used(sale), got(played, sale)))
    });
    let (all, given) = (terms.sales.iter().map(used).sum::<i64>(), terms.units());
    let of_drop =
        (all > given).then(|| violation("OVERSOLD", format!("the drop: {all} units, its file gives {given}")));
    of_sale.chain(of_drop).collect()
}

/// UNITS.
pub(super) fn add_up(played: &Played<'_>) -> Vec<Violation> {
    let Played { terms, books, .. } = played;
    let mut found = Vec::new();
    let mut wrong = |what: String| found.push(violation("UNITS", what));
    for sale in &terms.sales {
        let id = &sale.sale_id;
        let unsold = books.unsold.get(id).copied().unwrap_or(-1);
        let (ordered, failed, got) = (books.ordered(id), books.failed_units(id), got(played, sale));
        if unsold < 0 || unsold + ordered + failed != got {
            wrong(format!("{id}: {unsold} unsold + {ordered} ordered + {failed} failed, it got {got}"));
        }
        let granted = |name: &str| books.grants.get(&(id.clone(), name.to_owned())).copied();
        let planned = (1..).zip(&sale.releases).map(|(no, (_, units))| (format!("release-{no}"), *units));
        for (name, units) in planned.chain([("first".to_owned(), sale.stock)]) {
            if granted(&name) != Some(units) {
                wrong(format!("{id}: {name} is {:?}, the file says {units}", granted(&name)));
            }
        }
        let moved = books.withdrawals.iter().filter(|one| one.moves_to.as_ref() == Some(id));
        let mut arrived = 0;
        for one in moved.filter(|one| one.taken.is_some_and(|taken| taken > 0)) {
            arrived += 1;
            if granted(&format!("move-{}", one.name)) != one.taken {
                wrong(format!(
                    "{id}: {} left {}, {:?} arrived",
                    one.name,
                    one.sale,
                    granted(&format!("move-{}", one.name))
                ));
            }
        }
        let of_sale = books.grants.iter().filter(|((of, _), units)| of == id && **units != 0);
        let others = of_sale.filter(|((_, name), _)| !BACK.iter().any(|back| name.starts_with(back))).count();
        let expected = sale.releases.len() + usize::from(sale.stock > 0) + arrived;
        if others != expected {
            wrong(format!("{id}: {others} grants of new units, expected {expected}"));
        }
        for one in books.withdrawals.iter().filter(|one| one.sale == *id) {
            if one.taken.is_none() || one.moves_to != sale.rollover_to {
                wrong(format!("{id}: {one:?}, the file moves to {:?}", sale.rollover_to));
            }
        }
        if sale.rollover_to.is_some() && unsold > 0 {
            wrong(format!("{id}: {unsold} units did not roll over"));
        }
    }
    found
}
