//! The ledger hash: look-ups by request id, pages for the audit, outcomes.

use super::connection::{DoneWhen, RedisFault, integer, list, optional_text, text};
use super::keyspace::Keyspace;
use super::scripts::{Arguments, SETTLE, TRIM};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::{LedgerError, LedgerRecord, LedgerState, SettledUpTo};
use crate::domain::outcome::Outcome;
use crate::trace_points::trace_point;
use fred::types::Value;
use std::sync::Arc;

/// Request ids of one script call; bounds how long Redis is busy.
const SETTLE_MAX: usize = 500;

/// One page of a ledger scan. A record can come twice (HSCAN); ids are the caller's to deduplicate.
#[derive(Debug, Default)]
pub struct LedgerPage {
    /// Records that could be read.
    pub records: Vec<(RequestId, LedgerRecord)>,
    /// Fields that are not records: field and text, for a finding.
    pub unreadable: Vec<(String, String)>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

/// The progress of a request, by its ledger record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progressed {
    /// Accepted, and not landed as far as the ledger knows.
    Queued,
    /// Its outcome is in the database.
    Landed,
    /// The ledger has no readable record.
    Unmarked,
}

/// The ledger of a sale on a shard: request id → record.
#[derive(Clone)]
pub struct RequestLedger {
    pub(super) redis: Arc<Keyspace>,
}

impl RequestLedger {
    /// The records of some requests, in their order; `None` where the ledger has none.
    pub async fn lookup(
        &self,
        sale: &SaleId,
        shard: u16,
        ids: &[RequestId],
    ) -> Result<Vec<Option<LedgerRecord>>, RedisFault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        records(self.redis.command("HMGET", 0, self.of_ids(sale, shard, ids)).await?)
    }

    /// Like [`RequestLedger::lookup`], for the crowd that asks: over a connection on which no purchase waits.
    pub(crate) async fn lookup_for_poll(
        &self,
        sale: &SaleId,
        shard: u16,
        ids: &[RequestId],
    ) -> Result<Vec<Option<LedgerRecord>>, RedisFault> {
        let args = self.of_ids(sale, shard, ids);
        records(self.redis.connection.send(DoneWhen::Polled, "HMGET", 0, args).await?.answer)
    }

    /// Like [`RequestLedger::lookup`], for an answer that promises something: with it comes whether enough replicas have
    /// these records (`redis.wait_replicas`; true without).
    pub(crate) async fn lookup_replicated(
        &self,
        sale: &SaleId,
        shard: u16,
        ids: &[RequestId],
    ) -> Result<(Vec<Option<LedgerRecord>>, bool), RedisFault> {
        if ids.is_empty() {
            return Ok((Vec::new(), true));
        }
        let promised = self.redis.replicated("HMGET", 0, self.of_ids(sale, shard, ids)).await?;
        Ok((records(promised.answer)?, promised.replicated))
    }

    /// Like [`RequestLedger::lookup`], as enough replicas have it: a fault when too few do. For polls: over a connection on which no
    /// purchase waits.
    pub(crate) async fn lookup_polled(
        &self,
        sale: &SaleId,
        shard: u16,
        ids: &[RequestId],
    ) -> Result<Vec<Option<LedgerRecord>>, RedisFault> {
        let args = self.of_ids(sale, shard, ids);
        records(self.redis.connection.send(DoneWhen::PolledReplicated, "HMGET", 0, args).await?.or_too_few()?)
    }

    fn of_ids(&self, sale: &SaleId, shard: u16, ids: &[RequestId]) -> Vec<Value> {
        let mut args = Arguments::with_capacity(1 + ids.len());
        args.push(self.redis.keys.ledger(shard, sale));
        ids.iter().for_each(|id| args.push(id));
        args.into_values()
    }

    /// One page of the ledger, about `count` records from `cursor` (`"0"` begins).
    pub async fn page(&self, sale: &SaleId, shard: u16, cursor: &str, count: u32) -> Result<LedgerPage, RedisFault> {
        let args =
            vec![text(self.redis.keys.ledger(shard, sale)), text(cursor), text("COUNT"), text(count.to_string())];
        let mut reply = list(self.redis.command("HSCAN", 0, args).await?)?.into_iter();
        let next = reply.next().and_then(|cursor| optional_text(&cursor)).unwrap_or_default();
        let fields = list(reply.next().unwrap_or(Value::Null))?;
        let mut page = LedgerPage { next: (next != "0").then_some(next), ..LedgerPage::default() };
        for pair in fields.chunks_exact(2) {
            let (field, record) = (pair[0].as_string().unwrap_or_default(), pair[1].as_string().unwrap_or_default());
            match (RequestId::parse(&field), LedgerRecord::parse(&record)) {
                (Ok(id), Ok(record)) => page.records.push((id, record)),
                // The empty field marks the hash as created (lua/activate.lua).
                (Err(_), _) if field.is_empty() => {}
                (Err(_), _) | (_, Err(_)) => page.unreadable.push((field, record)),
            }
        }
        Ok(page)
    }

    /// Forgets settled records accepted at or before `cutoff_ms` (Redis' clock); a record that does not qualify stays.
    /// Returns how many went. Repeating is safe.
    pub(crate) async fn trim(
        &self,
        sale: &SaleId,
        shard: u16,
        cutoff_ms: i64,
        ids: &[RequestId],
    ) -> Result<i64, RedisFault> {
        let mut went = 0;
        for part in ids.chunks(SETTLE_MAX) {
            let cutoff = std::iter::once(text(cutoff_ms.to_string()));
            let args = cutoff.chain(part.iter().map(|id| text(id.to_string()))).collect();
            let keys = vec![self.redis.keys.meta(shard, sale), self.redis.keys.ledger(shard, sale)];
            went += integer(&self.redis.script(&TRIM, keys, args).await?)?;
            for id in part {
                trace_point!(Trimmed { rid: id.to_string(), sale: sale.as_str() });
            }
        }
        Ok(went)
    }

    /// Marks requests as settled; a record that is not queued any more stays as it is. Returns how many changed.
    /// Repeating is safe.
    pub async fn mark_outcomes(
        &self,
        sale: &SaleId,
        shard: u16,
        outcomes: &[(RequestId, Outcome)],
    ) -> Result<i64, RedisFault> {
        self.mark_landed(sale, shard, outcomes, None).await
    }

    /// The same, and how far the ledger is settled with them: their highest acceptance number, in its epoch.
    pub(crate) async fn mark_landed(
        &self,
        sale: &SaleId,
        shard: u16,
        outcomes: &[(RequestId, Outcome)],
        newest: Option<SettledUpTo>,
    ) -> Result<i64, RedisFault> {
        let mut changed = 0;
        let SettledUpTo { epoch, number } = newest.unwrap_or(SettledUpTo { epoch: 0, number: 0 });
        for part in outcomes.chunks(SETTLE_MAX) {
            // There are few outcomes, and most are the same one.
            let mut by_outcome: Vec<(Outcome, Vec<RequestId>)> = Vec::new();
            for (id, outcome) in part {
                match by_outcome.iter_mut().find(|(of, _)| of == outcome) {
                    Some((_, ids)) => ids.push(*id),
                    None => by_outcome.push((*outcome, vec![*id])),
                }
            }
            let mut args = Arguments::with_capacity(2 + part.len() + 3 * by_outcome.len());
            args.push(epoch);
            args.push(number);
            for (outcome, ids) in by_outcome {
                let state = match outcome {
                    Outcome::Ordered => LedgerState::Confirmed,
                    Outcome::Failed(reason) => LedgerState::Failed(reason),
                };
                args.push(state.letter());
                args.push(state.reason());
                args.push(ids.len());
                ids.iter().for_each(|id| args.push(id));
            }
            let args = args.into_values();
            let keys = vec![self.redis.keys.ledger(shard, sale), self.redis.keys.meta(shard, sale)];
            let reply = self.redis.script(&SETTLE, keys, args).await?;
            changed += integer(&reply)?;
            for (id, outcome) in part {
                let verdict = if *outcome == Outcome::Ordered { "ORDER" } else { "FAILED" };
                trace_point!(Settled { rid: id.to_string(), sale: sale.as_str(), verdict: verdict });
            }
        }
        Ok(changed)
    }

    /// How far a ledger is settled; `None`: not known. For the crowd that waits: over a connection on which no purchase waits.
    pub(crate) async fn settled_up_to(&self, sale: &SaleId, shard: u16) -> Result<Option<SettledUpTo>, RedisFault> {
        let args = vec![text(self.redis.keys.meta(shard, sale)), text("settled")];
        let fields = list(self.redis.connection.send(DoneWhen::Polled, "HMGET", 0, args).await?.answer)?;
        Ok(fields.first().and_then(optional_text).and_then(|field| SettledUpTo::parse(&field)))
    }

    /// The progress of requests of one ledger, in their order; one HMGET.
    /// A ledger that cannot be read is no error: nothing is known then.
    pub(crate) async fn progress(
        &self,
        sale: &SaleId,
        shard: u16,
        ids: &[RequestId],
    ) -> Result<Vec<Progressed>, RedisFault> {
        match self.lookup(sale, shard, ids).await {
            Ok(records) => Ok(records
                .into_iter()
                .map(|record| match record {
                    Some(record) if record.state.is_final() => Progressed::Landed,
                    Some(_) => Progressed::Queued,
                    None => Progressed::Unmarked,
                })
                .collect()),
            // The audit reports a damaged ledger; it must not stop the look-up of the others.
            Err(RedisFault::Contract(_) | RedisFault::Refused(_)) => Ok(vec![Progressed::Unmarked; ids.len()]),
            Err(fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_) | RedisFault::NoScript)) => Err(fault),
        }
    }

    /// Whether an answer that promises something waits for replicas.
    #[must_use]
    pub(crate) fn waits_for_replicas(&self) -> bool {
        self.redis.connection.wait_replicas() > 0
    }
}

/// Records as HMGET answers them.
fn records(reply: Value) -> Result<Vec<Option<LedgerRecord>>, RedisFault> {
    let parse = |record: String| {
        LedgerRecord::parse(&record).map_err(|error: LedgerError| RedisFault::Contract(error.to_string()))
    };
    list(reply)?.iter().map(|value| optional_text(value).map(parse).transpose()).collect()
}
