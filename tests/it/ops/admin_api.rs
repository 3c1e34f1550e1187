//! F6, E5, E6: the admin API, every family of it, on real servers.

use crate::support::world::admin_port::{AdminPort, TOKEN, with_any_ids};
use crate::support::world::{World, eventually, run};
use seckill::admin::document;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{self, Api};
use seckill::store::rabbit::declare;
use serde_json::{Value, json};

fn sale(id: &str) -> Value {
    json!({ "id": id, "product": "p", "title": "一部手机", "stock": 10, "limit": 1,
        "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00+08:00" })
}

#[test]
fn no_route_answers_without_the_token_and_the_document_lists_them_all() {
    run(async {
        let world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let document = serde_json::to_value(document()).unwrap();
        let calls = document["paths"].as_object().unwrap().iter();
        let calls: Vec<(&String, &String)> =
            calls.flat_map(|(path, calls)| calls.as_object().unwrap().keys().map(move |m| (path, m))).collect();
        for (path, method) in calls {
            needs_the_token(&admin, path, method).await;
        }
        let unknown = admin.call("get", "/nothing", None, None).await;
        assert_eq!(unknown.status, 401, "not even which routes there are");
        assert_eq!(admin.get("/nothing").await.code(), "NO_SUCH_ROUTE");
        assert_eq!(admin.get("/openapi.json").await.json, document);
        world.finish().await;
    });
}

async fn needs_the_token(admin: &AdminPort, path: &str, method: &str) {
    let path = with_any_ids(path.trim_start_matches("/admin/v1"));
    let body = (method == "post").then_some(("application/json", "{}"));
    for token in [None, Some(""), Some(&TOKEN[..TOKEN.len() - 1]), Some(&format!("{TOKEN}2"))] {
        let answer = admin.call(method, &path, token, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (401, "UNAUTHORIZED"), "{method} {path} {token:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let answer = admin.call(method, &path, Some(TOKEN), body).await;
    assert!(answer.status != 401 && answer.code() != "NO_SUCH_ROUTE", "{method} {path}: {answer:?}");
}

#[test]
fn another_method_is_refused_with_those_that_there_are() {
    run(async {
        let world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let document = serde_json::to_value(document()).unwrap();
        for (path, calls) in document["paths"].as_object().unwrap() {
            let path = with_any_ids(path.trim_start_matches("/admin/v1"));
            let offered: Vec<String> = calls.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
            let answer = admin.call("trace", &path, Some(TOKEN), None).await;
            assert_eq!((answer.status, answer.code().as_str()), (405, "METHOD_NOT_ALLOWED"), "{path}: {answer:?}");
            let allowed: Vec<&str> = answer.header("allow").split(", ").collect();
            assert!(
                offered.len() == allowed.len() && offered.iter().all(|one| allowed.contains(&one.as_str())),
                "{path}: {allowed:?}"
            );
            assert!(answer.text("detail").ends_with(&format!("expected {}", allowed.join(", "))), "{answer:?}");
        }
        for before in ["9223372036854775808", "0"] {
            let answer = admin.get(&format!("/acts?before={before}")).await;
            assert!(answer.status == 422 && answer.text("detail").starts_with("before: expected"), "{answer:?}");
        }
        assert_eq!(admin.get("/acts?before=9223372036854775807").await.status, 200);
        world.finish().await;
    });
}

#[test]
fn a_sale_is_created_steered_and_closed() {
    run(async {
        // Its start is long over: the api would warm the draft by itself within a second.
        let world = World::with(&[Api], &["p5_reconcile.warm_ahead_ms=0"]).await;
        let admin = world.admin_port();
        let created = admin.post("/sales", sale("steered")).await;
        assert_eq!((created.status, &created.json["sale"]["status"]), (200, &json!("draft")), "{created:?}");
        let again = admin.post("/sales", sale("steered")).await;
        assert_eq!(again.code(), "CONFLICT", "{again:?}");
        let state = async |name: &str| admin.post(&format!("/sales/steered/{name}"), json!({})).await;
        let refused = async |name: &str| {
            let answer = state(name).await;
            assert_eq!(answer.code(), "CONFLICT", "{name}: {answer:?}");
        };
        let done = async |name: &str, part: &str, expected: &str| {
            let answer = state(name).await;
            assert_eq!(answer.json.pointer(part), Some(&json!(expected)), "{name}: {answer:?}");
        };
        let (status, first_shard) = ("/sale/status", "/shards/0/state");
        // Not warmed.
        refused("pause").await;
        done("warm", first_shard, "open").await;

        let sale = "steered".parse().unwrap();
        done("pause", status, "paused").await;
        eventually("buyers see it", async || world.buy(&sale, "early", 1, None).await.status == 423).await;
        done("resume", status, "warmed").await;
        eventually("buyers see it", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;

        let more = json!({ "units": 5, "grant": "monday" });
        for _repeat in 0..2 {
            let topped = admin.post("/sales/steered/top-up", more.clone()).await;
            assert_eq!((topped.status, &topped.json["sale"]["granted"]), (200, &json!(15)), "{topped:?}");
            assert_eq!(topped.json["shards"][0]["remaining"], 14, "{topped:?}");
        }
        let other = json!({ "units": 6, "grant": "monday" });
        let other = admin.post("/sales/steered/top-up", other).await;
        assert_eq!(other.code(), "CONFLICT", "{other:?}");
        let listed = admin.get("/sales").await;
        assert_eq!(listed.json["sales"][0]["granted"], 15, "a write is seen at once: {listed:?}");

        world.start_and_settle(&sale).await;
        let audit = admin.get("/sales/steered/audit").await;
        assert_eq!(audit.json["consistent"], true, "{audit:?}");
        assert!(
            audit.json["equations"]
                .as_array()
                .is_some_and(|all| all.len() == 10 && all.iter().all(|e| e["difference"] == 0))
        );
        let series =
            json!([{ "epoch": 1, "shard": 0, "number": 1, "outcomes": 1, "undecided": 0, "gaps": [], "closed": 0 }]);
        assert_eq!((&audit.json["audit"]["series"], &audit.json["suspects"]), (&series, &json!([])), "{audit:?}");
        let reclaimed = state("reclaim").await;
        assert_eq!(
            (reclaimed.status, &reclaimed.json["reclaimed"]),
            (200, &Value::Null),
            "nothing failed: {reclaimed:?}"
        );
        assert_eq!(reclaimed.json["sale"]["granted"], 15);
        done("rebuild", first_shard, "frozen").await;
        done("close", status, "closed").await;
        // Closed is for good.
        refused("resume").await;
    });
}

impl World {
    /// Brings everything to its end with the roles that were missing, and stops them.
    async fn start_and_settle(&self, sale: &seckill::domain::ids::SaleId) {
        let more = self.extra_roles(&[Role::Relay, Role::Consumer], |_| {});
        assert_eq!(self.settled(sale).await.counted.leaked, 0);
        more.stop().await;
    }
}

#[test]
fn bad_input_is_named_and_changes_nothing() {
    run(async {
        let world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let without = |field: &str| {
            let mut body = sale("bad");
            body.as_object_mut().unwrap().remove(field);
            body
        };
        let with = |field: &str, value: Value| {
            let mut body = sale("bad");
            body[field] = value;
            body
        };
        for (path, body, status, named) in [
            ("/sales", without("title"), 400, "title"),
            ("/sales", with("id", json!("no spaces")), 400, "sale_id"),
            ("/sales", with("stock", json!("ten")), 400, "invalid type"),
            ("/sales", with("price", json!(1)), 400, "price"),
            ("/sales", with("stock", json!(-1)), 422, "stock"),
            ("/sales", with("limit", json!(0)), 422, "limit"),
            ("/sales", with("ends_at", json!("2019-01-01T00:00:00Z")), 422, "ends_at"),
            ("/sales/none/warm", json!({}), 404, "none"),
            ("/sales/no.spaces/warm", json!({}), 400, "sale_id"),
            ("/sales/none/warm", json!({ "now": true }), 400, "now"),
            ("/sales/none/top-up", json!({ "units": 1 }), 400, "grant"),
            ("/sales/none/top-up", json!({ "units": 0, "grant": "g" }), 422, "units"),
            ("/sales/none/top-up", json!({ "units": 1, "grant": " " }), 422, "grant"),
            ("/dlq/replay", json!({}), 422, "named"),
            ("/dlq/replay", json!({ "all": true, "reason": "x" }), 422, "reason"),
            ("/dlq/replay", json!({ "all": true, "source": "redis" }), 422, "source"),
            ("/dlq/give-up", json!({ "all": true }), 422, "reason"),
            ("/dlq/give-up", json!({ "all": true, "reason": "x", "by": "b".repeat(49) }), 422, "by"),
        ] {
            let answer = admin.post(path, body.clone()).await;
            assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
            assert!(answer.text("detail").contains(named), "{path} {body}: {answer:?}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
        for (path, status, named) in [
            ("/sales/none", 404, "none"),
            ("/sales/none/audit", 404, "none"),
            ("/sales/none/audit?then=1", 400, "then"),
            ("/audits?limit=0", 422, "limit"),
            ("/audits?limit=many", 400, "query"),
            ("/register?status=lost", 422, "status"),
            ("/register?limit=201", 422, "limit"),
            ("/register?after=x", 400, "request_id"),
            ("/dlq?source=redis", 422, "source"),
        ] {
            let answer = admin.get(path).await;
            assert!(answer.status == status && answer.text("detail").contains(named), "{path}: {answer:?}");
        }
        bodies_are_json_objects(&admin).await;
        assert_eq!(world.rows("sales", "1 = 1").await, 0);
        world.finish().await;
    });
}

async fn bodies_are_json_objects(admin: &AdminPort) {
    let long = format!("{{\"pad\":\"{}\"}}", "x".repeat(70_000));
    for (kind, body, status) in [
        ("text/plain", "{}", 415),
        ("application/x-www-form-urlencoded", "all=true", 415),
        ("application/json", "", 400),
        ("application/json", "[]", 400),
        ("application/json", "{", 400),
        ("application/json", long.as_str(), 413),
    ] {
        let answer = admin.call("post", "/sales/none/close", Some(TOKEN), Some((kind, body))).await;
        assert_eq!(answer.status, status, "{kind} {:.20}: {answer:?}", body);
    }
}

#[test]
fn the_desk_works_over_http_for_both_queues_and_leaves_its_traces() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let admin = world.admin_port();
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("desk-http", 10, Some(1)).await;
        let (relay, spoiled) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        world.park_the_outbox().await;
        let mq = world.bought(&sale, "carol").await;
        world.lose_the_outbox().await;
        world.park_request_in_mq(&sale, mq).await;

        let list = admin.get("/dlq").await.json;
        assert_eq!(list["counts"], json!({ "relay": 2, "mq": 1, "register": 0 }), "{list:#}");
        let one = admin.get(&format!("/dlq?source=mq&named={mq}")).await.json;
        assert_eq!(one["entries"].as_array().map(Vec::len), Some(1), "{one:#}");
        assert!(one["entries"][0]["payload"].as_str().is_some_and(|text| text.contains("carol")));

        let before = world.dump(&sale).await;
        let dry = admin.post("/dlq/replay", json!({ "all": true, "dry_run": true })).await.json;
        assert!(
            dry["done"].as_array().is_some_and(|all| all.len() == 3 && all.iter().all(|d| d["result"] == "would_land")),
            "{dry:#}"
        );
        assert_eq!(world.dump(&sale).await, before, "a dry run changes nothing");

        let named = json!({ "named": [relay.to_string(), mq.to_string()], "by": "Li Wei" });
        let done = admin.post("/dlq/replay", named.clone()).await.json;
        assert_eq!(
            (done["trouble"].as_u64(), done["done"][0]["result"].as_str()),
            (Some(0), Some("landed")),
            "{done:#}"
        );
        let again = admin.post("/dlq/replay", named).await.json;
        assert!(
            again["done"].as_array().is_some_and(|all| all.iter().all(|d| d["result"] == "nothing_to_do")),
            "{again:#}"
        );
        let gone = json!({ "named": [spoiled.to_string()], "reason": "refunded, ticket 4711", "by": "Li Wei" });
        assert_eq!(admin.post("/dlq/give-up", gone).await.json["done"][0]["result"], "given_up");

        assert_eq!(admin.get("/dlq").await.json["entries"], json!([]), "an act is seen at once");
        let row = &admin.get("/register?status=failed_final").await.json["rows"][0];
        assert_eq!(
            (&row["request_id"], &row["reason"], &row["resolved_by"]),
            (&json!(spoiled.to_string()), &json!("GIVEN_UP"), &json!("console: Li Wei"))
        );
        let acts = admin.get("/acts?limit=2").await.json;
        let (last, before) = (&acts["acts"][0], &acts["acts"][1]);
        assert_eq!((&last["action"], &last["code"]), (&json!("dlq.give_up"), &json!("given_up")), "{acts:#}");
        assert_eq!(last["reason"], "refunded, ticket 4711", "{acts:#}");
        assert_eq!((&last["actor_name"], &last["auth_method"]), (&json!("Li Wei"), &json!("admin_token")), "{acts:#}");
        assert_eq!((&last["ip"], &before["action"]), (&json!("127.0.0.1"), &json!("dlq.replay")), "{acts:#}");
        assert_eq!(world.orders(&sale).await, 2);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.finish().await;
    });
}
