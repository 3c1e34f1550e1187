//! The database's side of an audit: what became of every number and every unit that Redis gave, and what is wrong.

use super::finding::FindingKind;
use super::numbers::{self, UndecidedOfSeries};
use super::options::AuditMemory;
use super::outcome_counts::{SeriesCounted, SeriesWanted};
use super::result::{OpenRequest, SaleAudit};
use super::run::AuditRun;
use super::stage::AuditStage;
use super::void_numbers::{self, VoidNumbers};
use super::{grants, ledger_scan, locate, parked, purchases, totals, transit};
use crate::domain::ids::RequestId;
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::faults::{left_out, slow_audit};
use crate::orders::rows::outcomes::{self, RequestOutcome};
use crate::p5_reconcile::context::ReconcileError;
use crate::p5_reconcile::rows::books::Series;
use std::collections::{BTreeMap, HashMap};

/// Reads the DLQs, then the database, and completes the audit.
pub(super) async fn decide(mut run: AuditRun<'_>, memory: &mut AuditMemory) -> Result<SaleAudit, ReconcileError> {
    let counted = &mut memory.outcomes;
    let (context, sale_id) = (run.context, &run.sale.sale_id);
    let parked = match run.open.is_empty() {
        true => parked::ParkedRequests { unseen_count: Some(0), ..Default::default() },
        false => {
            context.stage.send_replace(AuditStage::DeadLetters);
            parked::parked_requests(context, sale_id, run.options.mq_dlq).await?
        }
    };
    run.audit.mq_dlq_unseen_count = parked.unseen_count.unwrap_or(0);
    let wanted = wanted(&run);
    context.stage.send_replace(AuditStage::Outcomes);
    slow_audit().await;
    let Some((books, series)) = counted.read(&context.db, sale_id, &wanted).await? else { return Ok(run.audit) };
    if books.epoch != run.sale.epoch {
        return Err(ReconcileError::Moved);
    }
    let series: BTreeMap<Series, SeriesCounted> = wanted.iter().map(|wanted| wanted.series).zip(series).collect();
    let void = VoidNumbers::of(&books);
    add_forgotten(&mut run, &series, &void).await?;
    let open_ids: Vec<RequestId> = run.open.iter().map(|open| open.request_id).collect();
    context.stage.send_replace(AuditStage::Undecided { count: open_ids.len() });
    let decided = outcomes::outcomes_of(&context.db, &open_ids).await?;
    for open in &mut run.open {
        open.parked = parked.ids.contains(&open.request_id);
    }
    let undecided = judge_open(&mut run, &series, &decided, &void);
    report_leaks(&mut run, parked.unseen_count).await;
    numbers::compare(&mut run, &series, &books, &undecided).await?;
    for (shard, gaps) in std::mem::take(&mut run.gaps) {
        memory.scans.remember_gaps(shard, gaps);
    }
    run.orphaned.iter().for_each(|shard| memory.scans.doubt(*shard));
    collect_old(&mut run, &series, &void);
    totals::balance(&mut run, &books, &series, counted.orders_beside_outcomes());
    if books.grants_known && !left_out!(UnitBridge) {
        grants::compare(&mut run).await?;
        transit::compare(&mut run).await?;
    }
    purchases::compare(&mut run, books.orders.is_some(), &mut memory.purchases).await?;
    Ok(run.audit)
}

/// Every known series, up to its last number.
fn wanted(run: &AuditRun<'_>) -> Vec<SeriesWanted> {
    let mut wanted: BTreeMap<Series, u64> = run.known.iter().map(|known| (known.series, known.number)).collect();
    for (shard, read) in &run.shards {
        if read.counts.meta.epoch == run.sale.epoch {
            wanted.insert(Series { epoch: run.sale.epoch, shard: *shard }, read.counts.meta.number);
        }
    }
    let landed = |series| run.known.iter().find(|known| known.series == series).map_or(0, |known| known.number);
    let want = |(series, to)| SeriesWanted { series, to, landed: landed(series), above: run.current(series).is_some() };
    wanted.into_iter().map(want).collect()
}

/// Adds the settled records whose numbers the database does not have: they can be persisted again.
async fn add_forgotten(
    run: &mut AuditRun<'_>,
    series: &BTreeMap<Series, SeriesCounted>,
    void: &VoidNumbers,
) -> Result<(), ReconcileError> {
    let mut found = Vec::new();
    for (series, counted) in series {
        let Some(shard) = run.current(*series) else { continue };
        let number = shard.scan.number;
        let of_shard = run.open.iter().filter(|open| open.shard == series.shard);
        let is_lacking =
            |open: &&OpenRequest| counted.lacks(open.record.number) && !void.has(*series, open.record.number);
        let open = of_shard.filter(is_lacking).count();
        let lacking: u64 =
            counted.missing.iter().map(|(first, last)| (*last).min(number).saturating_sub(first - 1)).sum();
        // Numbers that had no record at the scan before, and got none since, need not be looked for; nor void ones, which have one.
        let gaps = if shard.scan.gap_has_record {
            void.count(*series, |of| of <= number && counted.lacks(of))
        } else {
            counted.lacking_of(&shard.scan.gaps.runs)
        };
        if lacking > open as u64 + gaps && !left_out!(NumberEquation) {
            let (ledger, sale) = (&run.context.redis.ledger, &run.sale.sale_id);
            let reader = ledger_scan::LedgerReader { ledger, sale, shard: series.shard, now_ms: shard.now_ms };
            let lacks = |number| counted.lacks(number) && !void.has(*series, number);
            found.extend(reader.settled(series.epoch, lacks).await?);
        }
    }
    // Without its counters a shard's settled records are looked at by number alone: only those are held that the database lacks.
    for (shard, now_ms) in &run.lost {
        let (ledger, sale) = (&run.context.redis.ledger, &run.sale.sale_id);
        let reader = ledger_scan::LedgerReader { ledger, sale, shard: *shard, now_ms: *now_ms };
        let wanted = |record: &LedgerRecord| {
            let counted = series.get(&Series { epoch: record.epoch, shard: *shard });
            record.state != LedgerState::Queued && counted.is_none_or(|counted| counted.is_without(record.number))
        };
        found.extend(reader.without_counters(wanted).await?);
    }
    run.open.append(&mut found);
    Ok(())
}

/// Sorts the open requests: by number and in the snapshot, so that units are counted once; by id and later, so that a request
/// that was on its way while this audit read is no false alarm. Returns the undecided ones of each series, also of a shard whose
/// counters are lost: its ledger knows them, and no sum of Redis counts their units.
fn judge_open(
    run: &mut AuditRun<'_>,
    series: &BTreeMap<Series, SeriesCounted>,
    decided: &HashMap<RequestId, RequestOutcome>,
    void: &VoidNumbers,
) -> BTreeMap<Series, UndecidedOfSeries> {
    let mut undecided: BTreeMap<Series, UndecidedOfSeries> = BTreeMap::new();
    for open in std::mem::take(&mut run.open) {
        let units = i64::from(open.record.quantity.get());
        let of = Series { epoch: open.record.epoch, shard: open.shard };
        let lacking = series.get(&of).is_some_and(|counted| counted.lacks(open.record.number))
            // A number that was closed as nobody's is a gap; its request is decided.
            && !void.has(of, open.record.number);
        if lacking {
            let of_series = undecided.entry(of).or_default();
            of_series.numbers.insert(open.record.number);
            of_series.units += units;
        }
        let decided = decided.get(&open.request_id);
        let overdue = decided.is_none() && open.age_ms > run.options.window.limit_ms();
        if lacking && run.current(of).is_some() {
            let counted = &mut run.audit.counted;
            let term = match (open.parked, overdue) {
                (true, _) if decided.is_none() => &mut counted.parked,
                (_, true) => &mut counted.leaked,
                (_, false) => &mut counted.in_flight,
            };
            *term += units;
        }
        if let Some(decided) = decided {
            void_numbers::note_decided(run, open, decided, lacking);
            continue;
        }
        run.audit.oldest_open_ms = run.audit.oldest_open_ms.max(open.age_ms);
        if overdue {
            run.audit.overdue.push(open);
        }
    }
    undecided
}

/// Collects old records whose numbers have their outcome, or are nobody's: they may be trimmed.
fn collect_old(run: &mut AuditRun<'_>, series: &BTreeMap<Series, SeriesCounted>, void: &VoidNumbers) {
    for (shard, read) in &run.shards {
        let settled = read.scan.old.iter().filter(|(_, record)| {
            let of = Series { epoch: record.epoch, shard: *shard };
            let decided = series.get(&of).is_some_and(|counted| !counted.lacks(record.number));
            // Of two requests with the same number the loser has no number of its own.
            decided || record.number == 0 || void.has(of, record.number)
        });
        run.audit.old.insert(*shard, settled.map(|(id, _)| *id).collect());
    }
}

/// The findings of the leaks, with where each request was found.
async fn report_leaks(run: &mut AuditRun<'_>, unseen_count: Option<u64>) {
    let overdue = std::mem::take(&mut run.audit.overdue);
    let leaks = || overdue.iter().filter(|open| !open.parked);
    if let Some(since_ms) = leaks().map(|open| open.record.accepted_at_ms).min() {
        let locations = locate::locate(run.context, since_ms, unseen_count == Some(0)).await;
        let unseen = match unseen_count {
            None => "; the MQ DLQ could not be read".to_owned(),
            Some(0) => String::new(),
            Some(unseen) => format!("; {unseen} messages of the MQ DLQ were not read"),
        };
        for open in leaks() {
            let (age_s, number) = (open.age_ms / 1000, open.record.number);
            let location = locations.of(open.request_id);
            let was = if open.record.state == LedgerState::Queued { "" } else { "settled once, " };
            let detail =
                format!("{was}accepted {age_s} s ago as number {number} (shard {}), {location}{unseen}", open.shard);
            run.find(FindingKind::Leak, Some(open.request_id), detail);
        }
    }
    run.audit.overdue = overdue;
}
