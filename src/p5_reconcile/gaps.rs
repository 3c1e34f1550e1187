//! Who a gap can be (E12): acceptance numbers without an outcome whose requests no ledger, queue or table knows any more.
//!
//! Input: an audit that found gaps; the buyers in Redis, which outlive the ledger. A buyer whose first request has no outcome and
//! no ledger record is the buyer of a gap. Output: a row of the register for each of them, as open with reason GAP, so that a
//! person lands it (`dlq replay`) or gives it up (`dlq give-up`); nothing is decided here. Redis keeps a buyer's first request
//! only, so in sales with more than one purchase a buyer the others stay a count and numbers.
//!
//! A crash at any line leaves some of the rows; the next run writes the others.

use super::audit::{Auditor, SaleAudit, SaleAuditError, SeriesSheet};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::message;
use crate::domain::policy::Quantity;
use crate::domain::request::{Accepted, Purchase};
use crate::domain::snowflake;
use crate::store::mysql::codes::Reporter;
use crate::store::mysql::failed_requests::{self, OpenFailure};
use crate::store::mysql::outcomes;
use serde::Serialize;
use std::collections::HashSet;

/// Buyers read at once.
const PAGE: u32 = 1_000;
/// Suspects named in one audit; the rest is named when these are decided.
const SUSPECTS_MAX: usize = 1_000;

/// A buyer whose request has no outcome and is known by no ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suspect {
    /// The buyer.
    pub user_id: UserId,
    /// The buyer's first request of the sale.
    pub request_id: RequestId,
    /// Units of all the buyer's requests of the sale.
    pub units: u32,
    /// The buyer's shard.
    pub shard: u16,
}

impl Auditor {
    /// Names the buyers of an audit's gaps, as far as Redis remembers them; at most 1,000.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server is away.
    pub async fn suspects(&self, audit: &SaleAudit) -> Result<Vec<Suspect>, SaleAuditError> {
        let mut suspects = Vec::new();
        let newest = audit.series.iter().map(|of| of.epoch).max();
        for of in audit.series.iter().filter(|of| !of.gaps.is_empty() && Some(of.epoch) == newest) {
            let mut seen = HashSet::new();
            let mut cursor = Some("0".to_owned());
            while let Some(at) = cursor.filter(|_| suspects.len() < SUSPECTS_MAX) {
                let (page, next) = self.redis.buyers_page(&audit.sale_id, of.shard, &at, PAGE).await?;
                cursor = next;
                let ids: Vec<RequestId> = page.iter().map(|buyer| buyer.first_request).collect();
                let outcomes = outcomes::outcomes_of(&self.db, &ids).await?;
                let records = self.redis.ledger_lookup(&audit.sale_id, of.shard, &ids).await?;
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

    /// Writes the suspects of an audit into the register. Each gets one of the shard's missing numbers: which of them it was
    /// nobody knows, and nothing depends on it. Only where a buyer's units are those of one request. Returns how many are new.
    pub(super) async fn note_suspects(&self, audit: &SaleAudit, one_per_user: bool) -> Result<usize, SaleAuditError> {
        let suspects = self.suspects(audit).await?;
        let mut noted = 0;
        for of in audit.series.iter().filter(|of| !of.gaps.is_empty()) {
            let mine: Vec<&Suspect> = suspects.iter().filter(|suspect| suspect.shard == of.shard).collect();
            let each_is_one_request = one_per_user || mine.len() as u64 == missing(of);
            if !each_is_one_request {
                continue;
            }
            let numbers = of.gaps.iter().flat_map(|(first, last)| *first..=*last);
            for (suspect, number) in mine.into_iter().zip(numbers) {
                noted += usize::from(self.note_suspect(audit, of, suspect, number).await?);
            }
        }
        Ok(noted)
    }

    async fn note_suspect(
        &self,
        audit: &SaleAudit,
        of: &SeriesSheet,
        suspect: &Suspect,
        number: u64,
    ) -> Result<bool, SaleAuditError> {
        let Some(quantity) = Quantity::new(suspect.units) else { return Ok(false) };
        let purchase = Purchase {
            request_id: suspect.request_id,
            sale_id: audit.sale_id.clone(),
            user_id: suspect.user_id.clone(),
            quantity,
        };
        let accepted_at_ms = snowflake::made_at_ms(suspect.request_id);
        let accepted = Accepted { purchase, shard: of.shard, epoch: of.epoch, number, accepted_at_ms };
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
        Ok(failed_requests::open(&self.db, &failure).await?)
    }
}

fn missing(of: &SeriesSheet) -> u64 {
    of.gaps.iter().map(|(first, last)| last - first + 1).sum()
}
