//! The buyers that a gap can belong to (E12): acceptance numbers without an outcome whose requests are in no ledger,
//! queue or table.
//!
//! Input: an audit that found gaps; the buyers in Redis, which outlive the ledger. A buyer whose first request has no
//! outcome and no ledger record is a suspect. Output: an open failed request with reason GAP for each of them, so that
//! a person replays it (`dlq replay`) or gives it up (`dlq give-up`); nothing is decided here. Redis keeps a buyer's
//! first request only: in sales with more than one purchase a buyer the later requests stay numbers without a name.
//!
//! A number alone does not say which buyer was promised a unit, and Redis' buyers are all that is left of it: so the names are worth a
//! walk over them, once for each gap (`AuditMemory::named_gaps`).
//!
//! A crash at any line leaves some of the rows; the next run writes the others.

use super::result::{SaleAudit, SeriesAudit, numbers_in};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::message::{self, OrderMessage};
use crate::domain::policy::{LimitBy, PurchasePolicy, Quantity};
use crate::domain::request::Purchase;
use crate::domain::sale::Sale;
use crate::domain::snowflake;
use crate::orders::rows::failed_requests::OpenFailure;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::store::mysql::codes::Reporter;
use serde::Serialize;
use std::collections::HashSet;

/// Buyers read with one call.
const PAGE: u32 = 1_000;
/// Suspects of one audit; the next ones are named when these are decided.
const SUSPECTS_MAX: usize = 1_000;

/// A buyer whose request has no outcome and no ledger record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct Suspect {
    /// The buyer, as Redis has it: the person where the sale limits by person.
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// The buyer's first request of the sale.
    #[schema(value_type = String)]
    pub request_id: RequestId,
    /// Units of all the buyer's requests of the sale.
    pub units: u32,
    /// The buyer's home shard.
    pub shard: u16,
}

/// Names the buyers of an audit's gaps, as far as Redis has them; at most 1,000.
pub(crate) async fn gap_suspects(
    context: &ReconcileContext,
    audit: &SaleAudit,
) -> Result<Vec<Suspect>, ReconcileError> {
    let mut suspects = Vec::new();
    let newest = audit.series.iter().map(|of| of.epoch).max();
    for of in audit.series.iter().filter(|of| !of.gaps.is_empty() && Some(of.epoch) == newest) {
        let mut seen = HashSet::new();
        let mut cursor = Some("0".to_owned());
        while let Some(at) = cursor.filter(|_| suspects.len() < SUSPECTS_MAX) {
            let (page, next) = context.redis.buyers.page(&audit.sale_id, of.shard, &at, PAGE).await?;
            cursor = next;
            let ids: Vec<RequestId> = page.iter().map(|buyer| buyer.first_request).collect();
            let outcomes = context.rows.requests.outcomes_of(&ids).await?;
            let records = context.redis.ledger.lookup(&audit.sale_id, of.shard, &ids).await?;
            for (buyer, record) in page.into_iter().zip(records) {
                let lost = record.is_none() && !outcomes.contains_key(&buyer.first_request);
                if lost && seen.insert(buyer.first_request) {
                    let (user_id, request_id, units) = (buyer.user_id, buyer.first_request, buyer.units);
                    suspects.push(Suspect { user_id, request_id, units, shard: of.shard });
                }
            }
        }
    }
    suspects.truncate(SUSPECTS_MAX);
    Ok(suspects)
}

/// Writes the suspects of an audit into the failed requests. Each gets one of the shard's missing numbers; it may be
/// another suspect's, and nothing depends on it. Only where a buyer's units are those of one request. Returns how many
/// rows are new.
pub(in crate::p5_reconcile) async fn record_suspects(
    context: &ReconcileContext,
    audit: &SaleAudit,
    sale: &Sale,
) -> Result<usize, ReconcileError> {
    let suspects = gap_suspects(context, audit).await?;
    let mut recorded = 0;
    for of in audit.series.iter().filter(|of| !of.gaps.is_empty()) {
        let mine: Vec<&Suspect> = suspects.iter().filter(|suspect| suspect.shard == of.shard).collect();
        let each_is_one_request =
            sale.policy == PurchasePolicy::OnePerUser || mine.len() as u64 == numbers_in(&of.gaps);
        if !each_is_one_request {
            continue;
        }
        let numbers = of.gaps.iter().flat_map(|(first, last)| *first..=*last);
        for (suspect, number) in mine.into_iter().zip(numbers) {
            recorded += usize::from(record(context, (audit, sale.limit_by), of, suspect, number).await?);
        }
    }
    Ok(recorded)
}

async fn record(
    context: &ReconcileContext,
    (audit, limit_by): (&SaleAudit, LimitBy),
    of: &SeriesAudit,
    suspect: &Suspect,
    number: u64,
) -> Result<bool, ReconcileError> {
    let Some(quantity) = Quantity::new(suspect.units) else { return Ok(false) };
    let purchase = Purchase {
        request_id: suspect.request_id,
        sale_id: audit.sale_id.clone(),
        user_id: suspect.user_id.clone(),
        // Which account of the person it was, Redis has not noted.
        person: (limit_by == LimitBy::Person).then(|| suspect.user_id.clone()),
        quantity,
    };
    let accepted_at_ms = snowflake::made_at_ms(suspect.request_id);
    let accepted = OrderMessage { purchase, shard: of.shard, epoch: of.epoch, number, accepted_at_ms };
    let detail = format!(
        "accepted in epoch {} as one of the numbers {:?} of shard {}; the database has lost it, and only the buyer is still known",
        of.epoch, of.gaps, of.shard
    );
    let payload = message::encode(&accepted);
    let failure = OpenFailure {
        accepted: &accepted,
        reporter: Reporter::Audit,
        reason: "GAP",
        detail: &detail,
        payload: payload.as_bytes(),
    };
    Ok(context.rows.register.open(&failure).await?)
}
