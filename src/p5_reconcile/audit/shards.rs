//! Redis' side of an audit: what each shard holds, and which requests of its ledger are open.

use super::finding::FindingKind;
use super::ledger_scan::{KnownGaps, LedgerReader, LedgerScan, ScanMemory};
use super::run::{AuditRun, ShardRead};
use crate::domain::ids::RequestId;
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::{MetaState, SaleStatus};
use crate::p5_reconcile::context::ReconcileError;
use crate::p5_reconcile::rows::books::Series;
use crate::store::redis::ShardCount;

/// Reads one shard into the run.
pub(super) async fn read(run: &mut AuditRun<'_>, memory: &mut ScanMemory, shard: u16) -> Result<(), ReconcileError> {
    let (redis, sale) = (&run.context.redis, run.sale);
    let id = &sale.sale_id;
    let Some(counts) = redis.sale_keys.count(id, shard).await? else {
        if matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
            let detail = format!(
                "shard {shard}: the sale was warmed but redis has no keys of it; it stays closed until it is rebuilt"
            );
            run.find_part(FindingKind::KeysLost, format!("shard {shard}"), detail);
            let now_ms = redis.health.clock_ms(shard).await?;
            let reader = LedgerReader { ledger: &redis.ledger, sale: id, shard, now_ms };
            let is_queued = |record: &LedgerRecord| record.state == LedgerState::Queued;
            run.open.append(&mut reader.without_counters(is_queued).await?);
            run.lost.push((shard, now_ms));
        }
        return Ok(());
    };
    // A script that misses one of the five keys sells nothing; the sums below would only show a difference.
    if !redis.sale_keys.are_complete(id, shard).await? && sale.status != SaleStatus::Draft {
        // A closed sale may leave Redis at this moment, in one step. The next audit finds nothing of it.
        if redis.sale_keys.count(id, shard).await?.is_none() {
            return Err(ReconcileError::Moved);
        }
        let detail = format!(
            "shard {shard}: one of the sale's keys is missing or of another kind; it stays closed until it is rebuilt"
        );
        run.find_part(FindingKind::KeysLost, format!("shard {shard}"), detail);
    }
    compare_epochs_and_numbers(run, shard, &counts);
    let now_ms = redis.health.clock_ms(shard).await?;
    let remembered = memory.still_good(shard, &counts, run.options.window.duration(), now_ms).cloned();
    let fresh = remembered.is_none();
    let scan = match remembered {
        Some(scan) => scan,
        None => {
            let gaps = memory.gaps(shard, counts.meta.epoch);
            let scan = scan_ledger(run, shard, &counts, (now_ms, gaps)).await?;
            memory.remember(shard, scan.clone());
            scan
        }
    };
    add(run, shard, &counts);
    run.audit.examined_count += scan.count;
    run.open.extend(scan.open.iter().cloned().map(|mut request| {
        request.age_ms = (now_ms - request.record.accepted_at_ms).max(0);
        request
    }));
    run.shards.insert(shard, ShardRead { counts, scan, fresh, now_ms });
    Ok(())
}

/// Scans the ledger and compares it with Redis' own counters.
async fn scan_ledger(
    run: &mut AuditRun<'_>,
    shard: u16,
    counts: &ShardCount,
    (now_ms, gaps): (i64, KnownGaps),
) -> Result<LedgerScan, ReconcileError> {
    let (redis, sale) = (&run.context.redis, &run.sale.sale_id);
    let (mut scan, unreadable) = LedgerReader { ledger: &redis.ledger, sale, shard, now_ms }
        .scan(counts, run.options.retention_ms, gaps)
        .await?;
    scan.damaged = !unreadable.is_empty();
    for (field, text) in unreadable {
        let detail = format!("shard {shard}: record {text:?} of {field:?} is unreadable");
        match RequestId::parse(&field) {
            Ok(request_id) => run.find(FindingKind::LedgerDamaged, Some(request_id), detail),
            Err(_no_id) => run.find_part(FindingKind::LedgerDamaged, format!("shard {shard}, field {field}"), detail),
        }
    }
    // Records that were trimmed meanwhile are missing in this scan and not lost. The next audit reads whole numbers.
    let trimmed_now = redis.sale_keys.count(sale, shard).await?.map(|counts| counts.trimmed);
    if trimmed_now.is_some_and(|now| now != counts.trimmed) {
        return Err(ReconcileError::Moved);
    }
    let (number, trimmed) = (counts.meta.number, counts.trimmed);
    let known = scan.count + trimmed.count;
    if known != number {
        scan.damaged = true;
        let detail = format!("shard {shard}: {number} requests were accepted, the ledger has {known}");
        run.find_part(FindingKind::LedgerDamaged, format!("shard {shard}, requests"), detail);
    }
    let units = scan.units + trimmed.ordered + trimmed.failed;
    if let Some(accepted) = counts.accepted.filter(|accepted| known == number && *accepted != units) {
        scan.damaged = true;
        let detail = format!("shard {shard}: {accepted} units were accepted, the ledger has {units}");
        run.find_part(FindingKind::LedgerDamaged, format!("shard {shard}, units"), detail);
    }
    Ok(scan)
}

/// Finds out which of the two went back in time, Redis or the database.
fn compare_epochs_and_numbers(run: &mut AuditRun<'_>, shard: u16, counts: &ShardCount) {
    let (ours, theirs) = (run.sale.epoch, counts.meta.epoch);
    if theirs > ours {
        let detail =
            format!("shard {shard}: redis is in epoch {theirs}, the database in epoch {ours}: the database went back");
        run.find_part(FindingKind::Unbalanced, format!("shard {shard}, epoch"), detail);
        return;
    }
    let series = Series { epoch: ours, shard };
    let highest = run.known.iter().find(|known| known.series == series).map_or(0, |known| known.number);
    if counts.meta.number < highest {
        let detail = format!(
            "shard {shard}: redis accepted {} requests, the database decided number {highest}",
            counts.meta.number
        );
        run.find_part(FindingKind::Orphan, format!("shard {shard}, highest number"), detail);
    }
}

fn add(run: &mut AuditRun<'_>, shard: u16, counts: &ShardCount) {
    let in_step = counts.meta.epoch == run.sale.epoch && counts.meta.state != MetaState::Frozen;
    let counted = &mut run.audit.counted;
    counted.in_redis = true;
    counted.redis_stock += counts.stock;
    counted.granted_in_redis += counts.granted;
    counted.in_transit += counts.in_transit;
    // All shards, or none: the units of a missing shard would look lost.
    counted.bridged = in_step && (counted.bridged || shard == 0);
}
