//! What is said of timetables: a file or a body with a bad one is refused with its field, and a good one is shown as far as it is.

use crate::support::processes::programs::scratch;
use crate::support::world::{World, eventually, run};
use seckill::p5_reconcile::Timekeeper;
use seckill::roles::Role::Api;
use seckill::runtime::Worker;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const STARTS: &str = "2026-01-01T10:00:00+08:00";
const ENDS: &str = "2099-01-01T12:00:00+08:00";
/// It has passed.
const AT: &str = "2026-01-01T11:00:00+08:00";
const LATER: &str = "2099-01-01T11:00:00+08:00";

fn sale(id: &str, more: &Value) -> Value {
    let mut sale = json!({
        "sale_id": id, "product_id": "p", "title": id, "stock": 5, "starts_at": STARTS, "ends_at": ENDS
    });
    sale.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sale
}

/// A drop whose first sale has this timetable.
fn drop_file(name: &str, more: &Value) -> String {
    let last = sale("b", &json!({ "ends_at": "2099-01-01T13:00:00+08:00" }));
    let drop = json!({ "drop_id": "d", "title": "d", "limit": 1, "sales": [sale("a", more), last] });
    let path = scratch("timetables").join(name);
    std::fs::write(&path, drop.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_bad_timetable_is_refused_with_its_field_in_both_languages() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let port = world.admin_port();
        let releases = |at: &str, units: i64| json!({ "releases": [{ "at": at, "units": units }] });
        for (more, english, chinese) in [
            (releases(STARTS, 1), "releases: expected times (at) after starts_at", "releases：应为晚于 starts_at"),
            (releases(ENDS, 1), "before ends_at", "早于 ends_at"),
            (releases(AT, 0), "releases: expected units of 1 or more", "至少为 1"),
            (releases(AT, 999_999_996), "at most 1,000,000,000 units", "连同 stock 至多"),
            (json!({ "releases": vec![json!({ "at": AT, "units": 1 }); 33] }), "at most 32", "至多 32 次"),
            (json!({ "releases": vec![json!({ "at": AT, "units": 1 }); 2] }), "each time (at) later", "逐次更晚"),
            (
                json!({ "rollover_to": "b" }),
                "rollover_to: expected none: only a sale in a drop",
                "只有组合活动中的活动",
            ),
        ] {
            let body = sale("x", &more);
            let (plain, zh) = (port.post("/sales", body.clone()).await, port.post_in("zh", "/sales", body).await);
            assert_eq!((plain.status, zh.status), (422, 422), "{plain:?}");
            assert!(plain.text("detail").contains(english) && zh.text("detail").contains(chinese), "{plain:?} {zh:?}");
        }
        for more in [json!({ "rollover_to": "a" }), json!({ "rollover_to": "other" })] {
            let said = world.cli(&["drop", "create", "--file", &drop_file("bad.json", &more)]).exits(64);
            assert!(said.err.contains("sale a: rollover_to: expected another sale of this drop"), "{said:?}");
        }
        let unknown = releases("tomorrow", 1);
        assert_eq!(port.post("/sales", sale("x", &unknown)).await.status, 400);
        assert_eq!(world.rows("sales", "TRUE").await, 0);
        let reserved = world.cli(&["sale", "withdraw", "x", "1", "--name", "rollover-1"]).exits(64);
        assert!(reserved.err.contains("so not rollover-"), "{reserved:?}");
        world.finish().await;
    });
}

/// Of the sale with a release that was not given, and of no other.
async fn buyers_see_when_more_comes(world: &World) {
    let read = async || {
        let answer = world.http.get(format!("{}/v1/drops/d", world.api)).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    eventually("the next release", async || {
        let next = read().await["sales"][0]["next_release_at"].clone();
        next.as_str().is_some_and(|at| at.starts_with("2099-01-01T03:00:00"))
    })
    .await;
    assert_eq!(read().await["sales"][1]["next_release_at"], Value::Null);
}

#[test]
fn a_timetable_is_created_once_and_shown_as_far_as_it_is() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let port = world.admin_port();
        let releases = json!([{ "at": AT, "units": 3 }, { "at": LATER, "units": 4 }]);
        let plain = port.post("/sales", sale("alone", &json!({ "releases": releases.clone(), "warm": true }))).await;
        assert_eq!((plain.status, &plain.json["releases"][0]["given"]), (200, &json!(false)), "{plain:?}");
        let good = drop_file("good.json", &json!({ "releases": releases, "rollover_to": "b" }));
        world.cli(&["drop", "create", "--file", &good, "--warm"]).exits(0);
        let done = Timekeeper::new(world.sale_control(), Arc::new(AtomicBool::new(true))).step().await;
        assert!(done.is_ok(), "{done:?}");

        let there = world.cli(&["drop", "create", "--file", &good]).exits(0);
        assert!(there.out.contains("is there already"), "also after a release: {there:?}");
        for other in [json!({ "rollover_to": "b" }), json!({ "releases": [{ "at": AT, "units": 3 }] })] {
            let exists = world.cli(&["drop", "create", "--file", &drop_file("other.json", &other)]).exits(1);
            assert!(exists.err.contains("drop d exists already"), "{exists:?}");
        }
        let alone = port.get("/sales/alone").await.json;
        assert_eq!((&alone["releases"][0]["given"], &alone["releases"][1]["given"]), (&json!(true), &json!(false)));
        assert_eq!((&alone["releases"][1]["units"], &alone["rollover_to"]), (&json!(4), &Value::Null), "{alone}");
        let drop = port.get("/drops/d").await.json;
        let (of_file, progress) = (&drop["sales"][0], &drop["progress"][0]);
        assert_eq!((&of_file["stock"], &progress["granted"]), (&json!(5), &json!(8)), "{drop}");
        assert_eq!(
            (&of_file["rollover_to"], &progress["releases_given"]),
            (&json!("b"), &json!([true, false])),
            "{drop}"
        );
        assert_eq!(of_file["releases"][0]["units"], 3, "{drop}");
        for shown in [world.cli(&["sale", "show", "a"]).exits(0), world.cli(&["drop", "show", "d"]).exits(0)] {
            assert!(shown.out.contains("(given)") && shown.out.contains("goes to b"), "{shown:?}");
        }
        buyers_see_when_more_comes(&world).await;
        world.finish().await;
    });
}
