//! Reading what is too long for one call: the ledger and the outbox of a shard, the relay DLQ, the open failed requests.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::orders::rows::RegisterRows;
use crate::orders::rows::failed_requests::{self, FailedRequest, FailedRequestFilter};
use crate::store::mysql::DbError;
use crate::store::mysql::codes::FailureStatus;
use crate::store::redis::{LocatedEntry, Outbox, ParkedEntry, RedisFault, RelayDlq, RequestLedger};
use std::collections::HashSet;

/// Entries of one call.
const PAGE: usize = 1_000;
/// Ledger records of one call.
const RECORDS: u32 = 1_000;

/// Visits every readable record of a shard's ledger once; HSCAN may bring one twice. Returns the unreadable ones, field and text.
pub(super) async fn each_record(
    ledger: &RequestLedger,
    sale: &SaleId,
    shard: u16,
    mut visit: impl FnMut(RequestId, LedgerRecord),
) -> Result<Vec<(String, String)>, RedisFault> {
    let (mut seen, mut unreadable) = (HashSet::new(), Vec::new());
    let mut cursor = Some("0".to_owned());
    while let Some(at) = cursor {
        let page = ledger.page(sale, shard, &at, RECORDS).await?;
        cursor = page.next;
        unreadable.extend(page.unreadable);
        for (request_id, record) in page.records {
            if seen.insert(request_id) {
                visit(request_id, record);
            }
        }
    }
    Ok(unreadable)
}

/// The outbox of one shard.
pub(super) struct OutboxPages<'c> {
    outbox: &'c Outbox,
    shard: u16,
    next: Option<String>,
}

impl<'c> OutboxPages<'c> {
    /// From an entry id on; `-` is the beginning. Stream ids are milliseconds of Redis' clock.
    pub(crate) fn from(outbox: &'c Outbox, shard: u16, start: &str) -> Self {
        Self { outbox, shard, next: Some(start.to_owned()) }
    }

    /// The next page, which may be empty; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<LocatedEntry>>, RedisFault> {
        let Some(start) = self.next.take() else { return Ok(None) };
        let page = self.outbox.scan(self.shard, &start, PAGE).await?;
        self.next = page.next;
        Ok(Some(page.entries))
    }

    /// Whether the last page was the end.
    pub(crate) const fn ended(&self) -> bool {
        self.next.is_none()
    }
}

/// The relay DLQ of one shard.
pub(super) struct RelayDlqPages<'c> {
    relay_dlq: &'c RelayDlq,
    shard: u16,
    next: Option<String>,
}

impl<'c> RelayDlqPages<'c> {
    pub(crate) fn new(relay_dlq: &'c RelayDlq, shard: u16) -> Self {
        Self { relay_dlq, shard, next: Some("-".to_owned()) }
    }

    /// The next page; `None` at the end. Its entries may be removed before the next one is read.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<ParkedEntry>>, RedisFault> {
        let Some(start) = self.next.take() else { return Ok(None) };
        let page = self.relay_dlq.page(self.shard, &start, PAGE).await?;
        self.next = page.last().filter(|_| page.len() == PAGE).map(|last| format!("({}", last.id));
        Ok(Some(page))
    }

    /// Whether the last page was the end.
    pub(crate) const fn ended(&self) -> bool {
        self.next.is_none()
    }
}

/// The failed requests that are open.
pub(super) struct OpenFailurePages<'c> {
    register: &'c RegisterRows,
    wanted: FailedRequestFilter,
    ended: bool,
}

impl<'c> OpenFailurePages<'c> {
    /// Of one sale, or of all.
    pub(crate) fn new(register: &'c RegisterRows, sale_id: Option<SaleId>) -> Self {
        let wanted = FailedRequestFilter {
            status: Some(FailureStatus::Open),
            sale_id,
            limit: failed_requests::PAGE_MAX,
            ..FailedRequestFilter::default()
        };
        Self { register, wanted, ended: false }
    }

    /// The next page; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<FailedRequest>>, DbError> {
        if self.ended {
            return Ok(None);
        }
        let page = self.register.list(&self.wanted).await?;
        self.wanted.after = page.last().map(|last| last.request_id);
        self.ended = i64::try_from(page.len()) != Ok(failed_requests::PAGE_MAX);
        Ok(Some(page))
    }

    /// Whether the last page was the end.
    pub(crate) const fn ended(&self) -> bool {
        self.ended
    }
}
