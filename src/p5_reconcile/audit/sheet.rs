//! One audit under way: what is read, in which order, and what is concluded from it.

use super::{Auditor, Finding, FindingKind, OpenRequest, SaleAudit, SaleAuditError, Window};
use crate::domain::balance::Counted;
use crate::domain::fate::Fate;
use crate::domain::ids::RequestId;
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::{Sale, SaleStatus};
use crate::faults::CrashPoint;
use crate::p5_reconcile::mq_reading::MqSeen;
use crate::store::mysql::{outcomes, sales, totals};
use crate::store::redis::ShardCount;
use std::collections::{HashMap, HashSet};

/// Ledger records read at once.
const PAGE: u32 = 1_000;

pub(super) struct Sheet<'a> {
    auditor: &'a Auditor,
    sale: &'a Sale,
    window: Window,
    /// What the round has seen of the MQ DLQ.
    seen: Option<&'a MqSeen>,
    audit: SaleAudit,
    open: Vec<OpenRequest>,
    /// Messages of the MQ DLQ that were not looked at; `None` when it could not be read.
    unseen_count: Option<u64>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(auditor: &'a Auditor, sale: &'a Sale, window: Window, seen: Option<&'a MqSeen>) -> Self {
        let audit = SaleAudit {
            sale_id: sale.sale_id.clone(),
            examined_count: 0,
            counted: Counted::default(),
            findings: Vec::new(),
            findings_left_out_count: 0,
            oldest_open_ms: 0,
            mq_dlq_unseen_count: 0,
            overdue: Vec::new(),
            unmarked: HashMap::new(),
            settled: HashMap::new(),
        };
        Self { auditor, sale, window, seen, audit, open: Vec::new(), unseen_count: Some(0) }
    }

    fn find(&mut self, kind: FindingKind, request_id: Option<RequestId>, detail: String) {
        if self.audit.findings.len() < self.auditor.findings_max {
            self.audit.findings.push(Finding { kind, request_id, detail });
        } else {
            self.audit.findings_left_out_count += 1;
        }
    }

    pub(super) async fn read_shard(&mut self, shard: u16) -> Result<(), SaleAuditError> {
        let (db, redis, id) = (&self.auditor.db, &self.auditor.redis, &self.sale.sale_id);
        let highest = sales::highest_number(db, id, shard, self.sale.epoch).await?;
        let Some(counts) = redis.shard_count(id, shard).await? else {
            if matches!(self.sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
                self.find(
                    FindingKind::KeysLost,
                    None,
                    format!("shard {shard}: the sale was warmed but redis has no keys of it; it stays closed until it is rebuilt"),
                );
            }
            return Ok(());
        };
        // A script that misses one of the five keys sells nothing; the sums below would only show an odd difference.
        if !redis.keys_complete(id, shard).await? && self.sale.status != SaleStatus::Draft {
            // A closed sale may leave Redis just now, in one step. Whoever asks again finds nothing of it.
            if redis.shard_count(id, shard).await?.is_none() {
                return Err(SaleAuditError::Moved);
            }
            let detail = format!(
                "shard {shard}: one of the sale's keys is missing or of another kind; it stays closed until it is rebuilt"
            );
            self.find(FindingKind::KeysLost, None, detail);
        }
        let counted = &mut self.audit.counted;
        counted.in_redis = true;
        counted.redis_stock += counts.stock;
        counted.granted_in_redis += counts.granted;
        counted.in_transit += counts.in_transit;
        counted.accepted += counts.trimmed.ordered + counts.trimmed.failed;
        counted.accepted_ordered += counts.trimmed.ordered;
        counted.accepted_failed += counts.trimmed.failed;
        if counts.meta.number < highest {
            let detail = format!(
                "shard {shard}: redis accepted {} requests, the database decided number {highest}",
                counts.meta.number
            );
            self.find(FindingKind::Orphan, None, detail);
        }
        let decided_count = outcomes::count_up_to(db, id, (shard, self.sale.epoch), counts.meta.number).await?;
        self.read_ledger(shard, &counts, decided_count).await?;
        // Trimmed meanwhile: what this audit missed is not lost. Whoever asks again gets whole numbers.
        let trimmed_now = redis.shard_count(id, shard).await?.map(|counts| counts.trimmed);
        if trimmed_now.is_some_and(|now| now != counts.trimmed) { Err(SaleAuditError::Moved) } else { Ok(()) }
    }

    /// Walks the ledger up to the snapshot's number.
    async fn read_ledger(&mut self, shard: u16, counts: &ShardCount, decided_count: u64) -> Result<(), SaleAuditError> {
        let (id, number, epoch) = (self.sale.sale_id.clone(), counts.meta.number, counts.meta.epoch);
        let now = self.auditor.redis.clock_ms(shard).await?;
        let mut seen: HashSet<RequestId> = HashSet::new();
        let mut settled_count = 0;
        let mut cursor = Some("0".to_owned());
        while let Some(at) = cursor {
            let page = self.auditor.redis.ledger_page(&id, shard, &at, PAGE).await?;
            cursor = page.next;
            for (field, text) in page.unreadable {
                self.find(
                    FindingKind::LedgerDamaged,
                    RequestId::parse(&field).ok(),
                    format!("shard {shard}: record {text:?} of {field:?} is unreadable"),
                );
            }
            let of_snapshot = |record: &LedgerRecord| record.epoch == epoch && record.number <= number;
            let records: Vec<_> =
                page.records.into_iter().filter(|(rid, record)| of_snapshot(record) && seen.insert(*rid)).collect();
            settled_count += self.read_records(shard, now, records).await?;
        }
        CrashPoint::AfterLedgerRead.reach();
        let known = seen.len() as u64 + counts.trimmed.count;
        self.audit.examined_count += seen.len() as u64;
        if known != number {
            self.find(
                FindingKind::LedgerDamaged,
                None,
                format!("shard {shard}: {number} requests were accepted, the ledger has {known}"),
            );
        }
        if decided_count > settled_count + counts.trimmed.count {
            let missing = decided_count - settled_count - counts.trimmed.count;
            self.find(
                FindingKind::Orphan,
                None,
                format!("shard {shard}: the database decided {missing} requests the ledger does not have"),
            );
        }
        Ok(())
    }

    /// Takes in one page: the database is asked after the ledger was read. Returns how many had their fate.
    async fn read_records(
        &mut self,
        shard: u16,
        now: i64,
        records: Vec<(RequestId, LedgerRecord)>,
    ) -> Result<u64, SaleAuditError> {
        let ids: Vec<RequestId> = records.iter().map(|(id, _)| *id).collect();
        let fates = outcomes::fates_of(&self.auditor.db, &ids).await?;
        let mut settled_count = 0;
        for (request_id, record) in records {
            let units = i64::from(record.quantity.get());
            self.audit.counted.accepted += units;
            match fates.get(&request_id).map(|decided| decided.fate) {
                Some(fate) => {
                    settled_count += 1;
                    self.settled(shard, request_id, &record, fate);
                }
                None => {
                    let age_ms = (now - record.accepted_at_ms).max(0);
                    self.open.push(OpenRequest { request_id, shard, record, age_ms, parked: false });
                }
            }
        }
        Ok(settled_count)
    }

    fn settled(&mut self, shard: u16, request_id: RequestId, record: &LedgerRecord, fate: Fate) {
        let units = i64::from(record.quantity.get());
        match fate {
            Fate::Ordered => self.audit.counted.accepted_ordered += units,
            Fate::Failed(_) => self.audit.counted.accepted_failed += units,
        }
        if record.state != LedgerState::Queued {
            self.audit.settled.entry(shard).or_default().push((request_id, record.accepted_at_ms));
        } else {
            self.audit.unmarked.entry(shard).or_default().push((request_id, fate));
        }
    }

    /// Where the undecided requests are. The database is asked once more, last of all: one that was on its way to a DLQ or
    /// to its order while this audit read is no false alarm.
    pub(super) async fn judge_open(&mut self) -> Result<(), SaleAuditError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let parked = self.auditor.parked_ids(self.seen).await?;
        self.unseen_count = parked.unseen_count;
        self.audit.mq_dlq_unseen_count = parked.unseen_count.unwrap_or(0);
        let ids: Vec<RequestId> = self.open.iter().map(|open| open.request_id).collect();
        let fates = outcomes::fates_of(&self.auditor.db, &ids).await?;
        let window_ms = match self.window {
            Window::Ms(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
            Window::Now => -1,
        };
        for mut open in std::mem::take(&mut self.open) {
            let units = i64::from(open.record.quantity.get());
            if let Some(decided) = fates.get(&open.request_id) {
                self.settled(open.shard, open.request_id, &open.record, decided.fate);
                continue;
            }
            self.audit.oldest_open_ms = self.audit.oldest_open_ms.max(open.age_ms);
            open.parked = parked.ids.contains(&open.request_id);
            let overdue = open.age_ms > window_ms;
            if open.parked {
                self.audit.counted.parked += units;
            } else if overdue {
                self.audit.counted.leaked += units;
            } else {
                self.audit.counted.in_flight += units;
            }
            if overdue {
                self.audit.overdue.push(open);
            }
        }
        self.tell_leaks().await;
        Ok(())
    }

    /// The findings of the leaks, with where each of them lies.
    async fn tell_leaks(&mut self) {
        let overdue = std::mem::take(&mut self.audit.overdue);
        let leaks = || overdue.iter().filter(|open| !open.parked);
        if let Some(since_ms) = leaks().map(|open| open.record.accepted_at_ms).min() {
            let places = self.auditor.whereabouts(since_ms, self.unseen_count == Some(0)).await;
            let unseen = match self.unseen_count {
                None => "; the MQ DLQ could not be read".to_owned(),
                Some(0) => String::new(),
                Some(unseen) => format!("; {unseen} messages of the MQ DLQ were not looked at"),
            };
            for open in leaks() {
                let (age_s, number) = (open.age_ms / 1000, open.record.number);
                let place = places.of(open.request_id);
                let detail =
                    format!("accepted {age_s} s ago as number {number} (shard {}), {place}{unseen}", open.shard);
                self.find(FindingKind::Leak, Some(open.request_id), detail);
            }
        }
        self.audit.overdue = overdue;
    }

    /// The database's own sums, and the equations.
    pub(super) async fn close(mut self) -> Result<SaleAudit, SaleAuditError> {
        if let Some(totals) = totals::totals(&self.auditor.db, &self.sale.sale_id).await? {
            let counted = &mut self.audit.counted;
            counted.granted = totals.granted;
            counted.database_stock = totals.stock;
            counted.ordered = totals.ordered;
            counted.flow = totals.flow;
        }
        let counted = self.audit.counted;
        if counted.oversold() {
            let detail = format!(
                "{} units ordered, {} granted, stock {}",
                counted.ordered, counted.granted, counted.database_stock
            );
            self.find(FindingKind::OverSell, None, detail);
        }
        let leak_adjusted = Counted { in_flight: counted.in_flight + counted.leaked, ..counted };
        for equation in leak_adjusted.equations().into_iter().filter(|equation| !equation.holds()) {
            self.find(
                FindingKind::Unbalanced,
                None,
                format!("{}: {} against {}", equation.name, equation.left, equation.right),
            );
        }
        Ok(self.audit)
    }
}
