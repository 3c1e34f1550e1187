//! The judge: terms and three sides (Redis, database, elsewhere) in, an audit out. It reads no server and no clock; what it still wants
//! to know it returns as questions, and is called again with the answers in the sides.
//!
//! Order of the files: `case` is what `questions` and every part read; then `shards`, `open`, `numbers` (with `runs`), `totals`, `grants`,
//! `transfers`, `owned_units`, each for one part of the verdict, in the order in which findings are listed.

mod case;
mod grants;
mod numbers;
mod open;
mod owned_units;
mod questions;
mod runs;
mod shards;
#[cfg(test)]
mod tests;
mod totals;
mod transfers;

pub(super) use case::AuditTerms;
pub(super) use questions::OpenQuestion;

use super::database_side::DatabaseSide;
use super::elsewhere::Elsewhere;
use super::finding::FoundSoFar;
use super::redis_side::{KnownGaps, RedisSide};
use super::result::SaleAudit;
use case::SaleCase;

/// What the judge says.
#[derive(Debug)]
pub(super) enum Judgement {
    /// It wants to know these things first.
    Asks(Vec<OpenQuestion>),
    /// The case is decided.
    Decided(Box<JudgedSale>),
    /// The sides are of different moments: everything has to be read again.
    ReadAgain,
}

/// The audit of a sale, and what the next one may remember.
#[derive(Debug)]
pub(super) struct JudgedSale {
    pub audit: SaleAudit,
    /// The gaps of each shard whose ledger was scanned.
    pub gaps: Vec<(u16, KnownGaps)>,
    /// Shards whose ledger has a finding: it is scanned again.
    pub shards_to_rescan: Vec<u16>,
}

/// Judges a sale by what was read of it.
pub(super) fn judge(
    terms: &AuditTerms<'_>,
    redis: &RedisSide,
    database: &DatabaseSide,
    elsewhere: &Elsewhere,
) -> Judgement {
    let Some(snapshot) = &database.snapshot else {
        return Judgement::Decided(Box::new(of_unknown_sale(terms, redis, database, elsewhere)));
    };
    if snapshot.books.epoch != terms.sale.epoch {
        return Judgement::ReadAgain;
    }
    let case = SaleCase { terms, redis, database, elsewhere, snapshot };
    let questions = questions::open_questions(&case);
    if !questions.is_empty() {
        return Judgement::Asks(questions);
    }
    decide(&case).map_or(Judgement::ReadAgain, |judged| Judgement::Decided(Box::new(judged)))
}

/// Decides a case that has no open question. `None`: the sides are of different moments.
fn decide(case: &SaleCase<'_>) -> Option<JudgedSale> {
    let SaleCase { terms, redis, database, elsewhere, .. } = *case;
    if grants::have_left(case) {
        return None;
    }
    let mut found = FoundSoFar::new(terms.findings_max);
    let mut shards_to_rescan = shards::report(terms, redis, &database.before, &mut found);
    let open = open::sort(case, &mut found);
    open::report_leaks(case, &open.overdue, &mut found);
    let numbers = numbers::compare(case, &open.undecided, &mut found)?;
    let sheet = totals::sheet(case, &open, &numbers);
    let equations = totals::report(&sheet, &mut found);
    grants::compare(case, &sheet, &mut found);
    let transfers = redis.transfers.as_ref();
    let sells_twice = transfers.is_some_and(|side| transfers::report(side, terms.sale.epoch, &mut found));
    owned_units::report(terms.sale, &database.owned.differ, &mut found);
    owned_units::report_entries(&database.owned.entries, &mut found);
    shards_to_rescan.extend(&numbers.orphaned);
    let audit = SaleAudit {
        examined_count: examined_count(redis),
        counted: sheet,
        series: numbers.series,
        equations,
        oldest_open_ms: open.oldest_ms,
        mq_dlq_unseen_count: elsewhere.parked.unseen_count.unwrap_or(0),
        sells_twice,
        void: open.void,
        overdue: open.overdue,
        unmarked: open.unmarked,
        old: open::old_records(case),
        findings: found.list,
        findings_left_out_count: found.left_out_count,
        ..SaleAudit::new(terms.sale.sale_id.clone())
    };
    Some(JudgedSale { audit, gaps: numbers.known, shards_to_rescan })
}

/// The audit of a sale that the database does not have (no snapshot): what Redis says by itself.
fn of_unknown_sale(
    terms: &AuditTerms<'_>,
    redis: &RedisSide,
    database: &DatabaseSide,
    elsewhere: &Elsewhere,
) -> JudgedSale {
    let mut found = FoundSoFar::new(terms.findings_max);
    let shards_to_rescan = shards::report(terms, redis, &database.before, &mut found);
    let audit = SaleAudit {
        examined_count: examined_count(redis),
        counted: totals::sheet_of_redis(redis, terms.sale.epoch),
        mq_dlq_unseen_count: elsewhere.parked.unseen_count.unwrap_or(0),
        findings: found.list,
        findings_left_out_count: found.left_out_count,
        ..SaleAudit::new(terms.sale.sale_id.clone())
    };
    JudgedSale { audit, gaps: Vec::new(), shards_to_rescan }
}

fn examined_count(redis: &RedisSide) -> u64 {
    redis.counted().map(|(_, counted)| counted.scan.count).sum()
}
