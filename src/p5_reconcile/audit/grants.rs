//! The grants, each by its name: in sums a grant that was given twice hides one that was not given at all.
//!
//! The database's marks are read before Redis, its grants after Redis: a grant that is given at this moment is not reported.

use super::finding::FindingKind;
use super::run::AuditRun;
use crate::domain::sale::SaleStatus;
use crate::p5_reconcile::context::ReconcileError;
use crate::sales::rows::grants;
use std::collections::HashMap;

/// Reads the grants that Redis is known to have.
pub(super) async fn read_marks(run: &mut AuditRun<'_>) -> Result<(), ReconcileError> {
    let of_epoch = grants::of_epoch(&run.context.db, &run.sale.sale_id, run.sale.epoch).await?;
    run.marked = of_epoch.into_iter().filter(|grant| grant.applied_at_ms.is_some()).collect();
    Ok(())
}

/// Compares the grants in Redis with those of the database. Only when all shards were read.
pub(super) async fn compare(run: &mut AuditRun<'_>) -> Result<(), ReconcileError> {
    if !run.audit.counted.bridged {
        return Ok(());
    }
    let mut given: HashMap<String, i64> = HashMap::new();
    for shard in 0..run.context.shards {
        let read = run.context.redis.sale_keys.grants(&run.sale.sale_id, shard, grants::OF_EPOCH_MAX).await?;
        let Some(of_shard) = read else {
            compare_sums(run);
            return Ok(());
        };
        if of_shard.is_empty() {
            // A closed sale may leave Redis at this moment; the lost keys of another one are a finding already.
            let leaves = run.sale.status == SaleStatus::Closed;
            return if leaves { Err(ReconcileError::Moved) } else { Ok(()) };
        }
        for (name, units) in of_shard {
            *given.entry(name).or_default() += units;
        }
    }
    let known = grants::of_epoch(&run.context.db, &run.sale.sale_id, run.sale.epoch).await?;
    if i64::try_from(known.len()).is_ok_and(|count| count >= grants::OF_EPOCH_MAX) {
        compare_sums(run);
        return Ok(());
    }
    for grant in std::mem::take(&mut run.marked) {
        let units = given.get(&grant.grant_id).copied();
        if units != Some(grant.quantity) {
            let has = units.map_or_else(|| "does not know it".to_owned(), |units| format!("has {units} of it"));
            let detail = format!(
                "grant {} of {} units: redis was given it by its mark, and {has}",
                grant.grant_id, grant.quantity
            );
            run.find_part(FindingKind::Unbalanced, format!("mark of grant {}", grant.grant_id), detail);
        }
    }
    let known: HashMap<&str, i64> = known.iter().map(|grant| (grant.grant_id.as_str(), grant.quantity)).collect();
    for (name, units) in &given {
        let most = known.get(name.as_str()).copied().unwrap_or(0);
        if *units > most {
            let detail =
                format!("redis was given {units} units of grant {name}, the database knows of {most} in this epoch");
            run.find_part(FindingKind::Unbalanced, format!("units of grant {name}"), detail);
        }
    }
    Ok(())
}

/// Compares the sums, where the grants are too many to read them all. A grant is in the database first, and the database was read
/// last, so Redis has no units that it does not know of. What Redis lacks may be on its way, and is shown as not given yet.
fn compare_sums(run: &mut AuditRun<'_>) {
    let (given, open) = (run.audit.counted.granted_in_redis, run.audit.counted.grants_open);
    if open < 0 {
        let known = given + open;
        let detail = format!("redis was given {given} units of grants, the database knows of {known} in this epoch");
        run.find_part(FindingKind::Unbalanced, "units of all grants", detail);
    }
}
