//! What the judge still wants to know: little of what the servers have, and only after it has seen the rest.
//!
//! Three rounds of questions at most, because each depends on the answers before: settled records that the database has
//! forgotten; the outcomes of all open requests; everything else.

use super::case::SaleCase;
use crate::domain::ids::RequestId;
use crate::faults::left_out;
use crate::p5_reconcile::audit::redis_side::OpenRecord;
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::rows::books::Series;

/// One thing that the judge wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenQuestion {
    /// Settled records of these shards whose numbers the database lacks: they can be persisted again.
    Settled { shards: Vec<u16> },
    /// The outcomes of these requests: a request that was on its way while the sides were read is no false alarm.
    Outcomes(Vec<RequestId>),
    /// Where the requests are that were accepted at this moment of Redis' clock or later.
    Locations { since_ms: i64 },
    /// How old the first outcomes above these numbers are.
    Ages(Vec<(Series, Vec<u64>)>),
    /// The grants by name, in Redis and then in the database.
    Grants,
    /// Both sides of each pair of buckets; with `buckets` the units between them, too.
    Transfers { buckets: bool },
    /// The units that buyers own, against their orders.
    OwnedUnits,
}

/// The questions that are open; none: the case can be decided.
pub(super) fn open_questions(case: &SaleCase<'_>) -> Vec<OpenQuestion> {
    if case.redis.settled.is_none() {
        let shards = with_forgotten(case);
        if !shards.is_empty() {
            return vec![OpenQuestion::Settled { shards }];
        }
    }
    if case.database.decided.is_none() && case.redis.open().next().is_some() {
        return vec![OpenQuestion::Outcomes(case.redis.open().map(|(_, open)| open.request_id).collect())];
    }
    let mut questions = Vec::new();
    if case.elsewhere.locations.is_none() {
        questions.extend(first_leak_ms(case).map(|since_ms| OpenQuestion::Locations { since_ms }));
    }
    if case.database.ages.is_none() {
        let ended = ended_with_gaps(case);
        questions.extend((!ended.is_empty()).then_some(OpenQuestion::Ages(ended)));
    }
    if case.redis.grants.is_none() && case.compares_grants() && case.is_bridged() {
        questions.push(OpenQuestion::Grants);
    }
    if case.redis.transfers.is_none() && case.compares_grants() && case.redis.shards.len() > 1 {
        questions.push(OpenQuestion::Transfers { buckets: case.redis.in_transit() != 0 });
    }
    let sale = case.terms.sale;
    let is_limited = sale.counts_units() || sale.judged_drop().is_some() || sale.line.is_some();
    if is_limited && case.snapshot.books.orders.is_some() && !case.database.owned.is_new {
        questions.push(OpenQuestion::OwnedUnits);
    }
    questions
}

/// Shards whose ledger may have settled records that the database has forgotten.
fn with_forgotten(case: &SaleCase<'_>) -> Vec<u16> {
    let mut shards = Vec::new();
    for (series, counted) in &case.snapshot.series {
        let Some(shard) = case.current(*series) else { continue };
        let number = shard.scan.number;
        let is_lacking = |number| counted.lacks(number) && !case.snapshot.void.has(*series, number);
        let of_shard = case.redis.open().filter(|(shard, _)| *shard == series.shard);
        let open = of_shard.filter(|(_, open)| is_lacking(open.record.number)).count();
        let lacking: u64 =
            counted.missing.iter().map(|(first, last)| (*last).min(number).saturating_sub(first - 1)).sum();
        // Numbers that had no record at the scan before, and got none since, need no search; nor void ones,
        // which have one.
        let gaps = if shard.scan.gap_has_record {
            case.snapshot.void.count(*series, |of| of <= number && counted.lacks(of))
        } else {
            counted.lacking_of(&shard.scan.gaps.runs)
        };
        if lacking > open as u64 + gaps && !left_out!(NumberEquation) {
            shards.push(series.shard);
        }
    }
    // Of a shard without counters nothing is known by numbers.
    shards.extend(case.redis.lost());
    shards
}

/// When the first of the leaks was accepted.
fn first_leak_ms(case: &SaleCase<'_>) -> Option<i64> {
    let decided = case.database.decided.as_ref();
    let is_leak = |shard, open: &OpenRecord| {
        !decided.is_some_and(|decided| decided.contains_key(&open.request_id))
            && !case.elsewhere.parked.ids.contains(&open.request_id)
            && case.is_late(shard, open)
    };
    let leaks = case.redis.open().filter(|(shard, open)| is_leak(*shard, open));
    leaks.map(|(_, open)| open.record.accepted_at_ms).min()
}

/// Series of which the ledger is gone, with the last number of each run of missing ones: their messages may still be on
/// their way.
fn ended_with_gaps(case: &SaleCase<'_>) -> Vec<(Series, Vec<u64>)> {
    if case.terms.window == Window::Now {
        return Vec::new();
    }
    let ended = case.snapshot.series.iter().filter(|(series, _)| case.current(**series).is_none());
    let with_gaps = ended.filter(|(_, counted)| !counted.missing.is_empty());
    with_gaps.map(|(series, of)| (*series, of.missing.iter().map(|(_, last)| *last).collect())).collect()
}
