//! Buyers of a line, and what becomes of their requests: entries, clicks, orders, payments, units that come back.

use super::{LinesStage, PRICE, buyer};
use crate::lines::state::{ENTRIES, LineMoment, REQUESTS};
use seckill::domain::ids::RequestId;
use seckill::domain::payment::{Price, RefundReason};
use seckill::domain::policy::Quantity;
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale_door::SaleDoor;
use seckill::orders::rows::NewPayment;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::redis::{DoorsOfGroup, SentEntry};

impl LinesStage {
    /// A buyer enters; the one whose place this is.
    pub(super) async fn enters(&mut self, at: usize, quantity: u8) -> Result<(), String> {
        let (id, user) = (self.entry_id(at), buyer(at * 2));
        self.entries[at] = Some(id);
        let entered = self.steps.enters(&self.sale, (id, &user), quantity.into()).await?;
        entered.then_some(()).ok_or("the line takes no entry".to_owned())
    }

    /// The raffle is closed and drawn: an entry's place is its rank from now on.
    pub(super) async fn draws(&mut self, moment: &LineMoment) -> Result<(), String> {
        self.world.line_is_over(&self.sale.clone()).await;
        self.world.keep_lines().await;
        let by_rank = self.steps.by_rank(&self.sale).await?;
        let places = (0..ENTRIES).filter(|at| self.entries[*at].is_some()).collect::<Vec<_>>();
        if by_rank.len() != places.len() {
            return Err(format!("{moment:?}: {} entries are drawn", by_rank.len()));
        }
        for (at, id) in places.into_iter().zip(by_rank) {
            self.entries[at] = Some(id);
        }
        Ok(())
    }

    pub(super) async fn leaves(&mut self, at: usize) -> Result<(), String> {
        let (id, user) = (self.entries[at].ok_or("no entry")?, self.user_of(at).await);
        let left = self.steps.leaves(&self.sale, (id, &user)).await?;
        left.then_some(()).ok_or("the entry stays".to_owned())
    }

    /// Its buyer is blocked.
    pub(super) async fn blocks(&mut self, at: usize) -> Result<(), String> {
        let user = self.user_of(at).await;
        let block = format!(
            "INSERT INTO blocked_buyers (user_id, reason, blocked_at, changed_at) VALUES ('{user}', 'r', NOW(3), NOW(3))"
        );
        self.run(&block).await;
        Ok(())
    }

    /// A purchase by click, of one unit.
    pub(super) async fn clicks(&mut self, click: usize) -> Result<(), String> {
        let (at, id) = (REQUESTS - super::CLICKS + click, self.click_id(click));
        self.requests[at] = Some(id);
        self.buys(at, id, SaleDoor::Open).await
    }

    /// A call that its caller has given up runs.
    pub(super) async fn runs_late(&mut self, at: usize) -> Result<(), String> {
        let id = self.late[at].take().ok_or("no such call")?;
        self.requests[at * 2] = Some(id);
        self.buys(at * 2, id, SaleDoor::Line).await
    }

    async fn buys(&mut self, at: usize, request_id: RequestId, door: SaleDoor) -> Result<(), String> {
        let (user_id, quantity) = if at < ENTRIES * 2 {
            (self.user_of(at / 2).await, self.quantity_of(at / 2).await)
        } else {
            (buyer(at), Quantity::ONE)
        };
        let (epoch, sale_id) = (self.stored().await.epoch, self.sale.clone());
        let asked = Purchase { request_id, sale_id, user_id, person: None, quantity };
        let stock = &self.world.servers.redis.stock;
        let decided = stock.reserve_by(&self.sale, (0, epoch), &[&asked], &DoorsOfGroup::All(door)).await;
        match decided.map_err(|fault| fault.to_string())?.reserved[..] {
            [Reserved::Accepted] => self.takes_message(at, request_id).await,
            ref other => Err(format!("the script says {other:?}")),
        }
    }

    /// What a leader's purchase has put on its way, if it has.
    pub(super) async fn collects(&mut self, at: usize) -> Result<(), String> {
        let Some(id) = self.request_of(at).await else { return Ok(()) };
        self.requests[at * 2] = Some(id);
        self.takes_message(at * 2, id).await
    }

    /// Takes the message of an accepted request out of Redis.
    async fn takes_message(&mut self, at: usize, id: RequestId) -> Result<(), String> {
        let redis = &self.world.servers.redis;
        for entry in redis.outbox.new_entries(0, "relay", 10).await.map_err(|fault| fault.to_string())? {
            let record = redis.ledger.lookup(&self.sale, 0, &[id]).await.map_err(|fault| fault.to_string())?.remove(0);
            self.on_the_way[at] = record.map(|record| record.order_message(id, &self.sale, 0));
            let sent = [SentEntry { orders: entry.orders(), id: entry.id }];
            redis.outbox.done(0, "relay", &sent).await.map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }

    /// The order of an accepted request is written.
    pub(super) async fn lands(&mut self, at: usize) -> Result<(), String> {
        let order = self.on_the_way[at].take().ok_or("no order is on its way")?;
        let persister = &self.world.servers.rows.persister;
        persister.persist_one(&order, PersistSource::Relay).await.map_err(|error| error.to_string())?;
        let id = order.purchase.request_id;
        let decided = self.world.servers.rows.requests.outcome_of(id).await.map_err(|error| error.to_string())?;
        let marks: Vec<_> = decided.into_iter().map(|decided| (id, decided.outcome)).collect();
        let marked = self.world.servers.redis.ledger.mark_outcomes(&self.sale, 0, &marks).await;
        marked.map(drop).map_err(|fault| fault.to_string())
    }

    pub(super) async fn pays(&mut self, at: usize) -> Result<(), String> {
        let request_id = self.requests[at].ok_or("no request")?;
        let units = if at < ENTRIES * 2 { self.quantity_of(at / 2).await } else { Quantity::ONE };
        let payment = NewPayment {
            payment_id: format!("p-{request_id}"),
            request_id,
            price: Price { amount_cents: PRICE * i64::from(units.get()), currency: "CNY".to_owned() },
        };
        let orders = &self.world.servers.rows.orders;
        let received = orders.receive(&payment, Some(RefundReason::NoOrder), None).await;
        received.map(drop).map_err(|error| error.to_string())
    }

    /// Its deadline passes, and the sweep expires it.
    pub(super) async fn expires(&mut self, at: usize) -> Result<(), String> {
        let id = self.requests[at].ok_or("no request")?;
        let past = "expire_at = NOW(3) - INTERVAL 1 HOUR, pay_by = NOW(3) - INTERVAL 1 HOUR";
        self.run(&format!("UPDATE orders SET {past} WHERE request_id = {id}")).await;
        let orders = &self.world.servers.rows.orders;
        let mut due = orders.overdue(&self.sale, None, 100).await.map_err(|error| error.to_string())?;
        due.retain(|order| order.request_id == id);
        if due.len() != 1 {
            return Err(format!("{id} is not overdue"));
        }
        orders.expire(&self.sale, due).await.map(drop).map_err(|error| error.to_string())
    }

    /// The units of an order that ended come back by the grant that has its name.
    pub(super) async fn gives_back(&mut self, at: usize) -> Result<(), String> {
        let name = format!("return-{}", self.requests[at].ok_or("no request")?);
        let given = self.world.sale_control().give_one(&self.sale, &name).await.map_err(|error| error.to_string())?;
        given.then_some(()).ok_or(format!("{name} was given before"))
    }

    /// Offers count as made long ago: who has no outcome is asked for again.
    pub(super) async fn ages_offers(&mut self) {
        let sale = self.sale.clone();
        self.run(&format!(
            "UPDATE line_entries SET state_at = NOW(3) - INTERVAL 1 HOUR WHERE sale_id = '{sale}' AND state = 'OFFERED'"
        ))
        .await;
    }
}
