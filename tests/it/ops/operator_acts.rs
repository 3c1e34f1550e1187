//! What people do is written down, whole, and stays (M8).

use crate::support::world::admin_port::TOKEN;
use crate::support::world::parts::mysql_store::{NOW_MS, fresh, rows, sale_id};
use crate::support::world::{World, run};
use seckill::domain::ids::RequestId;
use seckill::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use seckill::p5_reconcile::rows::findings as audit;
use seckill::roles::Role::Api;
use seckill::sales::rows::acts::ActFilter;
use seckill::store::rabbit::declare;
use serde_json::{Value, json};

fn quiet_run(at_ms: i64) -> audit::StoredRun {
    audit::StoredRun {
        sale_id: Some(sale_id("s")),
        started_at_ms: at_ms,
        ended_at_ms: at_ms,
        consistent: true,
        examined_count: 1,
        sheet: "{}".to_owned(),
        findings: vec![],
    }
}

#[test]
fn acts_and_findings_outlive_thousands_of_quiet_audits() {
    run(async {
        let db = fresh("acts").await;
        let close =
            OperatorAct::new(&Actor::at_the_terminal("ann"), Operation::SaleClose, ActTarget::Sale(sale_id("s")));
        rows(&db).acts.record(&[close]).await.unwrap();
        let finding = audit::StoredFinding {
            sale_id: Some(sale_id("s")),
            request_id: RequestId::new(5),
            code: "P5-RC1".to_owned(),
            detail: "lost".to_owned(),
        };
        let found = audit::StoredRun { consistent: false, findings: vec![finding], ..quiet_run(NOW_MS) };
        rows(&db).findings.record(&found).await.unwrap();
        // A hundred sales write a row each every five minutes.
        for n in 0..3_000 {
            rows(&db).findings.record(&quiet_run(NOW_MS + n)).await.unwrap();
        }
        let (tomorrow, later) = (NOW_MS + audit::QUIET_KEPT_MS + 10_000, NOW_MS + audit::NEWS_KEPT_MS + 10_000);
        let mut went = Vec::new();
        for _ in 0..4 {
            went.push(rows(&db).findings.prune(tomorrow).await.unwrap());
        }
        assert_eq!(went, [1_000, 1_000, 1_000, 0], "by age, a thousand a call");
        assert_eq!(rows(&db).findings.last_runs(10).await.unwrap(), [found]);
        assert_eq!(rows(&db).findings.prune(later).await, Ok(1), "findings go a month later");
        let left = rows(&db).acts.list(&ActFilter { limit: 10, ..ActFilter::default() }).await.unwrap();
        assert_eq!(left.iter().map(|act| act.action.as_str()).collect::<Vec<_>>(), ["sale.close"], "acts never");
    });
}

#[test]
fn acts_are_listed_by_sale_in_pages_newest_first() {
    run(async {
        let db = fresh("acts_pages").await;
        let act = |sale: &str, n: usize| {
            let mut act =
                OperatorAct::new(&Actor::at_the_terminal("ann"), Operation::SaleTopUp, ActTarget::Sale(sale_id(sale)));
            // Three of these do not fit into one statement.
            act.after = Some(json!({ "n": n, "words": "x".repeat(200_000) }));
            act
        };
        let many: Vec<_> = (0..6).map(|n| act(if n % 2 == 0 { "even" } else { "odd" }, n)).collect();
        rows(&db).acts.record(&many).await.unwrap();
        let page = async |sale: Option<&str>, before, limit| {
            let wanted = ActFilter { sale_id: sale.map(sale_id), before, limit };
            let found = rows(&db).acts.list(&wanted).await.unwrap();
            let n = |text: &Option<String>| serde_json::from_str::<Value>(text.as_ref().unwrap()).unwrap()["n"].clone();
            (found.iter().map(|act| n(&act.after_json)).collect::<Vec<_>>(), found.last().map(|act| act.act_id))
        };
        assert_eq!(page(None, None, 100).await.0, [5, 4, 3, 2, 1, 0]);
        let (first, last) = page(Some("even"), None, 2).await;
        assert_eq!((first, page(Some("even"), last, 2).await.0), (vec![json!(4), json!(2)], vec![json!(0)]));
    });
}

#[test]
fn commands_and_calls_leave_their_acts_with_what_was_before_and_after() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("kept", 10, None).await;
        let admin = world.admin_port();
        world.cli(&["sale", "top-up", "kept", "5", "--grant", "spring"]).exits(0);
        assert_eq!(admin.post("/sales/kept/pause", json!({ "by": "Li Wei" })).await.status, 200);
        world.cli(&["sale", "close", "kept"]).exits(0);
        world.cli(&["sale", "resume", "kept"]).exits(1);
        world.cli(&["order", "cancel", "4711", "--reason", "never paid"]).exits(1);

        let listed = world.cli(&["act", "list", "--sale", "kept", "--json"]).exits(0).json();
        let seen: Vec<_> =
            listed.as_array().unwrap().iter().map(|a| (&a["action"], &a["outcome"], &a["code"])).collect();
        let (ok, failed) = (json!("ok"), json!("failed"));
        assert_eq!(
            seen,
            [
                (&json!("sale.resume"), &failed, &json!("CLOSED")),
                (&json!("sale.close"), &ok, &Value::Null),
                (&json!("sale.pause"), &ok, &Value::Null),
                (&json!("sale.top_up"), &ok, &Value::Null),
            ]
        );
        let text = |act: &Value, key: &str| serde_json::from_str::<Value>(act[key].as_str().unwrap()).unwrap();
        let (closed, paused, topped) = (&listed[1], &listed[2], &listed[3]);
        assert_eq!(
            (&text(closed, "before_json")["status"], &text(closed, "after_json")["sale"]["status"]),
            (&json!("paused"), &json!("closed"))
        );
        assert_eq!((&paused["actor_name"], &paused["ip"]), (&json!("Li Wei"), &json!("127.0.0.1")));
        let after = text(topped, "after_json");
        assert_eq!((&text(topped, "before_json")["granted"], &after["sale"]["granted"]), (&json!(10), &json!(15)));
        assert_eq!(after["asked"], json!({ "units": 5, "grant": "spring" }));
        assert!(!listed.to_string().contains(TOKEN), "no secret is written down");

        let all = world.cli(&["act", "list", "--limit", "1"]).exits(0).out;
        assert!(all.contains("order.cancel") && all.contains("NO_ORDER") && all.contains("never paid"), "{all}");
        world.audit(&sale, seckill::p5_reconcile::Window::Now).await;
        world.finish().await;
    });
}

#[test]
fn a_dropped_message_is_kept_whole() {
    run(async {
        let world = World::with(&[], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let long = format!("begin-{}-end", "x".repeat(5_000));
        world
            .park_in_mq([
                (String::new(), long.clone().into_bytes(), "UNDECODABLE"),
                (String::new(), vec![0xff, 0x00, 0x27], "UNDECODABLE"),
            ])
            .await;
        let parked = world.cli(&["dlq", "list", "--json"]).exits(0).out;
        for entry in parked.split('"').filter(|word| word.starts_with("mq/")) {
            world.cli(&["dlq", "give-up", entry, "--reason", "not ours"]).exits(0);
        }
        assert!(world.mq_dlq().await.is_empty());
        let kept = world.servers.rows.acts.list(&ActFilter { limit: 10, ..ActFilter::default() }).await.unwrap();
        let before: Vec<Value> =
            kept.iter().map(|act| serde_json::from_str(act.before_json.as_ref().unwrap()).unwrap()).collect();
        assert!(before.iter().any(|before| before["message"] == long), "all of it, not its first thousand characters");
        assert!(before.iter().any(|before| before["message_hex"] == "ff0027"), "{before:?}");
        world.finish().await;
    });
}
