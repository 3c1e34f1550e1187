//! Everything known about one request, wherever it is. Reads only. A server that does not answer is named, and the others
//! still give what they have.

use super::context::ReconcileContext;
use super::dlq::{self, DlqEntry, DlqSource};
use super::ledger_lookup::{self, LedgerMatch};
use super::pages::OutboxPages;
use crate::domain::ids::RequestId;
use crate::orders::rows::request_records::RequestRecords;
use crate::store::redis::RedisFault;

/// Pages of the outbox searched, from the moment of acceptance on. One script call makes at most a few hundred entries in a
/// millisecond.
const OUTBOX_PAGES_MAX: usize = 20;

/// Everything known about one request.
#[derive(Debug, Default)]
pub struct RequestHistory {
    pub(crate) database: RequestRecords,
    pub(crate) ledger: Option<LedgerMatch>,
    /// Its entry in the outbox, when it was accepted and the broker has not confirmed it yet.
    pub outbox_entry: Option<String>,
    pub(crate) parked: Vec<DlqEntry>,
    /// The places that could not be searched, and why.
    pub(crate) not_asked: Vec<String>,
}

impl RequestHistory {
    /// Whether any place has the request.
    pub(crate) const fn is_known(&self) -> bool {
        let RequestRecords { decided, order, currency: _, failure, payments } = &self.database;
        let in_database = decided.is_some() || order.is_some() || failure.is_some() || !payments.is_empty();
        in_database || self.ledger.is_some() || self.outbox_entry.is_some() || !self.parked.is_empty()
    }
}

/// Searches the database, the ledgers of at most 1,000 sales, the outbox and both DLQs for a request.
pub async fn request_history(context: &ReconcileContext, request_id: RequestId) -> RequestHistory {
    let mut history = RequestHistory::default();
    match context.rows.requests.records_of(request_id).await {
        Ok(records) => history.database = records,
        Err(error) => history.not_asked.push(format!("database: {error}")),
    }
    match ledger_lookup::find(context, request_id, history.database.sale_id()).await {
        Ok(found) => history.ledger = found,
        Err(error) => history.not_asked.push(format!("ledger: {error}")),
    }
    if let Some(found) = &history.ledger
        && history.database.decided.is_none()
    {
        match outbox_entry(context, found, request_id).await {
            Ok(entry) => history.outbox_entry = entry,
            Err(error) => history.not_asked.push(format!("outbox: {error}")),
        }
    }
    for (source, name) in [(DlqSource::Relay, "relay DLQ"), (DlqSource::Mq, "MQ DLQ")] {
        match dlq::list(context, Some(source)).await {
            Ok(listing) => {
                let mine = listing.entries.into_iter().filter(|entry| entry.request_id == Some(request_id));
                history.parked.extend(mine);
            }
            Err(error) => history.not_asked.push(format!("{name}: {error}")),
        }
    }
    history
}

/// Stream ids are milliseconds of Redis' clock, as the record's time is, so the search in a stream begins there.
async fn outbox_entry(
    context: &ReconcileContext,
    found: &LedgerMatch,
    request_id: RequestId,
) -> Result<Option<String>, RedisFault> {
    let mut pages = OutboxPages::from(&context.redis.outbox, found.shard, &found.record.accepted_at_ms.to_string());
    for _ in 0..OUTBOX_PAGES_MAX {
        let Some(page) = pages.next().await? else { break };
        let mut entries = page.into_iter().map(|located| located.entry);
        if let Some(entry) = entries.find(|entry| entry.request_ids().contains(&request_id)) {
            return Ok(Some(entry.id));
        }
    }
    Ok(None)
}
