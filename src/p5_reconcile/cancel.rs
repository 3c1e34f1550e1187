//! Cancelling an order (E8): the database decides, then its units reach Redis as a grant like any other.
//!
//! A crash between the two leaves an unfinished grant; the next run of P5 finishes it.

use super::audit::{Auditor, SaleAuditError};
use crate::domain::ids::RequestId;
use crate::store::mysql::cancels::{self, Cancelled};
use crate::store::mysql::sales;

impl Auditor {
    /// Cancels the order of a request and offers its units again. Returns what was found, and whether Redis has the units;
    /// if not, P5 brings them there.
    ///
    /// # Errors
    /// [`SaleAuditError`] when the database is away; repeating is safe.
    pub async fn cancel_order(
        &self,
        request_id: RequestId,
        reason: &str,
        by: &str,
    ) -> Result<(Cancelled, bool), SaleAuditError> {
        let cancelled = cancels::cancel(&self.db, request_id, reason, by).await?;
        let sale_id = match &cancelled {
            Cancelled::Now(sale_id, _) | Cancelled::Before(sale_id) => sale_id,
            Cancelled::NoOrder => return Ok((cancelled, false)),
        };
        let given = match sales::get(&self.db, sale_id).await? {
            Some(sale) => self.finish_grants(&sale).await,
            None => Ok(0),
        };
        let in_redis = given.inspect_err(|error| {
            tracing::warn!(phase = "p5_reconcile", %request_id, %error, "cancelled; redis gets the units later");
        });
        Ok((cancelled, in_redis.is_ok()))
    }
}
