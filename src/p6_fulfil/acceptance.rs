//! Whether a request that has no order was accepted: then its order is still to be written, and what is asked of it has to wait.
//!
//! Input: a request id. Output: its order is to come, it failed, or no server knows it. The ledgers are read before the database: an
//! order that lands in between is found there. That no server knows a request is said only when every ledger of a sale was read and is
//! whole, but for closed sales of which nothing can come any more; a server that does not answer is an error, never an answer. Reads
//! only, a crash leaves nothing.

use super::context::FulfilContext;
use crate::domain::ids::RequestId;
use crate::domain::outcome::Outcome;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::orders::rows::request_records::RequestRecords;
use crate::runtime::now_ms;
use crate::store::mysql::DbError;
use crate::store::redis::RedisFault;
use futures::StreamExt;
use std::time::Duration;
use tokio::time::timeout;

/// Longest search of all ledgers. A shop's backend waits for it.
const DEADLINE: Duration = Duration::from_secs(5);
/// Ledgers read at once.
const AT_ONCE: usize = 32;
/// So long after the end of a closed sale, or after its last outcome, nothing of it is on its way: a message that still circles is a
/// dead letter by then, which the database knows. Milliseconds.
const ON_THE_WAY_MAX_MS: i64 = 7 * 86_400_000;

/// What is known of a request without an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// It was accepted, and its order is not written yet, or was written meanwhile.
    ToCome,
    /// It was accepted and failed: it never becomes an order.
    Failed,
    /// No server knows it.
    Nowhere,
}

/// Why nothing is decided about a request without an order. Nothing was recorded, and repeating is safe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoOrderYet {
    /// Its order is to come.
    #[error(
        "request {0} is accepted, and its order is not written yet; nothing was recorded, repeat it in a few seconds"
    )]
    ToCome(RequestId),
    /// A server that would know it did not say.
    #[error("whether request {0} is accepted cannot be read right now ({1}); nothing was recorded, repeat it")]
    Unread(RequestId, String),
}

/// Why a ledger does not say that it has no such request.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("the ledger: {0}")]
    Redis(#[from] RedisFault),
    #[error(transparent)]
    Database(#[from] DbError),
    #[error("the ledger of sale {0} is not whole")]
    NotWhole(String),
    #[error("too few replicas have the ledger of sale {0}")]
    NotReplicated(String),
    #[error("the ledgers were not read within {} s", DEADLINE.as_secs())]
    Slow,
}

/// What is known of a request that has no order.
///
/// # Errors
/// [`NoOrderYet::Unread`] when a server did not answer that would know the request.
pub(super) async fn acceptance(context: &FulfilContext, request_id: RequestId) -> Result<Acceptance, NoOrderYet> {
    let unread = |why: Unread| NoOrderYet::Unread(request_id, why.to_string());
    let in_ledger = timeout(DEADLINE, in_a_ledger(context, request_id)).await.unwrap_or(Err(Unread::Slow));
    let records = context.requests.records_of(request_id).await.map_err(|error| unread(error.into()))?;
    match in_database(&records) {
        Some(known) => Ok(known),
        None => {
            in_ledger.map(|is_there| if is_there { Acceptance::ToCome } else { Acceptance::Nowhere }).map_err(unread)
        }
    }
}

/// What the database says. A failure that is still open waits for P5 or a person.
const fn in_database(records: &RequestRecords) -> Option<Acceptance> {
    let RequestRecords { decided, order, currency: _, failure, payments: _ } = records;
    match decided {
        Some(decided) => match decided.outcome {
            Outcome::Ordered => Some(Acceptance::ToCome),
            Outcome::Failed(_) => Some(Acceptance::Failed),
        },
        None if order.is_some() || failure.is_some() => Some(Acceptance::ToCome),
        None => None,
    }
}

/// Whether a ledger of any sale has the request.
async fn in_a_ledger(context: &FulfilContext, request_id: RequestId) -> Result<bool, Unread> {
    let sales = context.rows.sales.released().await?;
    let ledgers = sales.iter().flat_map(|sale| (0..context.shards).map(move |shard| (sale, shard)));
    let reads = ledgers.map(|(sale, shard)| has(context, sale, shard, request_id));
    let mut answers = futures::stream::iter(reads).buffer_unordered(AT_ONCE);
    let mut unread = None;
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(why) => unread = Some(why),
        }
    }
    unread.map_or(Ok(false), Err)
}

/// Whether this ledger has the request.
async fn has(context: &FulfilContext, sale: &Sale, shard: u16, request_id: RequestId) -> Result<bool, Unread> {
    let id = &sale.sale_id;
    let (records, replicated) = context.ledger.lookup_replicated(id, shard, &[request_id]).await?;
    if records.iter().any(Option::is_some) {
        return Ok(true);
    }
    if !replicated {
        return Err(Unread::NotReplicated(id.to_string()));
    }
    let is_known = match sale.status {
        SaleStatus::Draft => true,
        SaleStatus::Warmed | SaleStatus::Paused => is_whole(context, sale, shard).await?,
        SaleStatus::Closed => is_over(context, sale, shard).await? || is_whole(context, sale, shard).await?,
    };
    if is_known { Ok(false) } else { Err(Unread::NotWhole(id.to_string())) }
}

/// Whether no order of a closed sale can come that this ledger does not have: P5 has audited it and removed its keys, or it is over for
/// long. Of a series without any outcome nothing shows that Redis has lost it.
async fn is_over(context: &FulfilContext, sale: &Sale, shard: u16) -> Result<bool, Unread> {
    let (id, over_ms) = (&sale.sale_id, now_ms() - ON_THE_WAY_MAX_MS);
    if sale.ends_at_ms < over_ms {
        return Ok(true);
    }
    let is_gone = context.redis.sale_keys.meta(id, shard).await?.is_none();
    if is_gone && context.requests.has_end(id, shard, sale.epoch).await? {
        return Ok(true);
    }
    let newest_ms = context.requests.newest_ms(id, shard, sale.epoch).await?;
    Ok(newest_ms.map_or(is_gone, |newest_ms| newest_ms < over_ms))
}

/// Whether Redis has all keys of the sale, and has not gone back in time behind the database.
async fn is_whole(context: &FulfilContext, sale: &Sale, shard: u16) -> Result<bool, Unread> {
    let highest = context.rows.sales.highest_number(&sale.sale_id, shard, sale.epoch).await?;
    let keys = &context.redis.sale_keys;
    let Some(meta) = keys.meta(&sale.sale_id, shard).await? else { return Ok(false) };
    let is_current = meta.state != MetaState::Frozen && meta.epoch == sale.epoch && meta.number >= highest;
    Ok(is_current && keys.are_complete(&sale.sale_id, shard).await?)
}
