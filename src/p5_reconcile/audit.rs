//! The audit of one sale: everything Redis accepted against everything the database decided.
//!
//! Reading order is what makes it true while traffic runs: the database's highest number first, then one snapshot of a
//! shard's counters, then the ledger up to that snapshot's number, then the DLQs, and the database's fates last. A request
//! can only move towards the database, so whatever is seen unsettled here and settled there counts as settled.

use crate::domain::balance::Counted;
use crate::domain::fate::Fate;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::{Sale, SaleStatus};
use crate::domain::states::P5Reconcile;
use crate::store::mysql::{Db, DbError, outcomes, sales, totals};
use crate::store::rabbit::RabbitConfig;
use crate::store::redis::{RedisFault, RedisStore, ShardCount};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Ledger records read at once.
const PAGE: u32 = 1_000;
/// How often an audit that met a trimming is made again.
const TRIES: u32 = 5;

/// How old an undecided request may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// This many milliseconds.
    Ms(u64),
    /// It may not be undecided at all.
    Now,
}

/// Why an audit could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SaleAuditError {
    /// Redis.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The database refused a change.
    #[error("{0}")]
    Refused(String),
    /// Settled records were trimmed while they were counted.
    #[error("the ledger was trimmed during the audit; run it again")]
    Moved,
}

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FindingKind {
    /// An accepted request older than the window without a fate.
    Leak,
    /// More orders than granted units.
    OverSell,
    /// The database decided requests that Redis does not know.
    Orphan,
    /// The sale was warmed and its keys are missing.
    KeysLost,
    /// A ledger record cannot be read, or one is missing below the newest acceptance number.
    LedgerDamaged,
    /// An equation of the sheet does not hold.
    Unbalanced,
}

impl FindingKind {
    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Leak => P5Reconcile::Leak.code(),
            Self::OverSell => P5Reconcile::OverSell.code(),
            Self::Orphan => P5Reconcile::Orphan.code(),
            Self::KeysLost => "KEYS_LOST",
            Self::LedgerDamaged => "LEDGER_DAMAGED",
            Self::Unbalanced => "UNBALANCED",
        }
    }

    /// The state it stands for, if it is one of the field's.
    #[must_use]
    pub const fn state(self) -> Option<P5Reconcile> {
        match self {
            Self::Leak => Some(P5Reconcile::Leak),
            Self::OverSell => Some(P5Reconcile::OverSell),
            Self::Orphan => Some(P5Reconcile::Orphan),
            Self::KeysLost | Self::LedgerDamaged | Self::Unbalanced => None,
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// The request it is about.
    pub request_id: Option<RequestId>,
    /// For a person.
    pub detail: String,
}

/// An accepted request without a fate.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The request.
    pub request_id: RequestId,
    /// The shard of its ledger.
    pub shard: u16,
    /// What the ledger says.
    pub record: LedgerRecord,
    /// Since it was accepted, by Redis' clock.
    pub age_ms: i64,
    /// It lies in a DLQ, or in the register as open.
    pub parked: bool,
}

/// The audit of one sale.
#[derive(Debug, Clone, Serialize)]
pub struct SaleAudit {
    /// The sale.
    pub sale_id: SaleId,
    /// Ledger records looked at.
    pub examined_count: u64,
    /// The sheet.
    pub counted: Counted,
    /// What is wrong; at most the configured number.
    pub findings: Vec<Finding>,
    /// Findings left out because there were too many.
    pub findings_left_out_count: u64,
    /// Age of the oldest undecided request, milliseconds.
    pub oldest_open_ms: i64,
    /// Requests older than the window (parked ones too) that P5 may land.
    #[serde(skip)]
    pub overdue: Vec<OpenRequest>,
    /// Requests whose fate the ledger has not been told.
    #[serde(skip)]
    pub unmarked: HashMap<u16, Vec<(RequestId, Fate)>>,
    /// Settled requests with the time of their acceptance (Redis' clock), by shard: what may be trimmed once old enough.
    #[serde(skip)]
    pub settled: HashMap<u16, Vec<(RequestId, i64)>>,
}

impl SaleAudit {
    /// Whether everything adds up and nothing is lost.
    #[must_use]
    pub fn consistent(&self) -> bool {
        self.findings.is_empty() && self.counted.consistent()
    }
}

/// Makes audits.
#[derive(Clone)]
pub struct Auditor {
    /// The truth.
    pub db: Db,
    /// What was accepted.
    pub redis: RedisStore,
    /// For the MQ DLQ.
    pub rabbit: RabbitConfig,
    /// Shards of every sale.
    pub shards: u16,
    /// Most findings kept in one audit.
    pub findings_max: usize,
}

impl Auditor {
    /// Audits one sale.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server cannot be asked; nothing is known then.
    pub async fn audit(&self, sale: &Sale, window: Window) -> Result<SaleAudit, SaleAuditError> {
        for _ in 1..TRIES {
            match self.audit_once(sale, window).await {
                Err(SaleAuditError::Moved) => {}
                done => return done,
            }
        }
        self.audit_once(sale, window).await
    }

    async fn audit_once(&self, sale: &Sale, window: Window) -> Result<SaleAudit, SaleAuditError> {
        let mut sheet = Sheet::new(self, sale, window);
        for shard in 0..self.shards {
            sheet.read_shard(shard).await?;
        }
        sheet.judge_open().await?;
        sheet.close().await
    }
}

struct Sheet<'a> {
    auditor: &'a Auditor,
    sale: &'a Sale,
    window: Window,
    audit: SaleAudit,
    open: Vec<OpenRequest>,
}

impl<'a> Sheet<'a> {
    fn new(auditor: &'a Auditor, sale: &'a Sale, window: Window) -> Self {
        let audit = SaleAudit {
            sale_id: sale.sale_id.clone(),
            examined_count: 0,
            counted: Counted::default(),
            findings: Vec::new(),
            findings_left_out_count: 0,
            oldest_open_ms: 0,
            overdue: Vec::new(),
            unmarked: HashMap::new(),
            settled: HashMap::new(),
        };
        Self { auditor, sale, window, audit, open: Vec::new() }
    }

    fn find(&mut self, kind: FindingKind, request_id: Option<RequestId>, detail: String) {
        if self.audit.findings.len() < self.auditor.findings_max {
            self.audit.findings.push(Finding { kind, request_id, detail });
        } else {
            self.audit.findings_left_out_count += 1;
        }
    }

    async fn read_shard(&mut self, shard: u16) -> Result<(), SaleAuditError> {
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
        let now = self.auditor.redis.clock_ms().await?;
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
    async fn judge_open(&mut self) -> Result<(), SaleAuditError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let parked = self.auditor.parked_ids().await?;
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
            open.parked = parked.contains(&open.request_id);
            let overdue = open.age_ms > window_ms;
            if open.parked {
                self.audit.counted.parked += units;
            } else if overdue {
                self.audit.counted.leaked += units;
                let detail = format!(
                    "accepted {} s ago as number {} (shard {}), nowhere since",
                    open.age_ms / 1000,
                    open.record.number,
                    open.shard
                );
                self.find(FindingKind::Leak, Some(open.request_id), detail);
            } else {
                self.audit.counted.in_flight += units;
            }
            if overdue {
                self.audit.overdue.push(open);
            }
        }
        Ok(())
    }

    /// The database's own sums, and the equations.
    async fn close(mut self) -> Result<SaleAudit, SaleAuditError> {
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
