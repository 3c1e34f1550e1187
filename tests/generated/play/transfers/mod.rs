//! Two buckets of one sale, each on a server of its own, and who moves units between them.

mod facts;

use super::facts::Facts;
use super::{Played, fence_of};
use crate::support::basics::resp::{RawRedis, Reply};
use crate::support::processes::redis_sets::Cluster;
use crate::support::world::World;
use crate::support::world::parts::buckets::buyer_of;
use crate::transfers::TransfersSetup;
use crate::transfers::setup::TransferFault;
use crate::transfers::state::{MOVERS, Mover, TwoBuckets};
use crate::transfers::steps::TransferStep;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::policy::{PurchasePolicy, Quantity};
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::Sale;
use seckill::p2_reserve::Fence;
use seckill::p5_reconcile::ReconcileContext;
use seckill::p5_reconcile::single_steps::{self, SharedWatch};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::declare;
use seckill::store::redis::{Between, Given, SentEntry, Taken, Transfer};
use std::collections::BTreeMap;

/// Shards, each on a server of its own.
const SHARDS: u16 = 2;

/// What a process holds; the same three states as the model's.
#[derive(Clone, Copy, Default)]
enum Moving {
    #[default]
    Idle,
    Gives(Transfer),
    Forgets(Transfer),
}

/// Two servers, and who moves units.
pub struct BucketsStage {
    world: World,
    nodes: Vec<RawRedis>,
    fence: Fence,
    context: ReconcileContext,
    sale: SaleId,
    replicas: [BTreeMap<String, Vec<u8>>; 2],
    movers: [Moving; MOVERS],
    late: Moving,
    paths: u64,
    bought: u64,
    _cluster: Cluster,
}

impl BucketsStage {
    /// A cluster, a broker and a database of its own.
    pub async fn new() -> Self {
        let cluster = Cluster::start(3, 0, &[]).await;
        let world =
            World::on_cluster((&cluster, SHARDS), "generated-buckets", &[], &["mysql.connect_timeout_ms=20000"]).await;
        declare(&world.servers.rabbit).await.expect("queues");
        let mut nodes = Vec::new();
        for shard in 0..SHARDS {
            let node = cluster.primary_of_tag(&format!("{{{shard}}}")).await;
            nodes.push(RawRedis::at(&node.url(), &format!("{}:{{{shard}}}", world.settings.redis.prefix)).await);
        }
        let fence = fence_of(&world, SHARDS);
        Self {
            context: world.reconcile_context(),
            nodes,
            fence,
            sale: SaleId::parse("none").expect("a sale id"),
            replicas: Default::default(),
            movers: Default::default(),
            late: Moving::Idle,
            paths: 0,
            bought: 0,
            _cluster: cluster,
            world,
        }
    }

    async fn sale(&self) -> Sale {
        self.world.servers.rows.sales.get(&self.sale).await.expect("the database").expect("the sale")
    }

    /// A buyer of this shard, whose order is written at once.
    async fn buys(&mut self, shard: u16, epoch: u8) -> Result<(), String> {
        self.bought += 1;
        let user = UserId::parse(&buyer_of(shard, SHARDS, usize::try_from(self.bought).unwrap_or(0))).expect("a user");
        let id = RequestId::new(2_000_000_000_000 + self.paths * 64 + self.bought).expect("an id");
        let purchase = Purchase {
            request_id: id,
            sale_id: self.sale.clone(),
            user_id: user,
            person: None,
            quantity: Quantity::ONE,
        };
        let redis = &self.world.servers.redis;
        let decided = redis.stock.reserve(&self.sale, shard, epoch.into(), &[&purchase]).await;
        match decided.map_err(|fault| fault.to_string())?.reserved[..] {
            [Reserved::Accepted] => {}
            ref other => return Err(format!("the script says {other:?}")),
        }
        let record = redis.ledger.lookup(&self.sale, shard, &[id]).await.expect("redis").remove(0).expect("a record");
        let order = record.order_message(id, &self.sale, shard);
        let persister = &self.world.servers.rows.persister;
        persister.persist_one(&order, PersistSource::Relay).await.map_err(|error| error.to_string())?;
        let entry = redis.outbox.new_entries(shard, "relay", 1).await.expect("redis").remove(0);
        let sent = [SentEntry { orders: entry.orders(), id: entry.id }];
        redis.outbox.done(shard, "relay", &sent).await.expect("redis");
        Ok(())
    }

    async fn takes(&mut self, (mover, source): (usize, usize), wanted: i8) -> Result<(), String> {
        let transfers = &self.world.servers.redis.transfers;
        let source = u16::try_from(source).unwrap_or(0);
        let found = if wanted == 0 {
            // P5 gives the records that it finds.
            transfers.pending(&self.sale, source).await.expect("redis").pop()
        } else {
            let (between, epoch) = (Between { source, target: 1 - source }, self.sale().await.epoch);
            match transfers.take(&self.sale, between, epoch, wanted.into()).await.expect("redis") {
                Taken::Record(transfer) => Some(transfer),
                Taken::Empty | Taken::Refused => None,
            }
        };
        self.movers[mover] = Moving::Gives(found.ok_or("nothing was taken")?);
        Ok(())
    }

    /// Gives; what was given is to be forgotten.
    async fn gives(&self, transfer: Transfer) -> bool {
        let given = self.world.servers.redis.transfers.give(&self.sale, &transfer).await.expect("redis");
        matches!(given, Given::Now | Given::Before)
    }

    async fn forgets(&self, transfer: Transfer) {
        self.world.servers.redis.transfers.forget(&self.sale, &transfer).await.expect("redis");
    }

    async fn goes_on(&mut self, mover: usize) {
        match std::mem::take(&mut self.movers[mover]) {
            Moving::Idle => {}
            Moving::Gives(transfer) => {
                // Not as a guard of the match: with the place that is matched assigned to, the test process crashed there (Rust 1.95).
                if self.gives(transfer).await {
                    self.movers[mover] = Moving::Forgets(transfer);
                }
            }
            Moving::Forgets(transfer) => self.forgets(transfer).await,
        }
    }

    async fn replicates(&mut self, shard: usize) {
        self.replicas[shard].clear();
        for (key, value) in self.nodes[shard].dump().await {
            if let Reply::Bytes(value) = value {
                self.replicas[shard].insert(key, value);
            }
        }
    }

    /// A replica that is behind takes the place of the server.
    async fn fails_over(&mut self, shard: usize) {
        let node = &mut self.nodes[shard];
        node.clear().await;
        for (key, value) in &self.replicas[shard] {
            let restored = node.try_call(&[b"RESTORE", key.as_bytes(), b"0", value]).await;
            assert!(!matches!(restored, Reply::Error(_)), "{key}: {restored:?}");
        }
        node.call(&["SCRIPT", "FLUSH"]).await;
    }

    async fn freezes(&self) {
        let sale = self.sale().await;
        for shard in 0..SHARDS {
            self.world.servers.redis.sale_keys.freeze(&self.sale, shard, sale.epoch).await.expect("redis");
        }
    }

    async fn rebuilds(&self) -> Result<(), String> {
        let (sale, backlog_max) = (self.sale().await, self.world.settings.p1_entry.backlog_max);
        match single_steps::attempt_rebuild(&self.context, &sale, backlog_max, &SharedWatch::default()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("the rebuild waits".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn strikes(&mut self, kind: TransferFault, at: usize, next: &TwoBuckets) {
        match kind {
            TransferFault::FailsOver => {
                self.fails_over(at).await;
                // Who waited for its replicas gets no answer.
                for mover in 0..MOVERS {
                    if next.movers[mover] == Mover::Idle {
                        self.movers[mover] = Moving::Idle;
                    }
                }
            }
            TransferFault::MoverDies => self.movers[at] = Moving::Idle,
            TransferFault::CallIsLate => self.late = std::mem::take(&mut self.movers[at]),
            TransferFault::OperatorRebuilds => self.freezes().await,
        }
    }
}

impl Played for TransfersSetup {
    type Stage = BucketsStage;

    async fn set_up(&self, stage: &mut BucketsStage) {
        stage.paths += 1;
        (stage.movers, stage.late, stage.bought) = (Default::default(), Moving::Idle, 0);
        for node in &mut stage.nodes {
            node.clear().await;
        }
        let close = format!("UPDATE sales SET status = 'closed' WHERE sale_id = '{}'", stage.sale);
        stage.world.sql(&close).await;
        let any = |sale: &mut Sale| sale.policy = PurchasePolicy::from_limit(None);
        stage.sale = stage.world.sale_with(&format!("buckets-{}", stage.paths), self.stock.into(), any).await;
        for shard in 0..SHARDS {
            stage.fence.pass(shard).await.expect("the fence");
            stage.replicates(shard.into()).await;
        }
    }

    async fn make(
        &self,
        stage: &mut BucketsStage,
        (buckets, next): (&TwoBuckets, &TwoBuckets),
        step: TransferStep,
    ) -> Result<(), String> {
        match step {
            TransferStep::Buy(shard) => {
                stage.buys(u16::try_from(shard).unwrap_or(0), buckets.epoch).await?;
                if self.waits {
                    stage.replicates(shard).await;
                }
            }
            TransferStep::Take(mover, source, wanted) => stage.takes((mover, source), wanted).await?,
            TransferStep::Give(mover) | TransferStep::Forget(mover) => stage.goes_on(mover).await,
            TransferStep::LateCall => match std::mem::take(&mut stage.late) {
                Moving::Idle => {}
                Moving::Gives(transfer) => {
                    stage.gives(transfer).await;
                }
                Moving::Forgets(transfer) => stage.forgets(transfer).await,
            },
            TransferStep::Replicate(shard) => stage.replicates(shard).await,
            TransferStep::Fence(shard) => {
                let passed = stage.fence.pass(u16::try_from(shard).unwrap_or(0)).await;
                passed.map_err(|error| error.to_string())?;
            }
            TransferStep::AuditFreezes => {
                let sale = stage.sale().await;
                let frozen = single_steps::freeze_sold_twice(&stage.context, &sale).await;
                frozen.map_err(|error| error.to_string())?;
            }
            TransferStep::Rebuild => stage.rebuilds().await?,
            TransferStep::Fault(kind, at) => stage.strikes(kind, at, next).await,
        }
        for (at, (mover, expected)) in stage.movers.iter().zip(next.movers).enumerate() {
            let is_it = matches!(
                (mover, expected),
                (Moving::Idle, Mover::Idle)
                    | (Moving::Gives(_), Mover::Gives(_))
                    | (Moving::Forgets(_), Mover::Forgets(_))
            );
            if !is_it {
                return Err(format!("process {at}: the model's is at {expected:?}"));
            }
        }
        Ok(())
    }

    async fn read_facts(&self, stage: &mut BucketsStage) -> Facts {
        facts::seen(stage).await
    }

    fn facts(&self, buckets: &TwoBuckets) -> Facts {
        facts::of_buckets(buckets)
    }
}
