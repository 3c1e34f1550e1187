//! The application that `kill` kills, a process of its own: the same number of buyers at once as in `pace` take units with
//! one strategy, and each winner gets a yes, a line on standard output. Where orders have events, what publishes them is
//! another such process.
//!
//! What becomes of the order is what users of that strategy do. The field's strategies in Redis put it into a queue in this
//! process' memory, and a few writers empty that queue into the database, one plain transaction an order. The database's own
//! strategies commit it with the unit, before the yes; the outbox with its event, and the half message between the half and
//! its command. Ours has it in the outbox, written by the script that took the unit; nothing is left to do here. No caller waits
//! for the kill: buyers and writers work as fast as they can from the first unit on. Only two buyers with half messages stop,
//! each at a point where a kill is to find somebody.
//!
//! A crash is what this process is for: the queue is gone, and what an open transaction had not committed.

use super::messages::{EventDispatcher, HalfMessageSender, HalfStops, MessageScheme, MessageStores, SharedProducer};
use super::taker::Taker;
use super::{ALL, CROWD, StockStrategy, connect};
use crate::baseline::mysql;
use crate::landing::pool;
use clap::ValueEnum;
use seckill::cli::{Failure, output};
use seckill::config::{Layers, Settings};
use seckill::domain::ids::SaleId;
use seckill::roles::{RoleError, rabbit_config};
use seckill::runtime::now_ms;
use seckill::store::mysql::{Db, DbError};
use seckill::store::redis::RedisStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::{Mutex, mpsc};

/// Units of the sale, and buyers: far more than get an answer before the kill, so that it comes while everybody buys.
pub(super) const UNITS: u64 = 20_000;
/// The kill comes as soon as this number of buyers got a yes.
pub(super) const TOLD: usize = 300;
use tokio::task::JoinSet;

/// Writers that empty the queue; many published designs have one.
const WRITERS: usize = 4;
/// Orders the queue holds, more than there are units: a full queue never makes a buyer wait.
const QUEUE: usize = 1 << 20;
/// What the dispatcher says when it works, and when it has published something.
pub(super) const READY: &str = "ready\n";
pub(super) const PUBLISHED: &str = "published ";
/// Winners before the kill of whom two stop half-way.
const STOP_BEFORE: u64 = 20;

/// What a victim does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VictimPart {
    /// Sells.
    Buyers,
    /// Publishes the events of what is sold.
    Dispatcher,
}

impl VictimPart {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buyers => "buyers",
            Self::Dispatcher => "dispatcher",
        }
    }
}

/// The hidden command that starts a victim.
#[derive(Debug, clap::Args)]
pub(crate) struct BuyersArgs {
    /// Name of the strategy in the report
    #[arg(long)]
    strategy: String,
    /// The sale whose units are taken
    #[arg(long)]
    sale: String,
    /// Number of the first buyer; there are as many as units
    #[arg(long)]
    first: u64,
    /// What this process does
    #[arg(long, value_enum, default_value_t = VictimPart::Buyers)]
    part: VictimPart,
}

/// What the buyers share.
struct SharedShop {
    taker: Taker,
    /// Where orders go that are not written yet when the buyer gets the answer.
    queue: Option<mpsc::Sender<u64>>,
    next: AtomicU64,
    end: u64,
}

/// Sells until it is killed, or until nothing is left to sell and to write, which is too late for the benchmark. Or
/// publishes events until it is killed.
pub(crate) async fn run(layers: &Layers, args: &BuyersArgs) -> Result<u8, Failure> {
    let usage = || Failure::Usage(format!("--strategy {}: there is none of this name", args.strategy));
    let (_, strategy) = ALL.into_iter().find(|(name, _)| *name == args.strategy).ok_or_else(usage)?;
    let sale = SaleId::parse(&args.sale).map_err(|error| Failure::Usage(error.to_string()))?;
    let settings = Settings::load(layers)?;
    let db = pool(&settings, CROWD)?;
    let rabbit = rabbit_config(&settings).map_err(RoleError::from)?;
    let stores = MessageStores::new(db.clone(), rabbit, sale.clone());
    match (args.part, strategy.scheme()) {
        (VictimPart::Dispatcher, Some(scheme)) => return dispatch(scheme, stores).await,
        (VictimPart::Dispatcher, None) => return Err(usage()),
        (VictimPart::Buyers, _) => {}
    }
    let (halves, _publishing) = match strategy.scheme() {
        Some(MessageScheme::HalfMessage) => {
            let (producer, publishing) = SharedProducer::connect(&stores.rabbit).await?;
            let last = args.first + TOLD as u64 - STOP_BEFORE;
            let stops = Some(HalfStops { after_half: last, after_transaction: last + 1 });
            (Some(HalfMessageSender { stores, producer, stops }), Some(publishing))
        }
        Some(MessageScheme::Outbox) | None => (None, None),
    };
    let connections = connect(&settings).await?;
    let (queue, orders) = mpsc::channel(QUEUE);
    let (queue, writers) = match strategy {
        StockStrategy::Redis(_) => (Some(queue), WRITERS),
        StockStrategy::Guarded
        | StockStrategy::Versioned
        | StockStrategy::SkipLocked
        | StockStrategy::Messages(_)
        | StockStrategy::Ours(_) => (None, 0),
    };
    // The writers' connections are made before the first order is there.
    futures::future::try_join_all((0..CROWD).map(|_| db.ping())).await?;
    let (mut crew, orders) = (JoinSet::new(), Arc::new(Mutex::new(orders)));
    for _ in 0..writers {
        crew.spawn(writer(db.clone(), sale.clone(), Arc::clone(&orders)));
    }
    let taker = Taker::new(db, settings.redis.shards, strategy, sale).ordering().with_halves(halves);
    let shop = Arc::new(SharedShop { taker, queue, next: AtomicU64::new(args.first), end: args.first + UNITS });
    for redis in connections {
        crew.spawn(buyers(Arc::clone(&shop), redis));
    }
    // The queue ends with the last buyer, and the writers with the queue.
    drop(shop);
    while let Some(ended) = crew.join_next().await {
        ended.map_err(|error| Failure::Failed(error.to_string()))??;
    }
    Ok(0)
}

async fn dispatch(scheme: MessageScheme, stores: MessageStores) -> Result<u8, Failure> {
    let mut dispatcher = EventDispatcher::start(scheme, stores).await?;
    output::line(READY.trim_end());
    loop {
        match dispatcher.step().await? {
            0 => {}
            count => output::line(&format!("{PUBLISHED}{count}")),
        }
    }
}

/// One connection's buyers, one after the other.
async fn buyers(shop: Arc<SharedShop>, redis: RedisStore) -> Result<(), Failure> {
    let step = shop.taker.step();
    loop {
        let first = shop.next.fetch_add(step, Relaxed);
        if first >= shop.end {
            return Ok(());
        }
        for winner in shop.taker.take(&redis, first, (first + step).min(shop.end)).await?.winners {
            if let Some(queue) = &shop.queue {
                queue.send(winner).await.map_err(|error| Failure::Failed(error.to_string()))?;
            }
            // Standard output is written out at the end of each line: from here on the buyer knows.
            output::line(&format!("yes {winner}"));
        }
    }
}

async fn writer(db: Db, sale: SaleId, orders: Arc<Mutex<mpsc::Receiver<u64>>>) -> Result<(), Failure> {
    loop {
        let Some(id) = orders.lock().await.recv().await else { return Ok(()) };
        // What contention rolled back is tried again until it is there.
        while let Err(error) = mysql::order(&db, &sale, id, now_ms()).await {
            if !matches!(error, DbError::Deadlock | DbError::LockWait) {
                return Err(error.into());
            }
        }
    }
}
