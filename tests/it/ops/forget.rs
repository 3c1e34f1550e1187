//! `seckill buyer forget`: the id of a buyer is nowhere afterwards, whatever the step at which a process died, and the books are as before.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::orders::LONG;
use crate::support::outside::hook_receiver::HookReceiver;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{Answer, World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::policy::PurchasePolicy;
use seckill::p5_reconcile::Window;
use seckill::roles::Role;
use seckill::store::rabbit::declare;
use serde_json::json;
use std::collections::BTreeSet;

/// The buyer; others whose ids hold this one are not found by the search, because of its spelling in them.
pub(super) const BUYER: &str = "U47-11";
const OTHER: &str = "U47_11";

impl World {
    /// A page of life: orders of every kind, and whatever else names the buyer.
    async fn life_of(&self, buyer: &str) -> Vec<SaleId> {
        let (admin, redis) = (self.admin_port(), &self.servers.redis);
        let once = self.sale("once", 10, Some(1)).await;
        let many = self.sale("many", 20, Some(5)).await;
        let returns = PaymentTerms { limit_returns: true, ..LONG };
        let paid = self.paying_sale("paid", 10, Some(3), returns).await;
        let drop = self.drop_of(3, &["first", "second"], |sale| sale.policy = PurchasePolicy::Unlimited).await;
        for sale in &drop {
            self.sale_control().warm(sale).await.unwrap();
        }
        for user in [buyer, OTHER] {
            self.ordered(&once, user).await;
            self.ordered(&many, user).await;
            self.ordered(&many, user).await;
            self.ordered(&drop[0], user).await;
            let order = self.ordered(&paid, user).await;
            admin.pay(order, &format!("payment-{order}")).await;
            let order = self.ordered(&paid, user).await;
            assert_eq!(self.cancel_mine(user, order).await.status, 200);
        }
        let cancelled = self.ordered(&many, buyer).await;
        let reason = json!({ "reason": format!("{buyer} asked for it") });
        assert_eq!(admin.post(&format!("/orders/{cancelled}/cancel"), reason).await.status, 200);
        for body in
            [json!({ "buyer": buyer, "reason": "r" }), json!({ "buyer": OTHER, "reason": format!("as {buyer}") })]
        {
            assert_eq!(admin.post("/blocks", body).await.status, 200);
        }
        assert_eq!(admin.post("/blocks/remove", json!({ "buyer": buyer })).await.status, 200);
        self.sql(&format!(
            "INSERT INTO failed_request (request_id, sale_id, user_id, quantity, source, reason, detail, payload, status) VALUES \
             (7, 'once', '{buyer}', 1, 'audit', 'GIVEN_UP', 'of buyer {buyer}.', '{{\"v\":1,\"user\":\"{buyer}\"}}', 'resolved'); \
             INSERT INTO audit_findings (run_id, sale_id, code, detail) VALUES (1, 'once', 'UNBALANCED', 'buyer {buyer} 3 against 4, buyer {OTHER} 1'); \
             INSERT INTO closed_findings (sale_id, code, units, reason, closed_by) VALUES ('gone', 'UNBALANCED', 0, '({buyer})', 'me')"
        ))
        .await;
        let room = redis.keys.room(0, &once);
        self.redis(&["ZADD", &room, "0.5", buyer, "0.7", OTHER]).await;
        for shard in 0..self.settings.redis.shards {
            self.redis(&["SET", &format!("{}:{{{shard}}}:rate:{buyer}", self.settings.redis.prefix), "1"]).await;
        }
        vec![once, many, paid, drop[0].clone(), drop[1].clone()]
    }

    /// Nothing of the buyer is on its way any more.
    pub(super) async fn is_quiet(&self) {
        eventually("all is sent and given", async || {
            let waits = self.rows("order_events", "TRUE").await + self.rows("outcome_event", "TRUE").await;
            let waits = waits + self.rows("webhook_deliveries", "state = 'WAITING'").await;
            let mut redis = RawRedis::of(self).await;
            let (mut queued, ledgers) = (0, redis.keys().await);
            for ledger in ledgers.iter().filter(|key| key.contains(":ledger:")) {
                queued += redis.hash(ledger).await.values().filter(|record| record.starts_with("Q ")).count();
            }
            let waits = waits + self.rows("stock_grants", "applied_at IS NULL").await;
            waits == 0 && queued == 0 && self.outbox().await == (0, 0)
        })
        .await;
    }

    pub(super) fn forget(&self, buyer: &str) -> crate::support::processes::command_line::CommandOutput {
        self.cli(&["buyer", "forget", buyer, "--reason", "asked, ticket 12", "--json"])
    }
}

/// Where the life of a buyer is found.
const PLACES: [&str; 17] = [
    "orders.user_id",
    "orders.one_per_user_id",
    "orders.cancel_reason",
    "purchases.user_id",
    "drop_purchases.user_id",
    "stock_grants.buyers",
    "failed_request.user_id",
    "failed_request.detail",
    "failed_request.payload",
    "webhook_deliveries.body",
    "operator_acts.target_id",
    "operator_acts.reason",
    "audit_findings.detail",
    "closed_findings.reason",
    "blocked_buyers.user_id",
    "blocked_buyers.reason",
    "redis",
];

/// Forgets the buyer while every sale is audited again and again.
async fn forgotten_amid_audits(world: &World, admin: &AdminPort, sales: &[SaleId]) -> Answer {
    let done = tokio::sync::watch::Sender::new(false);
    let forgetting = async {
        let body = json!({ "buyer": BUYER, "reason": format!("{BUYER} asked"), "by": "Li" });
        let answer = admin.post("/buyers/forget", body).await;
        done.send_replace(true);
        answer
    };
    let auditing = async {
        while !*done.borrow() {
            for sale in sales {
                let audit = world.audit(sale, Window::Now).await;
                assert!(audit.consistent(), "in the midst: {audit:#?}");
            }
        }
    };
    tokio::join!(forgetting, auditing).0
}

#[test]
fn a_forgotten_buyer_is_nowhere_and_the_books_are_as_they_were() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(
            &Role::ALL,
            &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100", "p1_entry.cache_ttl_ms=50"],
            &receiver,
        )
        .await;
        let admin = world.admin_port();
        let sales = world.life_of(BUYER).await;
        for sale in &sales {
            assert!(world.settled(sale).await.consistent());
        }
        world.is_quiet().await;
        let found = world.occurrences(BUYER).await;
        let places: BTreeSet<&str> = found.iter().map(|place| place.split(' ').next().unwrap()).collect();
        let missing: Vec<_> = PLACES.iter().filter(|place| !places.contains(**place)).collect();
        assert!(missing.is_empty(), "{missing:?} are not in {found:?}");
        let (others, units) = (others_places(&world).await, units_of(&world).await);

        let answer = forgotten_amid_audits(&world, &admin, &sales).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json["orders"], 7, "{answer:?}");
        assert_eq!(world.occurrences(BUYER).await, Vec::<String>::new());
        assert_eq!(others_places(&world).await, others, "another buyer is as before");
        assert_eq!(units_of(&world).await, units);
        let pseudonym = answer.text("pseudonym");
        let act = format!(
            "action = 'buyer.forget' AND target_id = '{pseudonym}' AND reason = '{pseudonym} asked' AND outcome = 'ok'"
        );
        assert_eq!(world.rows("operator_acts", &act).await, 1);
        assert_eq!(world.rows("forgotten_buyers", "state = 'DONE' AND user_id IS NULL").await, 1);

        // What is rebuilt from the database knows the pseudonym, and the buyer is a new one.
        let page = admin.get(&format!("/orders?buyer={pseudonym}")).await;
        assert_eq!(page.json["orders"].as_array().unwrap().len(), 7, "{page:?}");
        world.cli(&["sale", "rebuild", "once"]).exits(0);
        eventually("a new buyer", async || {
            world.buy(&sales[0], &format!("{BUYER}-again"), 1, None).await.status == 202
        })
        .await;
        assert_eq!(world.buy(&sales[0], &pseudonym, 1, None).await.status, 409, "the pseudonym has its unit");
        world.finish().await;
    });
}

/// Where the other buyer is named; token buckets come and go.
async fn others_places(world: &World) -> Vec<String> {
    let places = world.occurrences(OTHER).await.into_iter();
    places.filter(|place| !place.contains(":rate:")).collect()
}

/// Units and orders of each sale, and what the pseudonyms and others own together.
async fn units_of(world: &World) -> Vec<i64> {
    let mut all = Vec::new();
    for sum in [
        "stock) FROM sales",
        "quantity) FROM orders",
        "quantity) FROM purchases",
        "quantity) FROM drop_purchases",
        "delta) FROM stock_flow",
    ] {
        all.push(world.number(&format!("SELECT CAST((SELECT SUM({sum}) AS SIGNED) AS n")).await);
    }
    all
}

#[test]
fn a_buyer_who_was_forgotten_comes_back_as_a_new_one() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("again", 10, Some(1)).await;
        world.ordered(&sale, BUYER).await;
        world.settled(&sale).await;
        world.is_quiet().await;
        let first = world.forget(BUYER).exits(0).json();
        // The block ends by itself; the test does not wait for that.
        let api = world.second_world(&[Role::Api], &[]).await;
        eventually("a new buyer", async || api.buy(&sale, BUYER, 1, None).await.status == 202).await;
        assert_eq!(api.buy(&sale, BUYER, 1, None).await.status, 409, "limits count anew");
        world.settled(&sale).await;
        world.is_quiet().await;
        let second = world.forget(BUYER).exits(0).json();
        assert_ne!(first["pseudonym"], second["pseudonym"]);
        assert_eq!(world.occurrences(BUYER).await, Vec::<String>::new());
        assert_eq!(world.rows("orders", "user_id LIKE 'forgotten-%'").await, 2);
        api.stop().await;
        world.finish().await;
    });
}

#[test]
fn whatever_step_it_dies_at_the_repeat_or_p5_ends_it_with_the_same_pseudonym() {
    run(async {
        let mut world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &["redis.shards=4"]).await;
        let sale = world.sale("dies", 100, Some(3)).await;
        let points = ["F70", "F71", "F72", "F73", "F74"];
        for by_p5 in [false, true] {
            for (at, point) in (0i64..).zip(points) {
                let buyer = format!("{BUYER}-{by_p5}-{at}");
                world.ordered(&sale, &buyer).await;
                world.settled(&sale).await;
                world.is_quiet().await;
                let args = ["buyer", "forget", &buyer, "--reason", "asked"];
                assert!(world.run_armed(&format!("{point}=return"), &args), "{point}: it dies there");
                assert_eq!(world.rows("forgotten_buyers", "user_id IS NOT NULL").await, 1, "{point}");
                assert!(world.audit(&sale, Window::Now).await.consistent(), "{point}");
                if by_p5 {
                    world.sql("UPDATE forgotten_buyers SET worked_at = NOW(3) - INTERVAL 31 SECOND").await;
                    world.start_roles(&[Role::Reconcile]).await;
                    eventually("P5 ends it", async || world.rows("forgotten_buyers", "user_id IS NOT NULL").await == 0)
                        .await;
                    world.stop_roles().await;
                    world.start_roles(&[Role::Api, Role::Relay, Role::Consumer]).await;
                } else {
                    world.cli(&args).exits(0);
                }
                assert_eq!(world.occurrences(&buyer).await, Vec::<String>::new(), "{point} {by_p5}");
                let done = 1 + at + if by_p5 { 5 } else { 0 };
                assert_eq!(
                    world.rows("operator_acts", "action = 'buyer.forget'").await,
                    done,
                    "{point}: once on record"
                );
                assert_eq!(world.rows("orders", "user_id LIKE 'forgotten-%'").await, done);
                assert!(world.audit(&sale, Window::Now).await.consistent(), "{point}");
            }
        }
        world.finish().await;
    });
}

#[test]
fn a_buyer_with_a_hundred_thousand_orders_is_forgotten_in_pages() {
    run(async {
        let world = World::with(&[], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let digits = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 \
                      UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
        let many = format!("{digits} a, {digits} b, {digits} c, {digits} e, {digits} f");
        world
            .sql(&format!(
                "INSERT INTO orders (request_id, sale_id, user_id, quantity, amount_cents, source, accepted_at) \
                 SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d, 'archived', '{BUYER}', 1, 1, 'relay', NOW(3) FROM {many}; \
                 INSERT INTO operator_acts (actor_kind, actor_id, actor_name, roles, auth_method, action, target_type, target_id, outcome) \
                 SELECT 'person', 'a', 'a', 'admin', 'shell', 'buyer.block', 'buyer', IF(a.d = 1, '{OTHER}', '{BUYER}'), 'ok' FROM {digits} a, {digits} b, {digits} c"
            ))
            .await;
        let forgotten = world.forget(BUYER).exits(0).json();
        assert_eq!(forgotten["orders"], 100_000);
        assert_eq!(world.occurrences(BUYER).await, Vec::<String>::new());
        assert_eq!(world.rows("operator_acts", &format!("target_id = '{OTHER}'")).await, 100);
        world.finish().await;
    });
}
