//! What buyers, operators and the shop's backend see of orders and do to them (L3, L4).

use crate::support::basics::answer::Answer;
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use reqwest::Method;
use seckill::roles::Role;
use serde_json::json;

#[test]
fn a_buyer_sees_the_deadline_pays_and_sees_the_order_paid() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("pay", 5, Some(1), LONG).await;
        let shown = Answer::of(world.request(Method::GET, "/v1/sales/pay", "alice")).await;
        assert_eq!(shown.json["pay_within_s"], 600, "{shown:?}");
        let alice = world.ordered(&sale, "alice").await;
        let status = world.status(&sale, "alice", &alice.to_string(), 0).await;
        let order = &status.json["order"];
        assert_eq!(
            (&order["state"], &order["amount"], &order["currency"]),
            (&json!("UNPAID"), &json!(100), &json!("CNY"))
        );
        assert!(order["pay_by"].as_str().is_some_and(|time| time.ends_with('Z')), "{status:?}");
        let mine = world.my_order("alice", alice).await;
        assert_eq!((mine.status, mine.text("state"), mine.code()), (200, "UNPAID".into(), "P6-F0".into()));
        assert_eq!(world.my_order("bob", alice).await.status, 404, "another's");
        // Whether somebody has this order is no other buyer's business.
        let unknown = seckill::domain::ids::RequestId::new(7).unwrap();
        let said = async |id| {
            let answer = world.cancel_mine("bob", id).await;
            (answer.status, answer.code(), answer.text("detail").replace(&id.to_string(), "ID"))
        };
        assert_eq!(said(alice).await, said(unknown).await);
        assert_eq!(said(alice).await.0, 404);
        assert!(world.order_in("UNPAID", alice).await);

        let paid = admin.pay(alice, "pi_1").await;
        assert_eq!((paid.status, paid.code()), (200, "P6-F1".to_owned()), "{paid:?}");
        assert_eq!(paid.json["order"]["state"], "PAID");
        assert_eq!(world.my_order("alice", alice).await.text("state"), "PAID");
        let refused = world.cancel_mine("alice", alice).await;
        assert_eq!((refused.status, refused.code()), (409, "CONFLICT".to_owned()), "{refused:?}");
        let acts = admin.get("/acts").await;
        assert!(acts.body.contains("order.paid") && acts.body.contains("pi_1"), "{acts:?}");
        world.finish().await;
    });
}

#[test]
fn money_that_no_order_can_take_is_on_record_and_listed_until_it_went_back() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("refund", 5, Some(1), LONG).await;
        let plain = world.sale("plain", 5, Some(1)).await;
        let alice = world.ordered(&sale, "alice").await;
        let stateless = world.ordered(&plain, "alice").await;
        let reason = |answer: Answer| (answer.status, answer.code(), answer.text("reason"));
        let needed = |why: &str| (200, "P6-F4".to_owned(), why.to_owned());
        assert_eq!(reason(admin.pay_amount(alice, "other-amount", 99).await), needed("OTHER_AMOUNT"));
        let euro = json!({ "payment_id": "other-currency", "amount": 100, "currency": "EUR" });
        assert_eq!(reason(admin.post(&format!("/orders/{alice}/paid"), euro).await), needed("OTHER_CURRENCY"));
        assert!(world.order_in("UNPAID", alice).await, "still to be paid");
        assert_eq!(reason(admin.pay(alice, "right").await).1, "P6-F1");
        assert_eq!(reason(admin.pay(alice, "right").await).1, "P6-F1", "a repeat");
        assert_eq!(reason(admin.pay(alice, "second").await), needed("ALREADY_PAID"));
        assert_eq!(reason(admin.pay(stateless, "no-step").await), needed("NO_PAYMENT_STEP"));
        let unknown = seckill::domain::ids::RequestId::new(7).unwrap();
        assert_eq!(reason(admin.pay(unknown, "nowhere").await), needed("NO_ORDER"));
        for bad in [
            json!({ "payment_id": "", "amount": 1, "currency": "CNY" }),
            json!({ "payment_id": "x", "amount": -1, "currency": "CNY" }),
            json!({ "payment_id": "x", "amount": 0, "currency": "CNY" }),
        ] {
            assert_eq!(admin.post(&format!("/orders/{alice}/paid"), bad).await.status, 422);
        }
        assert_eq!(world.rows("payments", "TRUE").await, 6, "malformed ones are not recorded");
        let refunds = admin.get("/refunds").await;
        assert_eq!(refunds.json["count"], 5, "{refunds:?}");

        let back = admin.post(&format!("/orders/{alice}/refunded"), json!({ "payment_id": "second" })).await;
        assert_eq!((back.status, &back.json["payment"]["state"]), (200, &json!("REFUNDED")), "{back:?}");
        let again = admin.post(&format!("/orders/{alice}/refunded"), json!({ "payment_id": "second" })).await;
        assert_eq!((&back.json["before"], &again.json["before"]), (&json!(false), &json!(true)), "two operators");
        assert_eq!(back.json["marked_at"], again.json["marked_at"], "when the first one marked it");
        let paid = admin.post(&format!("/orders/{alice}/refunded"), json!({ "payment_id": "right" })).await;
        assert_eq!(paid.status, 409, "it paid the order");
        assert_eq!(admin.get("/refunds?sale=refund").await.json["count"], 2);

        // Cancelling a paid order sends its money back.
        let cancelled = admin.post(&format!("/orders/{alice}/cancel"), json!({ "reason": "out of stock" })).await;
        assert_eq!((cancelled.status, &cancelled.json["order"]["state"]), (200, &json!("CANCELLED")), "{cancelled:?}");
        assert_eq!(
            world.rows("payments", "payment_id = 'right' AND state = 'REFUND_NEEDED' AND reason = 'CANCELLED'").await,
            1
        );
        eventually("its unit is back", async || world.servers.redis.stock.units(&sale, 0).await.unwrap() == Some(5))
            .await;
        world.finish().await;
    });
}

/// The money of the second payment came in, whatever went wrong with its name.
#[test]
fn money_under_an_id_that_another_payment_has_is_on_record_and_goes_back() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("taken", 5, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        assert_eq!(admin.pay(alice, "pi_1").await.code(), "P6-F1");
        let mut recorded = Vec::new();
        // For another order, of another amount, in another currency; each reported twice.
        for (order, amount, currency) in [(bob, 100, "CNY"), (alice, 99, "CNY"), (alice, 100, "USD")] {
            let body = json!({ "payment_id": "pi_1", "amount": amount, "currency": currency });
            let path = format!("/orders/{order}/paid");
            let (first, repeat) = (admin.post(&path, body.clone()).await, admin.post(&path, body).await);
            let said = (first.status, first.code(), first.text("reason"));
            assert_eq!(said, (200, "P6-F4".to_owned(), "PAYMENT_ID_TAKEN".to_owned()), "{first:?}");
            assert_eq!(repeat.json["payment"], first.json["payment"], "a repeat finds it");
            let payment = &first.json["payment"];
            assert_eq!((&payment["amount"], &payment["currency"]), (&json!(amount), &json!(currency)));
            let name = payment["payment_id"].as_str().unwrap().to_owned();
            assert!(name.starts_with("pi_1~"), "the provider's id is to be seen: {name}");
            recorded.push((order, name));
        }
        assert_eq!(world.rows("payments", "state = 'APPLIED'").await, 1);
        assert_eq!(world.rows("payments", "state = 'REFUND_NEEDED' AND reason = 'PAYMENT_ID_TAKEN'").await, 3);
        assert_eq!((world.order_in("PAID", alice).await, world.order_in("UNPAID", bob).await), (true, true));
        assert_eq!(admin.get("/refunds?sale=taken").await.json["count"], 3);
        for (order, name) in recorded {
            let back = admin.post(&format!("/orders/{order}/refunded"), json!({ "payment_id": name })).await;
            assert_eq!((back.status, &back.json["payment"]["state"]), (200, &json!("REFUNDED")), "{back:?}");
        }
        assert_eq!(admin.pay(alice, "pi_1").await.code(), "P6-F1", "the first one stays what it was");
        assert_eq!(admin.pay(bob, "pi_2").await.code(), "P6-F1", "and bob can pay");
        world.finish().await;
    });
}

#[test]
fn orders_are_found_by_buyer_sale_state_and_time_page_by_page() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("found", 100, None, LONG).await;
        let other = world.sale("other", 100, None).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(world.ordered(&sale, "alice").await);
        }
        ids.push(world.ordered(&sale, "bob").await);
        let plain = world.ordered(&other, "alice").await;
        admin.pay(ids[0], "one").await;
        let found = async |query: &str| -> Vec<String> {
            let answer = admin.get(&format!("/orders?{query}")).await;
            assert_eq!(answer.status, 200, "{query}: {answer:?}");
            answer.json["orders"]
                .as_array()
                .unwrap()
                .iter()
                .map(|o| o["request_id"].as_str().unwrap().to_owned())
                .collect()
        };
        let of = |at: &[usize]| at.iter().map(|at| ids[*at].to_string()).collect::<Vec<_>>();
        assert_eq!(found("sale=found").await, of(&[3, 2, 1, 0]));
        assert_eq!(found("sale=found&state=PAID").await, of(&[0]));
        assert_eq!(found("sale=found&buyer=alice&state=UNPAID").await, of(&[2, 1]));
        assert_eq!(found("buyer=bob").await, of(&[3]));
        assert_eq!(found("sale=other").await, [plain.to_string()]);
        assert!(found("sale=found&to=2026-01-01T00:00:00Z").await.is_empty());
        assert_eq!(found("sale=found&from=2026-01-01T00:00:00Z&limit=2").await, of(&[3, 2]));
        let first = admin.get("/orders?sale=found&limit=3").await;
        let next = first.json["next"].as_str().unwrap().to_owned();
        assert_eq!(found(&format!("sale=found&limit=3&cursor={next}")).await, of(&[0]));
        for (query, status) in [("state=PAID", 422), ("sale=found&state=paid", 422), ("limit=0", 422), ("what=1", 400)]
        {
            assert_eq!(admin.get(&format!("/orders?{query}")).await.status, status, "{query}");
        }
        let mine = Answer::of(world.request(Method::GET, "/v1/orders", "alice")).await;
        let mine: Vec<_> =
            mine.json["orders"].as_array().unwrap().iter().map(|o| o["request_id"].as_str().unwrap()).collect();
        assert_eq!((mine.len(), mine[0]), (4, plain.to_string().as_str()));
        let exported = world.cli(&["order", "export", "--sale", "found"]).exits(0);
        assert_eq!(exported.out.lines().count(), 4, "{exported:?}");
        let listed = world.cli(&["order", "list", "--sale", "found", "--state", "PAID", "--json"]).exits(0).json();
        assert_eq!(listed["orders"][0]["request_id"], ids[0].to_string().as_str(), "{listed}");
        world.finish().await;
    });
}

#[test]
fn the_command_line_pays_and_says_when_money_has_to_go_back() {
    run(async {
        let world = World::with(&Role::ALL, &[]).await;
        let sale = world.paying_sale("cli", 5, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await.to_string();
        let pay = |payment: &str, amount: &str| {
            ["order", "paid", &alice, "--payment-id", payment, "--amount", amount, "--currency", "CNY"]
                .map(str::to_owned)
        };
        let run = |args: [String; 9]| world.cli(&args.iter().map(String::as_str).collect::<Vec<_>>());
        run(pay("a", "-1")).exits(64);
        let with_a_point = run(pay("a", "1.00")).exits(64);
        assert!(with_a_point.err.contains("smallest unit"), "{with_a_point:?}");
        run(pay("a", "1")).exits(1);
        run(pay("b", "100")).exits(0);
        let late = run(pay("c", "100")).exits(1);
        assert!(late.err.contains("ALREADY_PAID"), "{late:?}");
        assert!(world.cli(&["order", "refunds"]).exits(0).out.contains("OTHER_AMOUNT"));
        world.cli(&["order", "refunded", &alice, "--payment-id", "a"]).exits(0);
        world.cli(&["order", "refunded", &alice, "--payment-id", "b"]).exits(1);
        let shown = world.cli(&["order", "show", &alice, "--json"]).exits(0).json();
        assert_eq!(shown["order"]["state"], "PAID", "{shown:#}");
        assert_eq!(shown["payments"].as_array().map(Vec::len), Some(3), "{shown:#}");
        world.finish().await;
    });
}
