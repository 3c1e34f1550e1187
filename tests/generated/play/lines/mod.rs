//! The line of a sale: who enters and leaves, leaders that give units to its entries, the door, the boot fence, rebuilds, orders.

mod facts;
mod keys;
mod leaders;
mod people;

use super::facts::Facts;
use super::{Played, fence_of};
use crate::lines::LinesSetup;
use crate::lines::setup::{Kind, LineFault};
use crate::lines::state::{CLICKS, ENTRIES, LineMoment, REQUESTS};
use crate::lines::steps::LineStep;
use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::World;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use leaders::{Hand, SLEEPS};
use seckill::dev::Server;
use seckill::domain::ids::{EntryId, RequestId, SaleId, UserId};
use seckill::domain::line::{LineKind, LinePlan};
use seckill::domain::message::OrderMessage;
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::Sale;
use seckill::domain::timetable::Timetable;
use seckill::line_offers::single_steps::LineSteps;
use seckill::p2_reserve::Fence;
use seckill::p5_reconcile::ReconcileContext;
use seckill::runtime::{Stopper, now_ms};
use seckill::store::rabbit::declare;

/// What one unit costs, cents.
const PRICE: i64 = 500;
const TERMS: PaymentTerms = PaymentTerms { pay_within_s: 6_000, pay_grace_s: 0, limit_returns: true };
const HOUR_MS: i64 = 3_600_000;

/// The line: its servers, and who is at work.
pub struct LinesStage {
    world: World,
    redis: RawRedis,
    database: AsyncMysqlConnection,
    context: ReconcileContext,
    steps: LineSteps,
    fence: Fence,
    sale: SaleId,
    /// By the model's places.
    entries: [Option<EntryId>; ENTRIES],
    /// Of the requests that P2 was asked for.
    requests: [Option<RequestId>; REQUESTS],
    /// Calls that were given up before they ran.
    late: [Option<RequestId>; ENTRIES],
    /// Accepted, and not written yet.
    on_the_way: [Option<OrderMessage>; REQUESTS],
    leaders: [Hand; 2],
    followers: [Hand; 2],
    fencing: Hand,
    rebuild: Hand,
    /// Fields of meta before the last writes, while those were doors only.
    door_before: Option<[String; 2]>,
    paths: u64,
    _stopper: Stopper,
    _server: Server,
}

impl LinesStage {
    /// A set of servers of its own: paths flush the scripts of Redis.
    pub async fn new(number: u64) -> Self {
        let name = format!("generated-lines{number}");
        let server = own_redis::start(&name).await;
        let world = World::on_redis(&server.url(), &name, &[], &["mysql.connect_timeout_ms=20000"]).await;
        declare(&world.servers.rabbit).await.expect("queues");
        let database = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.expect("mysql");
        let fence = fence_of(&world, 1);
        let stopper = Stopper::new();
        Self {
            redis: RawRedis::of(&world).await,
            database,
            context: world.reconcile_context(),
            steps: world.servers.line_steps(&world.settings, stopper.clone()),
            fence,
            sale: SaleId::parse("none").expect("a sale id"),
            entries: Default::default(),
            requests: Default::default(),
            late: Default::default(),
            on_the_way: Default::default(),
            leaders: Default::default(),
            followers: Default::default(),
            fencing: Hand::default(),
            rebuild: Hand::default(),
            door_before: None,
            paths: number * 100_000_000,
            world,
            _stopper: stopper,
            _server: server,
        }
    }

    fn entry_id(&self, at: usize) -> EntryId {
        EntryId::new(self.paths * 8 + at as u64 + 1).expect("an entry id")
    }

    /// Of a click; an entry's request is the product's choice.
    fn click_id(&self, click: usize) -> RequestId {
        RequestId::new(3_000_000_000_000 + self.paths * 8 + click as u64).expect("an id")
    }

    async fn stored(&self) -> Sale {
        self.world.servers.rows.sales.get(&self.sale).await.expect("the database").expect("the sale")
    }

    async fn run(&mut self, sql: &str) {
        self.database.batch_execute(sql).await.expect(sql);
    }

    fn meta(&self) -> String {
        self.world.servers.redis.keys.meta(0, &self.sale)
    }

    async fn creates(&mut self, setup: &LinesSetup) {
        self.sale = SaleId::parse(&format!("line-{}", self.paths)).expect("a sale id");
        let mut sale = Sale::draft(self.sale.clone(), setup.units.into(), now_ms() - 1_000, now_ms() + HOUR_MS);
        sale.policy = PurchasePolicy::from_limit(setup.limited.then_some(1));
        (sale.payment, sale.price_cents) = (Some(TERMS), PRICE);
        let kind = if setup.kind == Kind::Raffle { LineKind::Raffle } else { LineKind::Waitlist };
        let line = LinePlan { kind, closes_at_ms: now_ms() + HOUR_MS, needs_beacon: false };
        let plan = Timetable { line: Some(line), ..Timetable::default() };
        self.world.servers.rows.sales.create_planned(&sale, &plan).await.expect("a sale");
        self.world.sale_control().warm(&self.sale).await.expect("warm");
        self.fence.pass(0).await.expect("the fence");
        if setup.kind == Kind::Raffle {
            for at in (0..ENTRIES).filter(|at| setup.wants[*at] > 0) {
                self.enters(at, setup.wants[at]).await.expect("an entry");
            }
        }
    }

    async fn strikes(&mut self, moment: &LineMoment, kind: LineFault, at: usize) -> Result<(), String> {
        match kind {
            LineFault::LeaderDies => self.leaders[0] = Hand::default(),
            LineFault::LeaderSleeps => self.leaders[SLEEPS] = std::mem::take(&mut self.leaders[0]),
            LineFault::CallGivenUp => {
                let (who, at) = (at / ENTRIES, at % ENTRIES);
                self.late[at] = self.request_of(at).await;
                self.leaders[who] = Hand::default();
            }
            LineFault::OrderFails => return Err("not played".to_owned()),
            LineFault::RedisForgets => self.forgets(at == 1).await,
            LineFault::DoorForgotten => {
                assert!(moment.keys.before.is_some(), "nothing to forget");
                self.forgets_door().await;
            }
        }
        Ok(())
    }

    async fn makes(&mut self, (moment, next): (&LineMoment, &LineMoment), step: LineStep) -> Result<(), String> {
        match step {
            LineStep::Draws => self.draws(moment).await,
            LineStep::Enters(at) => self.enters(at, 1).await,
            LineStep::Leaves(at) => self.leaves(at).await,
            LineStep::IsBlocked(at) => self.blocks(at).await,
            LineStep::Clicks(click) => self.clicks(click).await,
            LineStep::Lands(request) => self.lands(request).await,
            LineStep::IsPaid(request) => self.pays(request).await,
            LineStep::Expires(request) => self.expires(request).await,
            LineStep::GivesBack(request) => self.gives_back(request).await,
            LineStep::Compares(at) => self.compares(at).await,
            LineStep::RunsLate(at, _) => self.runs_late(at).await,
            LineStep::Follows(who) => self.follows(who, moment.followers[who]).await,
            LineStep::FenceCompares
            | LineStep::FencePasses
            | LineStep::TakesEpoch
            | LineStep::Loads
            | LineStep::ReadsDoor
            | LineStep::OpensSale => self.keeps_up(moment.keys.sells).await,
            LineStep::ReadsSale => Err("not played".to_owned()),
            LineStep::Fault(kind, at) => self.strikes(moment, kind, at).await,
            LineStep::Counts(who)
            | LineStep::Chooses(who)
            | LineStep::WritesIds(who)
            | LineStep::Buys(who, _)
            | LineStep::Records(who)
            | LineStep::Reopens(who)
            | LineStep::TakesClock(who)
            | LineStep::ReadsRow(who)
            | LineStep::SetsDoor(who)
            | LineStep::OpensLine(who) => self.leads(who, (moment, next), step).await,
        }
    }
}

impl Played for LinesSetup {
    type Stage = LinesStage;

    async fn set_up(&self, stage: &mut LinesStage) {
        stage.paths += 1;
        (stage.leaders, stage.followers, stage.fencing, stage.rebuild) = Default::default();
        (stage.entries, stage.requests, stage.late, stage.on_the_way) = Default::default();
        stage.door_before = None;
        let before = stage.sale.clone();
        stage
            .run(&format!(
                "UPDATE sales SET status = 'closed' WHERE sale_id = '{before}'; \
                 UPDATE sale_lines SET state = 'DONE' WHERE sale_id = '{before}'; DELETE FROM blocked_buyers"
            ))
            .await;
        stage.forgets(true).await;
        stage.creates(self).await;
    }

    async fn make(
        &self,
        stage: &mut LinesStage,
        (moment, next): (&LineMoment, &LineMoment),
        step: LineStep,
    ) -> Result<(), String> {
        stage.notes_door((moment, next)).await;
        stage.makes((moment, next), step).await?;
        stage.ages_offers().await;
        Ok(())
    }

    async fn read_facts(&self, stage: &mut LinesStage) -> Facts {
        stage.read_facts().await
    }

    fn facts(&self, moment: &LineMoment) -> Facts {
        facts::of_line(moment)
    }
}

/// Whose request this is. The first click is of the first entry's buyer, each other one of somebody else.
fn buyer(request: usize) -> UserId {
    let first_click = REQUESTS - CLICKS;
    let name = match request.checked_sub(first_click) {
        None => format!("buyer {}", request / 2),
        Some(0) => "buyer 0".to_owned(),
        Some(click) => format!("click {click}"),
    };
    UserId::parse(&name).expect("a user id")
}
