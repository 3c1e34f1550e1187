//! Every call of the admin API that is not about orders or webhooks (`admin_answers.rs`), with as much in its answer as there can be: the
//! port holds each answer against the document, in both directions.

use crate::support::buyers::passes::FACTS_AND_PASSES;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::p5_reconcile::rows::findings as audit;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::runtime::now_ms;
use seckill::store::rabbit::declare;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What was asked, as method and path of the document.
struct AskedPort<'a> {
    admin: &'a AdminPort,
    asked: RefCell<BTreeSet<String>>,
}

impl AskedPort<'_> {
    async fn get(&self, template: &str, id: &str, query: &str) -> Value {
        let path = format!("{}{query}", named(template, id));
        let answer = self.admin.get(&path).await;
        self.good("get", template, answer)
    }

    async fn post(&self, template: &str, id: &str, body: Value) -> Value {
        let answer = self.admin.post(&named(template, id), body).await;
        self.good("post", template, answer)
    }

    fn good(&self, method: &str, template: &str, answer: crate::support::world::Answer) -> Value {
        assert_eq!(answer.status, 200, "{method} {template}: {answer:?}");
        self.asked.borrow_mut().insert(format!("{method} {template}"));
        answer.json
    }

    /// Calls of these kinds in the document.
    fn described() -> BTreeSet<String> {
        let document = serde_json::to_value(seckill::admin::document()).unwrap();
        let mut found = BTreeSet::new();
        for (path, calls) in document["paths"].as_object().unwrap() {
            for (method, call) in calls.as_object().unwrap() {
                let elsewhere = call["tags"] == json!(["orders"]) || call["tags"] == json!(["webhooks"]);
                // What is forgotten, and what is drawn, takes a world of its own (`forget.rs`, `lines.rs`), with the same port.
                let own_worlds = ["/acts", "/openapi.json", "/buyers/forget", "/line/list", "/line/draw"];
                let elsewhere = elsewhere || own_worlds.iter().any(|end| path.ends_with(end));
                if !elsewhere {
                    found.insert(format!("{method} {}", path.strip_prefix("/admin/v1").unwrap()));
                }
            }
        }
        found
    }
}

fn named(template: &str, id: &str) -> String {
    template.replace("{sale_id}", id).replace("{drop_id}", id)
}

fn in_hours(hours: i64) -> String {
    chrono::DateTime::from_timestamp_millis(now_ms() + hours * 3_600_000).unwrap().to_rfc3339()
}

/// A sale with everything that one can have.
fn rich() -> Value {
    json!({
        "id": "later", "product": "p", "title": "一部手机", "stock": 10, "limit": 2, "price_cents": 100, "pay_within_s": 600,
        "starts_at": in_hours(2), "ends_at": in_hours(9), "needs": { "tier": ["gold"], "pass": true }, "challenge": "pow:4",
        "token_required": true, "limit_by": "person", "releases": [{ "at": in_hours(3), "units": 2 }], "line": "raffle"
    })
}

async fn sales_that_wait(port: &AskedPort<'_>) {
    let made = port.post("/sales", "", rich()).await;
    assert_eq!((&made["sale"]["needs"]["tier"], &made["releases"][0]["given"]), (&json!(["gold"]), &json!(false)));
    assert_eq!(port.get("/sales/{sale_id}/line", "later", "").await["kind"], "raffle");
    port.get("/sales/{sale_id}/line/entries", "later", "").await;
    port.post("/sales/{sale_id}/edit", "later", json!({ "title": "另一部" })).await;
    port.post("/sales/{sale_id}/reschedule", "later", json!({ "ends_at": in_hours(10) })).await;
    port.post("/sales/{sale_id}/hide", "later", json!({})).await;
    port.post("/sales/{sale_id}/publish", "later", json!({})).await;
    let times = json!({ "id": "again", "starts_at": in_hours(20), "ends_at": in_hours(21) });
    port.post("/sales/{sale_id}/clone", "later", times).await;
    port.get("/sales/{sale_id}", "later", "").await;
}

async fn a_sale_that_sells(port: &AskedPort<'_>, world: &World) {
    let form = json!({ "id": "now", "product": "p", "title": "t", "stock": 10, "limit": 1,
        "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z" });
    port.post("/sales", "", form).await;
    port.post("/sales/{sale_id}/warm", "now", json!({})).await;
    let sale = "now".parse().unwrap();
    eventually("it sells", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;
    port.post("/sales/{sale_id}/pause", "now", json!({ "by": "li" })).await;
    port.post("/sales/{sale_id}/resume", "now", json!({})).await;
    port.post("/sales/{sale_id}/top-up", "now", json!({ "units": 5, "grant": "monday" })).await;
    let withdrawn = port.post("/sales/{sale_id}/withdraw", "now", json!({ "units": 1, "name": "one" })).await;
    assert_eq!(withdrawn["withdrawn"], json!({ "name": "one", "asked": 1, "taken": 1 }));
    port.get("/sales", "", "").await;
    let flow = port.get("/pipeline", "", "").await;
    assert!(flow["sales"][0]["granted"].is_i64() && flow["shards"][0]["outbox"].is_u64(), "{flow:#}");
    world.settled(&sale).await;
    let sheet = port.get("/sales/{sale_id}/audit", "now", "?now=true").await;
    assert_eq!(
        (&sheet["consistent"], &sheet["audit"]["series"][0]["outcomes"]),
        (&json!(true), &json!(1)),
        "{sheet:#}"
    );
}

async fn what_failed(port: &AskedPort<'_>, world: &World) {
    let columns =
        "request_id, sale_id, user_id, quantity, source, reason, detail, payload, status, resolved_at, resolved_by";
    for (id, state) in [(7, "'open', NULL, NULL"), (8, "'failed_final', '2026-01-01', 'li'")] {
        let row = format!("({id}, 'now', 'bob', 2, 'mq_dlq', 'GIVEN_UP', 'd', 'spoiled', {state})");
        world.sql(&format!("INSERT INTO failed_request ({columns}) VALUES {row}")).await;
    }
    let rows = port.get("/register", "", "").await;
    assert_eq!((rows["rows"].as_array().unwrap().len(), &rows["more"]), (2, &json!(false)), "{rows:#}");
    let parked = port.get("/dlq", "", "").await;
    assert_eq!(
        (&parked["counts"]["register"], &parked["entries"][0]["quantity"]),
        (&json!(1), &json!(2)),
        "{parked:#}"
    );
    let dry = port.post("/dlq/replay", "", json!({ "all": true, "dry_run": true })).await;
    assert_eq!((&dry["dry_run"], dry["done"].as_array().unwrap().len()), (&json!(true), 1), "{dry:#}");
    port.post("/dlq/give-up", "", json!({ "named": ["7"], "reason": "refunded" })).await;
    let again = port.post("/sales/{sale_id}/reclaim", "now", json!({})).await;
    assert!(again["reclaimed"]["units"].is_i64(), "{again:#}");
    assert_eq!(port.post("/sales/{sale_id}/reclaim", "now", json!({})).await["reclaimed"], Value::Null);
    let finding = audit::StoredFinding {
        sale_id: Some("now".parse().unwrap()),
        request_id: RequestId::new(9),
        code: "P5-RC1".to_owned(),
        detail: "d".to_owned(),
    };
    let sheet = json!({ "granted": 15, "in_redis": true, "of_a_later_version": 1 }).to_string();
    let run = audit::StoredRun {
        sale_id: None,
        started_at_ms: now_ms(),
        ended_at_ms: now_ms(),
        consistent: false,
        examined_count: 1,
        sheet,
        findings: vec![finding],
    };
    world.servers.rows.findings.record(&run).await.unwrap();
    let runs = port.get("/audits", "", "").await;
    assert_eq!(runs["runs"][0]["sheet"]["of_a_later_version"], 1, "{runs:#}");
    port.post("/sales/{sale_id}/rebuild", "now", json!({})).await;
    port.post("/sales/{sale_id}/close", "now", json!({})).await;
}

async fn a_drop(port: &AskedPort<'_>) {
    let sale = |id: &str, needs: Value| {
        json!({
            "sale_id": id, "product_id": id, "title": id, "stock": 5, "price_cents": 19_900, "currency": "EUR", "limit": 1,
            "starts_at": in_hours(2), "ends_at": in_hours(9), "hidden": true, "needs": needs
        })
    };
    let sales = [sale("eu-41", json!({ "tier": ["gold", "silver"] })), sale("eu-42", Value::Null)];
    let form = json!({ "drop_id": "sneaker", "title": "Sneaker 26", "limit": 1, "sales": sales });
    let made = port.post("/drops", "", form).await;
    assert_eq!(made["sales"][0]["needs"], json!({ "tier": ["gold", "silver"] }), "{made:#}");
    port.post("/drops/{drop_id}/edit", "sneaker", json!({ "title": "Sneaker 27" })).await;
    for act in ["warm", "pause", "hide", "publish", "resume"] {
        let done = port.post(&format!("/drops/{{drop_id}}/{act}"), "sneaker", json!({})).await;
        assert_eq!(done["failed_count"], 0, "{act}: {done:#}");
    }
    let units = json!({ "from": "eu-41", "to": "eu-42", "units": 2, "name": "m" });
    port.post("/drops/{drop_id}/move", "sneaker", units).await;
    port.get("/drops", "", "").await;
    let shown = port.get("/sales/{sale_id}", "eu-41", "").await;
    assert_eq!(shown["sale"]["in_drop"]["sale_ids"], json!(["eu-41", "eu-42"]), "{shown:#}");
    port.get("/drops/{drop_id}", "sneaker", "").await;
    port.post("/drops/{drop_id}/close", "sneaker", json!({})).await;
}

async fn buyers_and_process(port: &AskedPort<'_>) {
    port.post("/blocks", "", json!({ "buyer": "mallory", "reason": "chargebacks" })).await;
    port.get("/blocks", "", "").await;
    port.post("/blocks/remove", "", json!({ "buyer": "mallory" })).await;
    port.post("/passes", "", json!({ "sub": "alice", "sale": "later", "valid_s": 600, "tier": "gold" })).await;
    assert_eq!(port.get("/whoami", "", "").await["name"], "admin.token");
}

#[test]
fn every_other_answer_of_the_admin_api_is_what_its_document_says() {
    run(async {
        let set = [&FACTS_AND_PASSES[..], &["p5_reconcile.warm_ahead_ms=0"]].concat();
        let mut world = World::with(&[Api, Relay, Consumer], &set).await;
        declare(&world.servers.rabbit).await.unwrap();
        let admin = world.admin_port();
        let port = AskedPort { admin: &admin, asked: RefCell::default() };
        sales_that_wait(&port).await;
        a_sale_that_sells(&port, &world).await;
        what_failed(&port, &world).await;
        a_drop(&port).await;
        buyers_and_process(&port).await;
        assert_eq!(*port.asked.borrow(), AskedPort::described());
        world.stop_roles().await;
    });
}
