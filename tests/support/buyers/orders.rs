//! Orders of a [`World`] after they were confirmed: sales with a payment step, what buyers and the shop's backend do.

use crate::support::basics::answer::Answer;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, eventually};
use reqwest::Method;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::policy::PurchasePolicy;
use serde_json::json;

/// Enough time to pay, for tests about something else.
pub const LONG: PaymentTerms = PaymentTerms { pay_within_s: 600, pay_grace_s: 0, limit_returns: false };

impl World {
    /// A sale that sells now, with a payment step.
    pub async fn paying_sale(&self, id: &str, stock: i64, limit: Option<u32>, terms: PaymentTerms) -> SaleId {
        let change = |sale: &mut seckill::domain::sale::Sale| {
            (sale.policy, sale.payment) = (PurchasePolicy::from_limit(limit), Some(terms));
        };
        self.sale_with(id, stock, change).await
    }

    /// Alice pays twice and is cancelled by an operator, bob does not pay in time, carol cancels: every change that an order can see.
    pub async fn three_lives(&self, admin: &AdminPort, sale: &SaleId) -> [RequestId; 3] {
        let [alice, bob, carol] =
            [self.ordered(sale, "alice").await, self.ordered(sale, "bob").await, self.ordered(sale, "carol").await];
        admin.pay(alice, "right").await;
        admin.pay(alice, "twice").await;
        assert_eq!(admin.post(&format!("/orders/{alice}/cancel"), json!({ "reason": "r" })).await.status, 200);
        self.overdue(bob).await;
        self.cancel_mine("carol", carol).await;
        [alice, bob, carol]
    }

    /// Buys one unit, and waits for the order.
    pub async fn ordered(&self, sale: &SaleId, user: &str) -> RequestId {
        let id = self.bought(sale, user).await;
        eventually("an order", async || self.status_of(sale, user, id).await.0 == "CONFIRMED").await;
        id
    }

    /// The deadline of an order passes now, as the database sees it.
    pub async fn overdue(&self, request_id: RequestId) {
        let past = "expire_at = NOW(3) - INTERVAL 1 SECOND, pay_by = NOW(3) - INTERVAL 1 SECOND";
        self.sql(&format!("UPDATE orders SET {past} WHERE request_id = {request_id}")).await;
    }

    /// The state of an order, as its row has it.
    pub async fn order_in(&self, state: &str, request_id: RequestId) -> bool {
        self.rows("orders", &format!("request_id = {request_id} AND state = '{state}'")).await == 1
    }

    /// A buyer's own order.
    pub async fn my_order(&self, user: &str, request_id: RequestId) -> Answer {
        Answer::of(self.request(Method::GET, &format!("/v1/orders/{request_id}"), user)).await
    }

    /// A buyer cancels.
    pub async fn cancel_mine(&self, user: &str, request_id: RequestId) -> Answer {
        Answer::of(self.request(Method::DELETE, &format!("/v1/orders/{request_id}"), user)).await
    }
}

impl AdminPort {
    /// The shop's backend reports a payment of the price of one unit.
    pub async fn pay(&self, request_id: RequestId, payment_id: &str) -> Answer {
        self.pay_amount(request_id, payment_id, 100).await
    }

    /// The same, of another amount.
    pub async fn pay_amount(&self, request_id: RequestId, payment_id: &str, amount: i64) -> Answer {
        let body = json!({ "payment_id": payment_id, "amount": amount, "currency": "CNY" });
        self.post(&format!("/orders/{request_id}/paid"), body).await
    }
}
