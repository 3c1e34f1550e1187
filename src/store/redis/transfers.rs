//! Buckets and the transfers between them: take, give, forget, and reading one bucket (B4).
//!
//! The two buckets may be on two servers, and each can be replaced by a replica. So with `redis.wait_replicas` units are given
//! only when the replicas have the take, and the take is forgotten only when they have the gift (window 15): else a promotion
//! of one side would bring the units twice, or not at all.

use super::connection::{RedisFault, integer, list, optional_text, text};
use super::keyspace::Keyspace;
use super::scripts::{BUCKET, TRANSFER_FORGET, TRANSFER_GIVE, TRANSFER_MARKS, TRANSFER_TAKE};
use crate::domain::ids::SaleId;
use crate::domain::sale::MetaState;
use crate::domain::transfer_marks::{NumberedUnits, PairMarks, Rewound, TransferMarks, rewound};
use crate::faults::left_out;
use crate::trace_points::trace_point;
use fred::types::Value;
use futures::future::join_all;
use std::sync::Arc;

/// One transfer: units that left the source's bucket. Its name is (sale, epoch, source, target, number).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The shard they were taken from.
    pub source: u16,
    /// The shard they are for.
    pub target: u16,
    /// 1, 2, 3 … without gaps for each (source, target).
    pub number: u64,
    /// Units that are moved.
    pub units: i64,
    /// The sale's epoch.
    pub epoch: u32,
}

impl Transfer {
    /// As the trace of a test build names it.
    fn traced(&self) -> String {
        let Self { source, target, number, epoch, .. } = self;
        format!("{epoch}:{source}:{target}:{number}")
    }

    fn record(&self) -> String {
        format!("{} {} {}", self.number, self.units, self.epoch)
    }

    fn parse(source: u16, target: &str, record: &str) -> Option<Self> {
        let mut parts = record.split(' ');
        let mut next = || parts.next();
        Some(Self {
            source,
            target: target.parse().ok()?,
            number: next()?.parse().ok()?,
            units: next()?.parse().ok()?,
            epoch: next()?.parse().ok()?,
        })
    }
}

/// The two shards of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// The shard that gives units.
    pub source: u16,
    /// The shard that gets them.
    pub target: u16,
}

/// The result of a take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The units are in this record, taken now or by a transfer that was begun before. They have to be given.
    Record(Transfer),
    /// The bucket is empty.
    Empty,
    /// The source takes part in no transfer: keys missing or damaged, another epoch, not open.
    Refused,
}

/// The result of a give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// The units are in the bucket now.
    Now,
    /// They were given before.
    Before,
    /// The target's keys are missing.
    KeysMissing,
    /// The target cannot be given anything: another epoch, frozen or damaged.
    Refused,
    /// The target was given a later transfer from this source, or another one under this number: the source went back in time, or
    /// this repeat comes very late. The record has to stay.
    Behind,
}

/// One bucket at one moment. When two readings are equal, nothing happened between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// State of the sale on this shard.
    pub state: MetaState,
    /// Epoch of the keys.
    pub epoch: u32,
    /// Newest acceptance number.
    pub number: u64,
    /// Units in the bucket.
    pub stock: i64,
    /// Units that ever left it for other shards, in this epoch.
    pub sent: i64,
    /// Units that ever came from other shards, in this epoch.
    pub received: i64,
}

/// Buckets and the transfers between them.
#[derive(Clone)]
pub struct Transfers {
    pub(super) redis: Arc<Keyspace>,
}

impl Transfers {
    /// Takes about half of the source's bucket for `target`, at least `wanted` if it has that; or finds the transfer that
    /// was begun before. After `Unknown`, calling again finds the record.
    pub async fn take(&self, sale: &SaleId, between: Between, epoch: u32, wanted: i64) -> Result<Taken, RedisFault> {
        let Between { source, target } = between;
        let keys = vec![
            self.redis.keys.meta(source, sale),
            self.redis.keys.stock(source, sale),
            self.redis.keys.transfers(source, sale),
        ];
        let args = vec![Value::Integer(epoch.into()), Value::Integer(target.into()), Value::Integer(wanted)];
        let reply = match left_out!(TakeReplicated) {
            true => self.redis.script(&TRANSFER_TAKE, keys, args).await?,
            false => self.redis.script_replicated(&TRANSFER_TAKE, keys, args).await?,
        };
        let reply = list(reply)?;
        let odd = || RedisFault::Contract(format!("transfer_take answered {reply:?}"));
        let [code, number, units] = reply.as_slice() else { return Err(odd()) };
        match integer(code)? {
            1 | 2 => {
                let number = u64::try_from(integer(number)?).map_err(|_| odd())?;
                let transfer = Transfer { source, target, number, units: integer(units)?, epoch };
                trace_point!(Taken { sale: sale.as_str(), transfer: transfer.traced(), units: transfer.units });
                Ok(Taken::Record(transfer))
            }
            0 => Ok(Taken::Empty),
            -4..=-1 => Ok(Taken::Refused),
            _ => Err(odd()),
        }
    }

    /// Puts a transfer's units into the target's bucket, once. Repeating is safe, however late.
    pub async fn give(&self, sale: &SaleId, transfer: &Transfer) -> Result<Given, RedisFault> {
        let keys = vec![self.redis.keys.meta(transfer.target, sale), self.redis.keys.stock(transfer.target, sale)];
        let args = vec![
            Value::Integer(transfer.epoch.into()),
            Value::Integer(transfer.source.into()),
            text(transfer.number.to_string()),
            Value::Integer(transfer.units),
        ];
        let given = integer(&match left_out!(GiftReplicated) {
            true => self.redis.script(&TRANSFER_GIVE, keys, args).await?,
            false => self.redis.script_replicated(&TRANSFER_GIVE, keys, args).await?,
        })?;
        trace_point!(Given { sale: sale.as_str(), transfer: transfer.traced(), units: transfer.units, verdict: given });
        match given {
            1 => Ok(Given::Now),
            0 => Ok(Given::Before),
            -1 => Ok(Given::KeysMissing),
            -4..=-2 => Ok(Given::Refused),
            -5 => Ok(Given::Behind),
            other => Err(RedisFault::Contract(format!("transfer_give answered {other}"))),
        }
    }

    /// Forgets a transfer's record on the source, after its units were given. Repeating is safe.
    pub async fn forget(&self, sale: &SaleId, transfer: &Transfer) -> Result<(), RedisFault> {
        let args = vec![Value::Integer(transfer.target.into()), text(transfer.record())];
        self.redis
            .script(&TRANSFER_FORGET, vec![self.redis.keys.transfers(transfer.source, sale)], args)
            .await
            .map(|_count| trace_point!(Forgotten { sale: sale.as_str(), transfer: transfer.traced() }))
    }

    /// The transfers out of one shard that were begun and not forgotten. They may be given: enough replicas have them.
    pub async fn pending(&self, sale: &SaleId, source: u16) -> Result<Vec<Transfer>, RedisFault> {
        let fields =
            list(self.redis.hand_out("HGETALL", 0, vec![text(self.redis.keys.transfers(source, sale))]).await?)?;
        let read = |pair: &[Value]| Transfer::parse(source, &pair.first()?.as_string()?, &pair.get(1)?.as_string()?);
        fields
            .chunks(2)
            .map(|pair| read(pair).ok_or_else(|| RedisFault::Contract(format!("transfer of {sale} is {pair:?}"))))
            .collect()
    }

    /// The number of the last transfer that the target was given from this source; `None` when it cannot be read, and then the
    /// target takes no transfer from that source any more.
    pub(crate) async fn last_given(&self, sale: &SaleId, between: Between) -> Result<Option<u64>, RedisFault> {
        let (meta, mark) = (self.redis.keys.meta(between.target, sale), format!("from:{}", between.source));
        let mark = self.redis.hand_out("HGET", 0, vec![text(meta), text(mark)]).await?;
        Ok(optional_text(&mark).map_or(Some(0), |mark| mark.parse().ok()))
    }

    /// Which pairs of the sale's buckets have a side that went back in time, in the keys of `epoch`; and the shards that could not be
    /// read, of which nothing is known.
    pub async fn rewound(&self, sale: &SaleId, epoch: u32) -> (Vec<Rewound>, Vec<u16>) {
        let earlier = join_all((0..self.redis.shards).map(|shard| self.marks(sale, shard))).await;
        let unread: Vec<u16> =
            (0..).zip(&earlier).filter(|(_, marks)| marks.is_none()).map(|(shard, _)| shard).collect();
        let again = (0..self.redis.shards)
            .map(async |shard| if unread.contains(&shard) { None } else { self.marks(sale, shard).await });
        let later = join_all(again).await;
        let pairs = if left_out!(EachPair) { Vec::new() } else { rewound(&earlier, &later, epoch) };
        (pairs, unread)
    }

    /// What one bucket remembers of its transfers; `None` when it is missing or cannot be read.
    async fn marks(&self, sale: &SaleId, shard: u16) -> Option<TransferMarks> {
        let keys = vec![self.redis.keys.meta(shard, sale), self.redis.keys.transfers(shard, sale)];
        let args = vec![Value::Integer(self.redis.shards.into())];
        let fields = self.redis.script(&TRANSFER_MARKS, keys, args).await.and_then(list).ok()?;
        let (epoch, pairs) = fields.split_first()?;
        let with = pairs.chunks_exact(4).map(pair_marks).collect();
        Some(TransferMarks { epoch: epoch.as_string()?.parse().ok()?, with })
    }

    /// One bucket of the sale; `None` when its keys are missing.
    pub async fn bucket(&self, sale: &SaleId, shard: u16) -> Result<Option<Bucket>, RedisFault> {
        let keys = vec![self.redis.keys.meta(shard, sale), self.redis.keys.stock(shard, sale)];
        let fields = list(self.redis.script(&BUCKET, keys, vec![]).await?)?;
        if fields.is_empty() {
            return Ok(None);
        }
        let read = || {
            let field = |at: usize| fields.get(at)?.as_string();
            Some(Bucket {
                state: MetaState::from_code(&field(0)?)?,
                epoch: field(1)?.parse().ok()?,
                number: field(2)?.parse().ok()?,
                stock: field(3)?.parse().ok()?,
                sent: field(4)?.parse().ok()?,
                received: field(5)?.parse().ok()?,
            })
        };
        read().map(Some).ok_or_else(|| RedisFault::Contract(format!("bucket of {sale} is {fields:?}")))
    }
}

/// Four fields of the script's answer.
fn pair_marks(fields: &[Value]) -> PairMarks {
    let field = |at: usize| fields.get(at).and_then(Value::as_string).unwrap_or_default();
    let number = |text: String| if text.is_empty() { Some(0) } else { text.parse().ok() };
    let numbered = |text: String| {
        let mut parts = text.split(' ');
        Some(NumberedUnits { number: parts.next()?.parse().ok()?, units: parts.next()?.parse().ok()? })
    };
    PairMarks {
        taken: number(field(0)),
        under_way: numbered(field(1)),
        given: number(field(2)),
        last_given: numbered(field(3)),
    }
}
