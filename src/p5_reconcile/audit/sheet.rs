//! One audit under way, Redis' side: what each shard holds, and who in its ledger is undecided. `judge` has the database's side.

use super::walk::Walked;
use super::{Auditor, Finding, FindingKind, Look, OpenRequest, SaleAudit, SaleAuditError, Window};
use crate::domain::balance::Counted;
use crate::domain::ids::RequestId;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::store::mysql::books::{KnownSeries, Series};
use crate::store::mysql::grants::Grant;
use crate::store::redis::ShardCount;
use std::collections::HashMap;
use std::time::Duration;

pub(super) struct Sheet<'s, 'a> {
    pub auditor: &'s Auditor,
    pub sale: &'s Sale,
    pub look: &'s mut Look<'a>,
    /// What the database knew of the sale's numbers before Redis was asked.
    pub known: &'s [KnownSeries],
    pub audit: SaleAudit,
    pub open: Vec<OpenRequest>,
    pub shards: HashMap<u16, Shard>,
    /// Grants of the epoch that Redis was known to have before it was counted.
    pub marked: Vec<Grant>,
    /// Messages of the MQ DLQ that were not looked at; `None` when it could not be read.
    pub unseen_count: Option<u64>,
}

/// What was seen of one shard.
pub(super) struct Shard {
    /// Of one moment.
    pub counts: ShardCount,
    /// Its ledger up to that moment, or as it was when it was last walked.
    pub walked: Walked,
    /// Whether the ledger was walked now.
    pub fresh: bool,
    /// Redis' clock.
    pub now_ms: i64,
}

impl Shard {
    /// Units ever accepted in the epoch: as Redis counted them, and for keys from before that, as its ledger says.
    pub fn accepted(&self) -> i64 {
        let trimmed = self.counts.trimmed;
        self.counts.accepted.unwrap_or(self.walked.units + trimmed.ordered + trimmed.failed)
    }
}

impl<'s, 'a> Sheet<'s, 'a> {
    pub(super) fn new(auditor: &'s Auditor, sale: &'s Sale, look: &'s mut Look<'a>, known: &'s [KnownSeries]) -> Self {
        let audit = SaleAudit {
            sale_id: sale.sale_id.clone(),
            examined_count: 0,
            counted: Counted::default(),
            series: Vec::new(),
            equations: Vec::new(),
            findings: Vec::new(),
            findings_left_out_count: 0,
            oldest_open_ms: 0,
            mq_dlq_unseen_count: 0,
            overdue: Vec::new(),
            unmarked: HashMap::new(),
            old: HashMap::new(),
        };
        let (open, shards, marked) = (Vec::new(), HashMap::new(), Vec::new());
        Self { auditor, sale, look, known, audit, open, shards, marked, unseen_count: Some(0) }
    }

    pub(super) fn find(&mut self, kind: FindingKind, request_id: Option<RequestId>, detail: String) {
        if self.audit.findings.len() < self.auditor.findings_max {
            self.audit.findings.push(Finding { kind, request_id, detail });
        } else {
            self.audit.findings_left_out_count += 1;
        }
    }

    /// What the database knew of a shard in the sale's epoch before Redis was asked.
    fn known_number(&self, shard: u16) -> u64 {
        let series = Series { epoch: self.sale.epoch, shard };
        self.known.iter().find(|known| known.series == series).map_or(0, |known| known.number)
    }

    pub(super) async fn read_shard(&mut self, shard: u16) -> Result<(), SaleAuditError> {
        let (redis, id) = (&self.auditor.redis, &self.sale.sale_id);
        let Some(counts) = redis.shard_count(id, shard).await? else {
            if matches!(self.sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
                let detail = format!(
                    "shard {shard}: the sale was warmed but redis has no keys of it; it stays closed until it is rebuilt"
                );
                self.find(FindingKind::KeysLost, None, detail);
                self.records_without_counters(shard).await?;
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
        self.compare_ages(shard, &counts);
        let now_ms = redis.clock_ms(shard).await?;
        let window = match self.look.window {
            Window::Ms(ms) => Duration::from_millis(ms),
            Window::Now => Duration::ZERO,
        };
        let (walked, fresh) = match self.look.walks.still_good(shard, &counts, window, now_ms) {
            Some(walked) => (walked.clone(), false),
            None => (self.walk(shard, &counts, now_ms).await?, true),
        };
        if fresh {
            // Trimmed meanwhile: what this audit missed is not lost. Whoever asks again gets whole numbers.
            let trimmed_now = redis.shard_count(id, shard).await?.map(|counts| counts.trimmed);
            if trimmed_now.is_some_and(|now| now != counts.trimmed) {
                return Err(SaleAuditError::Moved);
            }
            self.compare_ledger(shard, &counts, &walked);
            self.look.walks.remember(shard, walked.clone());
        }
        self.add(shard, &counts);
        self.audit.examined_count += walked.count;
        let mut open = walked.open.clone();
        for request in &mut open {
            request.age_ms = (now_ms - request.record.accepted_at_ms).max(0);
        }
        self.open.append(&mut open);
        self.shards.insert(shard, Shard { counts, walked, fresh, now_ms });
        Ok(())
    }

    /// Who went back in time: Redis, or the database?
    fn compare_ages(&mut self, shard: u16, counts: &ShardCount) {
        let (ours, theirs) = (self.sale.epoch, counts.meta.epoch);
        if theirs > ours {
            let detail = format!(
                "shard {shard}: redis is in epoch {theirs}, the database in epoch {ours}: the database went back"
            );
            self.find(FindingKind::Unbalanced, None, detail);
            return;
        }
        let highest = self.known_number(shard);
        if counts.meta.number < highest {
            let detail = format!(
                "shard {shard}: redis accepted {} requests, the database decided number {highest}",
                counts.meta.number
            );
            self.find(FindingKind::Orphan, None, detail);
        }
    }

    /// The ledger against Redis' own counters.
    fn compare_ledger(&mut self, shard: u16, counts: &ShardCount, walked: &Walked) {
        let (number, trimmed) = (counts.meta.number, counts.trimmed);
        let known = walked.count + trimmed.count;
        if known != number {
            let detail = format!("shard {shard}: {number} requests were accepted, the ledger has {known}");
            self.find(FindingKind::LedgerDamaged, None, detail);
        }
        let units = walked.units + trimmed.ordered + trimmed.failed;
        if let Some(accepted) = counts.accepted.filter(|accepted| known == number && *accepted != units) {
            let detail = format!("shard {shard}: {accepted} units were accepted, the ledger has {units}");
            self.find(FindingKind::LedgerDamaged, None, detail);
        }
    }

    fn add(&mut self, shard: u16, counts: &ShardCount) {
        let counted = &mut self.audit.counted;
        counted.in_redis = true;
        counted.redis_stock += counts.stock;
        counted.granted_in_redis += counts.granted;
        counted.in_transit += counts.in_transit;
        let in_step = counts.meta.epoch == self.sale.epoch && counts.meta.state != MetaState::Frozen;
        // All shards, or none: one that is missing would look like lost units.
        counted.bridged = in_step && (counted.bridged || shard == 0);
    }
}
