//! The sweep dies at each of its crash points, and the next one does the rest: no unit comes back twice, none stays away. The same
//! for payments, their starts, refunds and cancellations.

use crate::support::buyers::orders::LONG;
use crate::support::outside::downstream::Downstream;
use crate::support::world::admin_port::TOKEN;
use crate::support::world::{World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::RequestId;
use seckill::domain::order_life::PaymentTerms;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::json;

/// Acts of this kind on an order.
async fn acts(world: &World, action: &str, id: RequestId) -> i64 {
    world.rows("operator_acts", &format!("action = '{action}' AND target_id = '{id}' AND outcome = 'ok'")).await
}

/// Grants that Redis is not known to have.
async fn open_grants(world: &World) -> i64 {
    world.rows("stock_grants", "applied_at IS NULL").await
}

#[test]
fn a_sweep_that_dies_at_any_line_is_finished_by_the_next_one() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("dies", 10, Some(1), LONG).await;
        let points = ["F27", "F28", "F29", "F23"];
        let mut ids = Vec::new();
        for point in points {
            ids.push(world.ordered(&sale, point).await);
        }
        // An api would give open grants, too.
        world.stop_roles().await;
        for (n, (point, id)) in (7..).zip(points.into_iter().zip(ids)) {
            world.overdue(id).await;
            world.process("reconcile", &format!("{point}=return"), &[]).dies_at(point).await;
            let expired = world.order_in("EXPIRED", id).await;
            let committed = ["F29", "F23"].contains(&point);
            assert_eq!(expired, committed, "{point}");
            assert_eq!(open_grants(&world).await, i64::from(committed), "{point}: its grant is open");
            let units = world.servers.redis.stock.units(&sale, 0).await.unwrap();
            assert_eq!(
                units,
                Some(if point == "F23" { n } else { n - 1 }),
                "{point}: given and not marked, or not given"
            );
            let next = world.extra_roles(&[Reconcile], |_| {});
            eventually("expired", async || world.order_in("EXPIRED", id).await).await;
            eventually("given", async || open_grants(&world).await == 0).await;
            next.stop().await;
            assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(n), "{point}");
        }
        assert_eq!(world.rows("stock_flow", "kind = 'expire'").await, 4);
        world.finish().await;
    });
}

#[test]
fn a_payment_that_dies_at_any_line_is_told_again_and_counts_once() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("reported-again", 10, Some(1), LONG).await;
        for point in ["F30", "F31"] {
            let id = world.ordered(&sale, point).await;
            let rid = id.to_string();
            let args = ["order", "paid", &rid, "--payment-id", point, "--amount", "100", "--currency", "CNY"];
            let died = world.cli_with_faults(&format!("{point}=return"), &args);
            assert_eq!(died.code, None, "{died:?}");
            assert_eq!(world.order_in("PAID", id).await, point == "F31", "{point}");
            let acts = format!("action = 'order.paid' AND target_id = '{id}'");
            assert_eq!(world.rows("operator_acts", &acts).await, i64::from(point == "F31"), "{point}: with its change");
            world.cli(&args).exits(0);
            assert!(world.order_in("PAID", id).await);
            assert_eq!(world.rows("operator_acts", &acts).await, 1, "{point}: a repeat is no act");
        }
        assert_eq!(world.rows("payments", "state = 'APPLIED'").await, 2);
        let id = world.ordered(&sale, "F32").await;
        let rid = id.to_string();
        let args = ["order", "cancel", &rid, "--reason", "r"];
        let died = world.cli_with_faults("F32=return", &args);
        assert_eq!(died.code, None, "{died:?}");
        assert!(world.order_in("UNPAID", id).await);
        world.cli(&args).exits(0);
        assert!(world.order_in("CANCELLED", id).await);
        assert_eq!(world.rows("operator_acts", &format!("action = 'order.cancel' AND target_id = '{id}'")).await, 1);
        world.finish().await;
    });
}

#[test]
fn a_start_of_a_payment_that_dies_at_any_line_moves_the_deadline_once() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("started", 10, Some(1), LONG).await;
        for (point, committed) in [("F34", false), ("F35", true)] {
            let id = world.ordered(&sale, point).await;
            let deadline = async || {
                let query = "SELECT TIMESTAMPDIFF(SECOND, created_at, expire_at) AS n FROM orders WHERE request_id =";
                world.number(&format!("{query} {id}")).await
            };
            let path = format!("/orders/{id}/paying");
            let armed = world.process("relay", &format!("{point}=return"), &[&format!("admin.token={TOKEN}")]);
            let url = format!("http://{}/admin/v1{path}", armed.admin());
            eventually("it was called", async || {
                // Until it serves, the call fails; when it died, it fails for good.
                drop(world.http.post(&url).bearer_auth(TOKEN).json(&json!({})).send().await);
                armed.has_died()
            })
            .await;
            armed.dies_at(point).await;
            assert_eq!(deadline().await, if committed { 1_200 } else { 600 }, "{point}");
            assert_eq!(acts(&world, "order.paying", id).await, i64::from(committed), "{point}: with its change");
            assert_eq!(admin.post(&path, json!({})).await.status, 200, "{point}");
            assert_eq!(deadline().await, 1_200, "{point}: once");
            assert_eq!(acts(&world, "order.paying", id).await, 1, "{point}: a repeat is no act");
        }
        world.finish().await;
    });
}

#[test]
fn a_refund_that_dies_at_any_line_is_told_again_and_counts_once() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("back", 10, Some(1), LONG).await;
        for (n, point) in (0..).zip(["F36", "F37"]) {
            let id = world.ordered(&sale, point).await;
            admin.pay_amount(id, point, 99).await;
            let rid = id.to_string();
            let args = ["order", "refunded", &rid, "--payment-id", point];
            let died = world.cli_with_faults(&format!("{point}=return"), &args);
            assert_eq!(died.code, None, "{died:?}");
            let committed = i64::from(point == "F37");
            assert_eq!(world.rows("payments", "state = 'REFUNDED'").await, n + committed, "{point}");
            assert_eq!(acts(&world, "order.refunded", id).await, committed, "{point}: with its change");
            world.cli(&args).exits(0);
            assert_eq!(world.rows("payments", "state = 'REFUNDED'").await, n + 1, "{point}");
            assert_eq!(acts(&world, "order.refunded", id).await, 1, "{point}: a repeat is no act");
        }
        assert_eq!(admin.get("/refunds").await.json["count"], 0);
        world.finish().await;
    });
}

#[test]
fn units_of_a_cancelled_order_come_back_once_wherever_the_cancellation_dies() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &["redis.shards=2"]).await;
        let terms = PaymentTerms { limit_returns: true, ..LONG };
        let sale = world.paying_sale("cancelled", 10, Some(1), terms).await;
        let units = async |world: &World| {
            let of = async |shard| world.servers.redis.stock.units(&sale, shard).await.unwrap().unwrap();
            of(0).await + of(1).await
        };
        let users = ["alice", "bob", "carol", "dave"];
        let mut ids = Vec::new();
        for user in users {
            ids.push(world.ordered(&sale, user).await);
        }
        // An api would give open grants, too.
        world.stop_roles().await;
        // Committed and not given; given and not marked. Who asks again does the rest, or the reconciler.
        let ways = [("F33", false), ("F23", false), ("F33", true), ("F23", true)];
        for ((user, id), (point, by_buyer)) in users.into_iter().zip(&ids).zip(ways) {
            let (before, rid) = (units(&world).await, id.to_string());
            let cancel = ["order", "cancel", &rid, "--reason", "r"];
            if by_buyer {
                let armed = world.start_armed(&format!("{point}=return"), "api").await;
                let url = format!("{}/v1/orders/{id}", armed.api_url());
                let asked = world.http.request(Method::DELETE, url).bearer_auth(world.access(user)).send().await;
                assert!(asked.is_err(), "{point}: {asked:?}");
                armed.dies_at(point).await;
            } else {
                let died = world.cli_with_faults(&format!("{point}=return"), &cancel);
                assert_eq!(died.code, None, "{died:?}");
            }
            assert!(world.order_in("CANCELLED", *id).await, "{point}");
            assert_eq!(open_grants(&world).await, 1, "{point}: its grant is open");
            assert_eq!(units(&world).await - before, i64::from(point == "F23"), "{point}");
            if by_buyer {
                let reconcile = world.extra_roles(&[Reconcile], |_| {});
                eventually("given", async || open_grants(&world).await == 0).await;
                reconcile.stop().await;
            } else {
                world.cli(&cancel).exits(0);
                assert_eq!(open_grants(&world).await, 0, "{point}");
            }
            assert_eq!(units(&world).await - before, 1, "{point}: once");
        }
        world.start_roles(&[Api, Relay, Consumer]).await;
        for user in users {
            eventually("the limit is back", async || world.buy(&sale, user, 1, None).await.status == 202).await;
            assert_eq!(world.buy(&sale, user, 1, None).await.status, 409, "{user}: once");
        }
        assert_eq!(world.rows("stock_flow", "kind = 'cancel'").await, 4);
        world.finish().await;
    });
}

#[test]
fn an_event_of_an_order_that_was_confirmed_and_not_deleted_is_told_again_as_the_same() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.paying_sale("published", 10, Some(1), LONG).await;
        let id = world.ordered(&sale, "alice").await;
        downstream.receives(id, "CONFIRMED", 1).await;
        world.stop_roles().await;
        world.start_roles(&[Api]).await;
        assert_eq!(admin.pay(id, "pi_1").await.code(), "P6-F1");
        world.process("consumer", "F38=return", &[]).dies_at("F38").await;
        assert_eq!(world.rows("order_events", "TRUE").await, 1, "it waits");
        downstream.receives(id, "PAID", 1).await;
        world.start_roles(&[Relay, Consumer]).await;
        downstream.receives(id, "PAID", 2).await;
        eventually("forgotten", async || world.rows("order_events", "TRUE").await == 0).await;
        let paid = downstream.events.iter().filter(|event| event["status"] == "PAID");
        assert_eq!(paid.map(|event| &event["version"]).collect::<Vec<_>>(), [&json!(2), &json!(2)]);
        world.finish().await;
    });
}
