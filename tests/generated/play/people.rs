//! Operators, and who carries grants from the database to Redis, one step at a time.

use super::stage::Stage;
use diesel_async::SimpleAsyncConnection;
use seckill::domain::operator::Actor;
use seckill::faults::{Stepped, Stepwise};
use seckill::orders::rows::CancelRequest;
use seckill::p5_reconcile::dlq::{DlqAction, DlqSelection, DlqService};

/// What the database has of a sale.
const TABLES: [&str; 10] = [
    "sales",
    "orders",
    "purchases",
    "request_outcome",
    "failed_request",
    "stock_flow",
    "stock_grants",
    "stock_withdrawals",
    "sale_epochs",
    "closed_findings",
];

/// A process that gives a grant.
pub type GivingHand = Stepwise<Result<bool, String>>;

impl Stage {
    /// Keeps a copy of all rows of the sale.
    pub async fn backs_up(&mut self) {
        let sale = &self.scene.sale;
        let copy = |table| {
            format!(
                "CREATE TABLE IF NOT EXISTS saved_{table} LIKE {table}; DELETE FROM saved_{table}; \
                 INSERT INTO saved_{table} SELECT * FROM {table} WHERE sale_id = '{sale}'"
            )
        };
        self.database.batch_execute(&TABLES.map(copy).join("; ")).await.expect("copied");
    }

    /// The database comes back as it was then.
    pub async fn goes_back(&mut self) {
        let sale = &self.scene.sale;
        let back = |table| {
            format!("DELETE FROM {table} WHERE sale_id = '{sale}'; INSERT INTO {table} SELECT * FROM saved_{table}")
        };
        let all = format!("BEGIN; {}; COMMIT", TABLES.map(back).join("; "));
        self.database.batch_execute(&all).await.expect("restored");
    }

    /// Tops the sale up by one unit.
    pub async fn tops_up(&mut self) {
        let grant = format!("top-up-{}", self.scene.grants.len());
        self.world.servers.rows.grants.top_up(&self.scene.sale, &grant, 1).await.expect("a top-up");
        self.scene.grants.push(grant);
    }

    /// Cancels an order.
    pub async fn cancels(&mut self, at: usize) {
        let request_id = self.scene.request_id(at);
        let request = CancelRequest { request_id, buyer: None, reason: "returned", by: "a person", act: None };
        self.world.servers.rows.orders.cancel(request).await.expect("a cancellation");
        self.scene.grants.push(format!("cancel-{request_id}"));
    }

    /// Offers the units of failures again.
    pub async fn reclaims(&mut self) {
        let made = self.world.servers.rows.grants.reclaim(&self.scene.sale).await.expect("a reclaim");
        self.scene.grants.push(made.map_or_else(|| "nothing".to_owned(), |made| made.grant_id));
    }

    /// A parked request will never be an order.
    pub async fn gives_up(&mut self, at: usize) {
        let service = DlqService { context: self.context.clone(), actor: Actor::at_the_terminal("a person") };
        let named = vec![self.scene.request_id(at).to_string()];
        let selection = DlqSelection { named, ..DlqSelection::default() };
        let action = DlqAction::GiveUp("no use".to_owned());
        service.apply(&action, &selection, &|_, _| {}).await.expect("given up");
    }

    /// A process reads the grant at this place, to give it.
    pub async fn giver_reads(&mut self, grant: usize) -> Result<(), String> {
        let (control, sale, id) =
            (self.world.sale_control(), self.scene.sale.clone(), self.scene.grants[grant].clone());
        let mut giving =
            Stepwise::new(async move { control.give_one(&sale, &id).await.map_err(|error| error.to_string()) });
        match giving.step().await {
            Stepped::At(_) => self.giver = Some(giving),
            Stepped::Ended(ended) => return Err(format!("the grant is not open: {ended:?}")),
        }
        Ok(())
    }

    /// It goes on: gives, then marks.
    pub async fn giver_goes_on(&mut self) -> Result<(), String> {
        let Some(giving) = &mut self.giver else { return Ok(()) };
        if let Stepped::Ended(ended) = giving.step().await {
            self.giver = None;
            ended?;
        }
        Ok(())
    }
}
