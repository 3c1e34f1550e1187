//! What both sides say of orders: the model of its shop, the database and Redis of what is in them.

use super::ShopStage;
use crate::orders::state::{BUYERS, Due, Keys, Of, PAYMENTS, Purchase, Shop};
use crate::play::facts::{Facts, grant_said};
use crate::support::basics::resp::Reply;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use diesel_async::RunQueryDsl;
use seckill::domain::payment::PaymentState;

#[derive(QueryableByName)]
struct ShopRow {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    a: i64,
    #[diesel(sql_type = BigInt)]
    b: i64,
    #[diesel(sql_type = BigInt)]
    c: i64,
    #[diesel(sql_type = Text)]
    said: String,
}

impl ShopStage {
    fn query(&self) -> String {
        let (sale, ids) = (&self.sale, (0..BUYERS).map(|at| self.id(at).to_string()).collect::<Vec<_>>().join(", "));
        format!(
            "SELECT 'sale' AS kind, '' AS name, stock AS a, CAST(epoch AS SIGNED) AS b, 0 AS c, '' AS said \
               FROM sales WHERE sale_id = '{sale}' \
             UNION ALL SELECT 'order', CAST(request_id AS CHAR), expire_at <= NOW(3), 0, 0, state \
               FROM orders WHERE sale_id = '{sale}' \
             UNION ALL SELECT 'failed', CAST(request_id AS CHAR), 0, 0, 0, reason \
               FROM request_outcome WHERE sale_id = '{sale}' AND kind = 'FAILED' \
             UNION ALL SELECT 'grant', CAST(grant_id AS CHAR), quantity, CAST(epoch AS SIGNED), applied_at IS NOT NULL, '' \
               FROM stock_grants WHERE sale_id = '{sale}' \
             UNION ALL SELECT 'payment', CAST(payment_id AS CHAR), 0, 0, 0, state FROM payments WHERE request_id IN ({ids})"
        )
    }

    async fn read_redis(&mut self, facts: &mut Facts) {
        let keys = self.world.servers.redis.keys.clone();
        let meta = self.redis.hash(&keys.meta(0, &self.sale)).await;
        let mut note = |name: &str, value: String| {
            facts.insert(format!("redis: {name}"), value);
        };
        let Some(state) = meta.get("state") else { return note("keys", "missing".to_owned()) };
        note("keys", state.clone());
        note("epoch", meta.get("epoch").cloned().unwrap_or_default());
        let stock = self.redis.call(&["GET", &keys.stock(0, &self.sale)]).await;
        note("units", if stock == Reply::Nil { "-".to_owned() } else { stock.text() });
        for (grant, _) in self.redis.hash(&keys.grants(0, &self.sale)).await {
            note(&format!("has {grant}"), "yes".to_owned());
        }
    }

    /// Reads the database and Redis.
    pub(super) async fn read_facts(&mut self) -> Facts {
        let (mut facts, query) = (Facts::new(), self.query());
        let rows: Vec<ShopRow> = diesel::sql_query(query).load(&mut self.database).await.expect("rows of the sale");
        for ShopRow { kind, name, a, b, c, said } in rows {
            let at = (0..BUYERS).find(|at| self.id(*at).to_string() == name);
            let mut grants = (0..BUYERS).flat_map(|at| [(at, Of::Batch), (at, Of::Cancel)]);
            let grant = grants.find(|(at, of)| self.grant_name(*at, *of) == name);
            let (name, value) = match (kind.as_str(), at, grant) {
                ("sale", ..) => {
                    facts.insert("database: epoch".to_owned(), b.to_string());
                    ("database: stock".to_owned(), a.to_string())
                }
                ("order", Some(at), _) => {
                    if said == "UNPAID" {
                        facts.insert(format!("order {at}: overdue"), (a != 0).to_string());
                    }
                    (format!("order {at}: state"), said.to_lowercase())
                }
                ("failed", Some(at), _) => (format!("order {at}: failed"), "yes".to_owned()),
                ("grant", _, Some((at, of))) => (format!("order {at}: {of:?}"), grant_said(a, b, c != 0)),
                ("payment", ..) => (format!("payment {}", &name[name.find('-').unwrap_or(0)..]), said),
                _ => continue,
            };
            facts.insert(name, value);
        }
        self.read_redis(&mut facts).await;
        renamed(self, &facts)
    }
}

/// What the model says.
pub(super) fn of_shop(shop: &Shop) -> Facts {
    let mut facts = Facts::new();
    let mut note = |name: String, value: String| {
        facts.insert(name, value);
    };
    note("database: stock".to_owned(), shop.stock.to_string());
    note("database: epoch".to_owned(), shop.db_epoch.to_string());
    note("redis: keys".to_owned(), format!("{:?}", shop.keys).to_lowercase());
    if shop.keys != Keys::Missing {
        note("redis: epoch".to_owned(), shop.epoch.to_string());
        note("redis: units".to_owned(), shop.units.to_string());
    }
    for (at, order) in shop.orders.iter().enumerate() {
        if let Some(state) = order.state {
            note(format!("order {at}: state"), format!("{state:?}").to_lowercase());
            if format!("{state:?}") == "Unpaid" {
                note(format!("order {at}: overdue"), (order.due == Due::Passed).to_string());
            }
        }
        if order.purchase == Purchase::Failed {
            note(format!("order {at}: failed"), "yes".to_owned());
        }
        for of in [Of::Batch, Of::Cancel] {
            let grant = order.grant(of);
            if grant.units > 0 {
                note(format!("order {at}: {of:?}"), grant_said(grant.units.into(), grant.epoch.into(), grant.marked));
                if shop.keys == Keys::Open && grant.epoch == shop.epoch && !grant.marked {
                    note(format!("redis: has {of:?} {at}"), grant.named.to_string());
                }
            }
        }
        for one in 0..PAYMENTS {
            if let Some(row) = order.payments[one].row {
                note(format!("payment -{at}-{one}"), said(row).to_owned());
            }
        }
    }
    facts
}

/// Grants by their places: those that Redis may have, and whether it has them.
fn renamed(stage: &ShopStage, facts: &Facts) -> Facts {
    let epoch = facts.get("redis: epoch").cloned();
    let is_open = facts.get("redis: keys").is_some_and(|state| state == "open");
    let mut all: Facts = facts
        .iter()
        .filter(|(name, _)| !name.starts_with("redis: has"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for at in 0..BUYERS {
        for of in [Of::Batch, Of::Cancel] {
            let Some(grant) = facts.get(&format!("order {at}: {of:?}")) else { continue };
            let of_epoch = epoch.as_ref().is_some_and(|epoch| grant.ends_with(&format!(" in {epoch}")));
            if is_open && of_epoch {
                let has = facts.contains_key(&format!("redis: has {}", stage.grant_name(at, of)));
                all.insert(format!("redis: has {of:?} {at}"), has.to_string());
            }
        }
    }
    all
}

const fn said(state: PaymentState) -> &'static str {
    match state {
        PaymentState::Applied => "APPLIED",
        PaymentState::RefundNeeded => "REFUND_NEEDED",
        PaymentState::Refunded => "REFUNDED",
    }
}
