//! The grants, each by its name: in sums a grant that was given twice hides one that was not given at all.
//!
//! The database's marks are read before Redis, its grants after Redis: a grant that is given at this moment is not
//! reported.

use super::case::SaleCase;
use crate::domain::balance::BalanceSheet;
use crate::domain::sale::SaleStatus;
use crate::faults::left_out;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};
use crate::p5_reconcile::audit::redis_side::GrantsInRedis;
use crate::sales::rows::grants::GrantMark;
use std::collections::{BTreeMap, HashMap};

/// Whether a closed sale has left Redis since its counters were read. The lost keys of another one are a finding
/// already.
pub(super) fn have_left(case: &SaleCase<'_>) -> bool {
    case.terms.sale.status == SaleStatus::Closed && matches!(case.redis.grants, Some(GrantsInRedis::Missing))
}

/// Compares the grants in Redis with those of the database, if they were read: only when all shards were.
pub(super) fn compare(case: &SaleCase<'_>, sheet: &BalanceSheet, found: &mut FoundSoFar) {
    match (&case.redis.grants, &case.database.grants) {
        (Some(GrantsInRedis::Named(given)), Some(known)) => compare_names(case, given, known, found),
        (Some(GrantsInRedis::Named(_) | GrantsInRedis::TooMany), _) => compare_sums(case, sheet, found),
        (Some(GrantsInRedis::Missing) | None, _) => {}
    }
}

fn compare_names(case: &SaleCase<'_>, given: &BTreeMap<String, i64>, known: &[GrantMark], found: &mut FoundSoFar) {
    let marked = if left_out!(MarksCompared) { &[] } else { case.database.before.marked.as_slice() };
    for grant in marked {
        let units = given.get(&grant.grant_id).copied();
        if units != Some(grant.quantity) {
            let has = units.map_or_else(|| "does not know it".to_owned(), |units| format!("has {units} of it"));
            let detail = format!(
                "grant {} of {} units: redis was given it by its mark, and {has}",
                grant.grant_id, grant.quantity
            );
            found.add_part(FindingKind::Unbalanced, format!("mark of grant {}", grant.grant_id), detail);
        }
    }
    let known: HashMap<&str, i64> = known.iter().map(|grant| (grant.grant_id.as_str(), grant.quantity)).collect();
    for (name, units) in given {
        let most = known.get(name.as_str()).copied().unwrap_or(0);
        // Units of a withdrawal are taken before the database knows how many; a part of them may have been taken when Redis was read.
        let is_right = (most.min(0)..=most.max(0)).contains(units);
        if !is_right && !left_out!(GrantsByName) {
            let detail =
                format!("redis was given {units} units of grant {name}, the database knows of {most} in this epoch");
            found.add_part(FindingKind::Unbalanced, format!("units of grant {name}"), detail);
        }
    }
}

/// Compares the sums, where the grants are too many to read them all. A grant is in the database first, and the
/// database was read last, so Redis has no units that it does not know of. What Redis lacks may be on its way, and is
/// shown as not given yet. A withdrawal is in Redis first: what the database has of it since Redis was read is no difference.
fn compare_sums(case: &SaleCase<'_>, sheet: &BalanceSheet, found: &mut FoundSoFar) {
    let (given, open) = (sheet.granted_in_redis, sheet.grants_open);
    let withdrawn_since = case.snapshot.books.withdrawn - case.database.before.withdrawn;
    if open + withdrawn_since < 0 {
        let known = given + open;
        let detail = format!("redis was given {given} units of grants, the database knows of {known} in this epoch");
        found.add_part(FindingKind::Unbalanced, "units of all grants", detail);
    }
}
