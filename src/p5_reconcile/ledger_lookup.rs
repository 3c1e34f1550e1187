//! The order message of a request id, rebuilt from the ledgers in Redis. Reads only.

use super::context::{ReconcileContext, ReconcileError};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::message::{self, OrderMessage};
use std::collections::HashMap;

/// A ledger record and where it was found.
#[derive(Debug, Clone)]
pub(crate) struct LedgerMatch {
    pub sale_id: SaleId,
    pub shard: u16,
    pub record: LedgerRecord,
}

/// Finds the record of a request, in the ledgers of `sale` or, without one, of every released sale.
pub(super) async fn find(
    context: &ReconcileContext,
    request_id: RequestId,
    sale: Option<&SaleId>,
) -> Result<Option<LedgerMatch>, ReconcileError> {
    let sale_ids = match sale {
        Some(sale_id) => vec![sale_id.clone()],
        None => context.rows.giving.sales.released().await?.into_iter().map(|sale| sale.sale_id).collect(),
    };
    for sale_id in sale_ids {
        for shard in 0..context.shards {
            let record = context.redis.ledger.lookup(&sale_id, shard, &[request_id]).await?.pop().flatten();
            if let Some(record) = record {
                return Ok(Some(LedgerMatch { sale_id, shard, record }));
            }
        }
    }
    Ok(None)
}

/// The order messages of these ids; one call for each ledger until all are found.
pub(super) async fn order_messages(
    context: &ReconcileContext,
    request_ids: &[RequestId],
) -> Result<HashMap<RequestId, OrderMessage>, ReconcileError> {
    let (mut found, mut wanted) = (HashMap::new(), request_ids.to_vec());
    if wanted.is_empty() {
        return Ok(found);
    }
    for sale in context.rows.giving.sales.released().await? {
        for shard in 0..context.shards {
            let records = context.redis.ledger.lookup(&sale.sale_id, shard, &wanted).await?;
            for (id, record) in wanted.iter().zip(records) {
                found.extend(record.map(|record| (*id, record.order_message(*id, &sale.sale_id, shard))));
            }
            wanted.retain(|id| !found.contains_key(id));
            if wanted.is_empty() {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// The order message of this id, from the ledgers of `sale` or, without one, of every released sale.
pub(super) async fn order_message(
    context: &ReconcileContext,
    request_id: RequestId,
    sale: Option<&SaleId>,
) -> Result<Option<OrderMessage>, ReconcileError> {
    let found = find(context, request_id, sale).await?;
    Ok(found.map(|found| found.record.order_message(request_id, &found.sale_id, found.shard)))
}

/// The order message as the bytes have it; if they are unreadable, as the ledger has it under the id that came with them: of the
/// sale that came with them, or without one of every released sale.
pub(super) async fn order_message_of(
    context: &ReconcileContext,
    payload: &[u8],
    (request_id, sale): (Option<RequestId>, Option<&SaleId>),
) -> Result<Option<OrderMessage>, ReconcileError> {
    match (message::decode(payload).ok(), request_id) {
        (Some(accepted), _) => Ok(Some(accepted)),
        (None, Some(id)) => order_message(context, id, sale).await,
        (None, None) => Ok(None),
    }
}
