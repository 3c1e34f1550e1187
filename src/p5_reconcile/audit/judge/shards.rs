//! What each shard says by itself, and against what the database knew before Redis was read.

use super::case::AuditTerms;
use crate::domain::ids::RequestId;
use crate::domain::sale::SaleStatus;
use crate::p5_reconcile::audit::database_side::DatabaseBefore;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};
use crate::p5_reconcile::audit::redis_side::{CountedShard, RedisSide, ShardSide};
use crate::p5_reconcile::rows::books::Series;

/// Reports what is lost or damaged in Redis, and which of the two servers went back in time. Returns the shards whose
/// ledger has a finding.
pub(super) fn report(
    terms: &AuditTerms<'_>,
    redis: &RedisSide,
    before: &DatabaseBefore,
    found: &mut FoundSoFar,
) -> Vec<u16> {
    let mut damaged = Vec::new();
    for (shard, side) in (0..).zip(&redis.shards) {
        match side {
            ShardSide::Absent => {}
            ShardSide::Lost(_) => {
                let detail = format!(
                    "shard {shard}: the sale was warmed but redis has no keys of it; it stays closed until it is rebuilt"
                );
                found.add_part(FindingKind::KeysLost, format!("shard {shard}"), detail);
            }
            ShardSide::Counted(counted) => {
                // A script that misses one of the five keys sells nothing; the sums would only show a difference.
                if !counted.complete && terms.sale.status != SaleStatus::Draft {
                    let detail = format!(
                        "shard {shard}: one of the sale's keys is missing or of another kind; it stays closed until it is rebuilt"
                    );
                    found.add_part(FindingKind::KeysLost, format!("shard {shard}"), detail);
                }
                compare_epochs_and_numbers(counted, Series { epoch: terms.sale.epoch, shard }, before, found);
                if counted.fresh && report_ledger(shard, counted, found) {
                    damaged.push(shard);
                }
            }
        }
    }
    damaged
}

/// Finds out which of the two went back in time, Redis or the database.
fn compare_epochs_and_numbers(counted: &CountedShard, series: Series, before: &DatabaseBefore, found: &mut FoundSoFar) {
    let (Series { epoch: ours, shard }, theirs) = (series, counted.counts.meta.epoch);
    if theirs > ours {
        let detail =
            format!("shard {shard}: redis is in epoch {theirs}, the database in epoch {ours}: the database went back");
        found.add_part(FindingKind::Unbalanced, format!("shard {shard}, epoch"), detail);
        return;
    }
    let highest = before.known.iter().find(|known| known.series == series).map_or(0, |known| known.number);
    let number = counted.counts.meta.number;
    if number < highest {
        let detail = format!("shard {shard}: redis accepted {number} requests, the database decided number {highest}");
        found.add_part(FindingKind::Orphan, format!("shard {shard}, highest number"), detail);
    }
}

/// Compares a ledger that was just scanned with Redis' own counters. Returns whether something is wrong.
fn report_ledger(shard: u16, counted: &CountedShard, found: &mut FoundSoFar) -> bool {
    let kind = FindingKind::LedgerDamaged;
    for (field, text) in &counted.unreadable.records {
        let detail = format!("shard {shard}: record {text:?} of {field:?} is unreadable");
        match RequestId::parse(field) {
            Ok(request_id) => found.add(kind, Some(request_id), detail),
            Err(_no_id) => found.add_part(kind, format!("shard {shard}, field {field}"), detail),
        }
    }
    found.left_out_count += counted.unreadable.more;
    let mut damaged = !counted.unreadable.records.is_empty();
    let (number, known) = (counted.counts.meta.number, counted.known_count());
    if known != number {
        damaged = true;
        let detail = format!("shard {shard}: {number} requests were accepted, the ledger has {known}");
        found.add_part(kind, format!("shard {shard}, requests"), detail);
    }
    let units = counted.known_units();
    if let Some(accepted) = counted.counts.accepted.filter(|accepted| known == number && *accepted != units) {
        damaged = true;
        let detail = format!("shard {shard}: {accepted} units were accepted, the ledger has {units}");
        found.add_part(kind, format!("shard {shard}, units"), detail);
    }
    damaged
}
