//! Orders after CONFIRMED: payments, deadlines, cancellations, the sweep in its steps, grants on their way to Redis, a rebuild.

mod facts;

use super::Played;
use super::facts::Facts;
use super::people::GivingHand;
use crate::orders::OrdersSetup;
use crate::orders::setup::OrderFault;
use crate::orders::state::{BUYERS, Money, Of, PROCESSES, Rebuild, Shop};
use crate::orders::steps::OrderStep;
use crate::support::basics::resp::RawRedis;
use crate::support::world::World;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::message::OrderMessage;
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::payment::{Price, RefundReason};
use seckill::domain::policy::{PurchasePolicy, Quantity};
use seckill::domain::request::Purchase as Asked;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::Sale;
use seckill::faults::{Stepped, Stepwise};
use seckill::orders::rows::{CancelRequest, NewPayment, OverdueOrder};
use seckill::p5_reconcile::ReconcileContext;
use seckill::p5_reconcile::single_steps::{self, SharedWatch};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::declare;
use seckill::store::redis::SentEntry;

/// What one unit costs, cents.
const PRICE: i64 = 500;
const TERMS: PaymentTerms = PaymentTerms { pay_within_s: 6_000, pay_grace_s: 0, limit_returns: false };

/// A process that expires orders and gives grants.
#[derive(Default)]
struct ProcessHand {
    chosen: Vec<OverdueOrder>,
    giving: Option<GivingHand>,
}

/// The shop: its servers, and who is at work.
pub struct ShopStage {
    world: World,
    redis: RawRedis,
    database: AsyncMysqlConnection,
    context: ReconcileContext,
    sale: SaleId,
    processes: [ProcessHand; PROCESSES],
    rebuild: Option<Stepwise<Result<bool, String>>>,
    /// Accepted, and not written yet.
    on_the_way: [Option<OrderMessage>; BUYERS],
    paths: u64,
}

impl ShopStage {
    /// A broker, a database and keys of its own.
    pub async fn new(number: u64) -> Self {
        let world = World::with(&[], &["mysql.connect_timeout_ms=20000"]).await;
        declare(&world.servers.rabbit).await.expect("queues");
        let database = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.expect("mysql");
        Self {
            redis: RawRedis::of(&world).await,
            database,
            context: world.reconcile_context(),
            sale: SaleId::parse("none").expect("a sale id"),
            processes: Default::default(),
            rebuild: None,
            on_the_way: Default::default(),
            paths: number * 100_000_000,
            world,
        }
    }

    fn id(&self, at: usize) -> RequestId {
        RequestId::new(3_000_000_000_000 + self.paths * 8 + at as u64).expect("an id")
    }

    fn grant_name(&self, at: usize, of: Of) -> String {
        let kind = match of {
            Of::Batch => "return",
            Of::Cancel => "cancel",
        };
        format!("{kind}-{}", self.id(at))
    }

    async fn sale(&self) -> Sale {
        self.world.servers.rows.sales.get(&self.sale).await.expect("the database").expect("the sale")
    }

    async fn run(&mut self, sql: &str) {
        self.database.batch_execute(sql).await.expect(sql);
    }

    async fn buys(&mut self, at: usize, epoch: u8) -> Result<(), String> {
        let user_id = UserId::parse(&format!("buyer {at}")).expect("a user");
        let (request_id, redis) = (self.id(at), &self.world.servers.redis);
        let asked = Asked { request_id, sale_id: self.sale.clone(), user_id, person: None, quantity: Quantity::ONE };
        let decided = redis.stock.reserve(&self.sale, 0, epoch.into(), &[&asked]).await;
        match decided.map_err(|fault| fault.to_string())?.reserved[..] {
            [Reserved::Accepted] => {}
            ref other => return Err(format!("the script says {other:?}")),
        }
        let record = redis.ledger.lookup(&self.sale, 0, &[request_id]).await.expect("redis").remove(0);
        self.on_the_way[at] = record.map(|record| record.order_message(request_id, &self.sale, 0));
        let entry = redis.outbox.new_entries(0, "relay", 1).await.expect("redis").remove(0);
        let sent = [SentEntry { orders: entry.orders(), id: entry.id }];
        redis.outbox.done(0, "relay", &sent).await.expect("redis");
        Ok(())
    }

    async fn lands(&mut self, at: usize) -> Result<(), String> {
        let order = self.on_the_way[at].take().expect("an order on its way");
        let persister = &self.world.servers.rows.persister;
        persister.persist_one(&order, PersistSource::Relay).await.map_err(|error| error.to_string())?;
        let id = order.purchase.request_id;
        let decided = self.world.servers.rows.requests.outcome_of(id).await.expect("mysql");
        let marks: Vec<_> = decided.into_iter().map(|decided| (id, decided.outcome)).collect();
        self.world.servers.redis.ledger.mark_outcomes(&self.sale, 0, &marks).await.expect("redis");
        Ok(())
    }

    async fn deadline(&mut self, at: usize, when: &str) {
        let when = format!("NOW(3) {when} INTERVAL 1 HOUR");
        let id = self.id(at);
        self.run(&format!("UPDATE orders SET expire_at = {when}, pay_by = {when} WHERE request_id = {id}")).await;
    }

    async fn chooses(&mut self, bits: u8, process: usize) -> Result<(), String> {
        let wanted: Vec<RequestId> = (0..BUYERS).filter(|at| bits >> at & 1 == 1).map(|at| self.id(at)).collect();
        let mut due = self.world.servers.rows.orders.overdue(&self.sale, None, 100).await.expect("mysql");
        due.retain(|order| wanted.contains(&order.request_id));
        if due.len() != wanted.len() {
            return Err(format!("overdue are {due:?}"));
        }
        self.processes[process].chosen = due;
        Ok(())
    }

    async fn pays(&self, at: usize, one: usize, money: Money) -> Result<(), String> {
        let amount_cents = if money == Money::Other { PRICE - 1 } else { PRICE };
        let payment = NewPayment {
            payment_id: self.payment_id(at, one),
            request_id: self.id(at),
            price: Price { amount_cents, currency: "CNY".to_owned() },
        };
        let received = self.world.servers.rows.orders.receive(&payment, Some(RefundReason::NoOrder), None).await;
        received.map(drop).map_err(|error| error.to_string())
    }

    fn payment_id(&self, at: usize, one: usize) -> String {
        format!("{}-{at}-{one}", self.paths)
    }

    async fn cancels(&self, at: usize, by_buyer: bool) -> Result<(), String> {
        let user = UserId::parse(&format!("buyer {at}")).expect("a user");
        let buyer = by_buyer.then_some(&user);
        let request = CancelRequest { request_id: self.id(at), buyer, reason: "r", by: "by", act: None };
        self.world.servers.rows.orders.cancel(request).await.map(drop).map_err(|error| error.to_string())
    }

    async fn reads_grant(&mut self, at: usize, of: Of, process: usize) -> Result<(), String> {
        let (control, sale, name) = (self.world.sale_control(), self.sale.clone(), self.grant_name(at, of));
        let mut giving =
            Stepwise::new(async move { control.give_one(&sale, &name).await.map_err(|error| error.to_string()) });
        match giving.step().await {
            Stepped::At(_) => self.processes[process].giving = Some(giving),
            Stepped::Ended(ended) => return Err(format!("the grant is not open: {ended:?}")),
        }
        Ok(())
    }

    async fn gives(&mut self, process: usize) -> Result<(), String> {
        let Some(giving) = &mut self.processes[process].giving else { return Err("nothing to give".to_owned()) };
        if let Stepped::Ended(ended) = giving.step().await {
            self.processes[process].giving = None;
            ended?;
        }
        Ok(())
    }

    /// Goes on with the rebuild up to this place, or to its end.
    async fn rebuilds(&mut self, to: &str) -> Result<(), String> {
        if self.rebuild.is_none() {
            let (context, sale) = (self.context.clone(), self.sale().await);
            let backlog_max = self.world.settings.p1_entry.backlog_max;
            self.rebuild = Some(Stepwise::new(async move {
                let done = single_steps::attempt_rebuild(&context, &sale, backlog_max, &SharedWatch::default()).await;
                done.map_err(|error| error.to_string())
            }));
        }
        let attempt = self.rebuild.as_mut().expect("a rebuild");
        loop {
            match attempt.step().await {
                Stepped::At(place) if place == to => return Ok(()),
                Stepped::At(_) => {}
                Stepped::Ended(ended) => {
                    self.rebuild = None;
                    return match ended {
                        Ok(true) if to == "the end" => Ok(()),
                        other => Err(format!("the rebuild ended before {to}: {other:?}")),
                    };
                }
            }
        }
    }

    async fn strikes(&mut self, shop: &Shop, kind: OrderFault, (at, k): (usize, usize)) -> Result<(), String> {
        match kind {
            OrderFault::ProcessDies => self.processes[k] = ProcessHand::default(),
            OrderFault::AnswerLost => self.pays(at, k, shop.orders[at].payments[k].money).await?,
            OrderFault::PaymentHalf => return Err("not played".to_owned()),
            OrderFault::RedisWiped => {
                self.redis.clear().await;
                self.rebuild = None;
            }
            OrderFault::RebuildDies => self.rebuild = None,
            OrderFault::ClockGoesBack => self.deadline(at, "+").await,
        }
        Ok(())
    }
}

impl Played for OrdersSetup {
    type Stage = ShopStage;

    async fn set_up(&self, stage: &mut ShopStage) {
        stage.paths += 1;
        (stage.processes, stage.rebuild, stage.on_the_way) = Default::default();
        stage.redis.clear().await;
        let before = stage.sale.clone();
        stage.run(&format!("UPDATE sales SET status = 'closed' WHERE sale_id = '{before}'")).await;
        let paying = |sale: &mut Sale| {
            (sale.policy, sale.payment, sale.price_cents) = (PurchasePolicy::from_limit(None), Some(TERMS), PRICE);
        };
        stage.sale = stage.world.sale_with(&format!("shop-{}", stage.paths), self.stock.into(), paying).await;
        let servers = &stage.world.servers.redis.boot_fence;
        let incarnation = servers.incarnation(0).await.expect("redis");
        servers.load_script(0, &incarnation).await.expect("redis");
    }

    async fn make(&self, stage: &mut ShopStage, (shop, next): (&Shop, &Shop), step: OrderStep) -> Result<(), String> {
        match step {
            OrderStep::Buy(at) => stage.buys(at, shop.epoch).await?,
            OrderStep::Land(at) => stage.lands(at).await?,
            OrderStep::DeadlinePasses(at) => stage.deadline(at, "-").await,
            OrderStep::Choose(bits, process) => stage.chooses(bits, process).await?,
            OrderStep::ExpireBatch(process) => {
                let chosen = std::mem::take(&mut stage.processes[process].chosen);
                let expired = stage.world.servers.rows.orders.expire(&stage.sale, chosen).await;
                expired.map_err(|error| error.to_string())?;
            }
            OrderStep::ReturnApart(_) => return Err("not played".to_owned()),
            OrderStep::ReadsGrant(at, of, process) => stage.reads_grant(at, of, process).await?,
            OrderStep::GivesGrant(process) => {
                stage.gives(process).await?;
                if next.is_free(process) == stage.processes[process].giving.is_some() {
                    return Err("the model's giver has ended, or has not".to_owned());
                }
            }
            OrderStep::Rebuild => {
                let to = match shop.rebuild {
                    Rebuild::None => "rebuild: begun",
                    Rebuild::Begun => "rebuild: snapped",
                    Rebuild::Snapped(_) => "the end",
                };
                stage.rebuilds(to).await?;
            }
            OrderStep::Pays(..) => {}
            OrderStep::ReportsPayment(at, one) => stage.pays(at, one, shop.orders[at].payments[one].money).await?,
            OrderStep::StartsPayment(at) => {
                let started = stage.world.servers.rows.orders.start(stage.id(at), None).await;
                started.map_err(|error| error.to_string())?;
            }
            OrderStep::BuyerCancels(at) => stage.cancels(at, true).await?,
            OrderStep::OperatorCancels(at) => stage.cancels(at, false).await?,
            OrderStep::SendsBack(at, one) => {
                let payment = stage.payment_id(at, one);
                let sent = stage.world.servers.rows.orders.refunded(stage.id(at), &payment, None);
                sent.await.map_err(|error| error.to_string())?;
            }
            OrderStep::Fault(kind, at, k) => stage.strikes(shop, kind, (at, k)).await?,
        }
        Ok(())
    }

    async fn read_facts(&self, stage: &mut ShopStage) -> Facts {
        stage.read_facts().await
    }

    fn facts(&self, shop: &Shop) -> Facts {
        facts::of_shop(shop)
    }
}
