//! Lines as operators see them: typed as the document says, page by page, counted by state, drawn with a text from outside.

use crate::support::basics::answer::Answer;
use crate::support::basics::answer_schema::{misfits, of_answer};
use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer};
use crate::support::world::admin_port::{AdminPort, VIEWER, named_tokens};
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::policy::LimitBy;
use seckill::roles::Role::Api;
use serde_json::{Value, json};

/// An answer that fits the document.
async fn held(admin: &AdminPort, template: &str, answer: Answer) -> Answer {
    let document = admin.get("/openapi.json").await.json;
    assert_eq!(answer.status, 200, "{template}: {answer:?}");
    let method = if template.ends_with("/draw") { "post" } else { "get" };
    let schema = of_answer(&document, method, &format!("/admin/v1/sales/{{sale_id}}{template}"), 200);
    assert!(schema["$ref"].is_string(), "{template} has no type of its own: {schema}");
    assert_eq!(misfits(&document, schema, &answer.json), Vec::<String>::new(), "{template}: {:#}", answer.json);
    answer
}

async fn line(admin: &AdminPort, sale: &SaleId) -> Answer {
    held(admin, "/line", admin.get(&format!("/sales/{sale}/line")).await).await
}

async fn page(admin: &AdminPort, sale: &SaleId, query: &str) -> Answer {
    held(admin, "/line/entries", admin.get(&format!("/sales/{sale}/line/entries{query}")).await).await
}

fn ids(page: &Answer) -> Vec<&str> {
    page.json["entries"].as_array().unwrap().iter().map(|entry| entry["entry_id"].as_str().unwrap()).collect()
}

/// As offers write it.
async fn offered(world: &World, user: &str, state: &str, rank: u32) {
    world
        .sql(&format!(
            "UPDATE line_entries SET state = '{state}', entry_rank = {rank}, request_id = {} WHERE user_id = '{user}'",
            7_000 + rank
        ))
        .await;
}

#[test]
fn entries_are_listed_page_by_page_and_counted_by_state() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let admin = world.admin_port();
        let sale = world.raffle("listed", |_, _| ()).await;
        let empty = line(&admin, &sale).await;
        assert_eq!((empty.text("kind"), empty.text("state")), ("raffle".to_owned(), "OPEN".to_owned()));
        assert_eq!(page(&admin, &sale, "").await.json, json!({ "entries": [], "next": null }));
        let mut entered = Vec::new();
        for no in 0..7 {
            entered.push(world.entered(&sale, &format!("buyer-{no}")).await);
        }
        world.leave_line(&sale, "buyer-6", &entered[6]).await;
        for (user, state, rank) in [("buyer-0", "TAKEN", 1), ("buyer-1", "LAPSED", 2), ("buyer-2", "OFFERED", 4)] {
            offered(&world, user, state, rank).await;
        }
        offered(&world, "buyer-3", "WAITING", 5).await;

        let (first, mut walked) = (page(&admin, &sale, "?limit=3").await, Vec::new());
        assert_eq!(first.text("next"), entered[2]);
        let mut next = first.json["next"].clone();
        walked.extend(ids(&first).into_iter().map(str::to_owned));
        while let Some(after) = next.as_str() {
            let more = page(&admin, &sale, &format!("?limit=3&after={after}")).await;
            walked.extend(ids(&more).into_iter().map(str::to_owned));
            next = more.json["next"].clone();
        }
        assert_eq!(walked, entered, "each once, in the order of ids");
        assert_eq!(ids(&page(&admin, &sale, "?state=WAITING").await), entered[3..6]);
        let offer = page(&admin, &sale, "?state=OFFERED").await.json["entries"][0].clone();
        assert_eq!(
            (&offer["user_id"], &offer["rank"], &offer["request_id"]),
            (&json!("buyer-2"), &json!(4), &json!("7004"))
        );
        assert_eq!((&offer["person"], &offer["quantity"], &offer["code"]), (&Value::Null, &json!(1), &json!("P6-W1")));
        let left = page(&admin, &sale, "?state=LEFT").await;
        assert_eq!((ids(&left), &left.json["entries"][0]["listed"]), (vec![entered[6].as_str()], &json!(false)));

        let counts = json!({ "waiting": 3, "offered": 1, "taken": 1, "lapsed": 1, "left": 1 });
        eventually("counts of now", async || line(&admin, &sale).await.json["entries"] == counts).await;
        let counted = line(&admin, &sale).await;
        assert_eq!(counted.json["in_hand"], 1);
        assert_eq!(counted.json["offered_to_rank"], 4, "one that waits has had no offer");

        let table = world.cli(&["line", "entries", "listed", "--state", "OFFERED"]).exits(0);
        assert!(table.out.contains("buyer-2") && !table.out.contains("buyer-0"), "{table:?}");
        let listed = world.cli(&["line", "entries", "listed", "--limit", "2", "--json"]).exits(0).json();
        assert_eq!(listed, page(&admin, &sale, "?limit=2").await.json, "the same as over HTTP");
        world.cli(&["line", "entries", "listed", "--state", "waiting"]).exits(64);
        world.cli(&["line", "entries", "nothing"]).exits(1);
        world.finish().await;
    });
}

#[test]
fn what_cannot_be_listed_says_why_and_every_role_reads() {
    run(async {
        let world = World::with(&[Api], &[&named_tokens()]).await;
        let admin = world.admin_port();
        let sale = world.raffle("asked", |_, _| ()).await;
        world.sale("plain", 1, None).await;
        for path in ["/line", "/line/entries", "/line/list"] {
            for (of, code) in [("nothing", "P1-S3"), ("plain", "NO_LINE")] {
                let answer = admin.get(&format!("/sales/{of}{path}")).await;
                assert_eq!((answer.status, answer.code().as_str()), (404, code), "{path}: {answer:?}");
            }
        }
        for (query, field) in [("limit=0", "limit"), ("limit=201", "limit"), ("state=GONE", "state")] {
            let answer = admin.get(&format!("/sales/{sale}/line/entries?{query}")).await;
            assert_eq!((answer.status, answer.text("field").as_str()), (422, field), "{answer:?}");
            assert!(answer.text("detail").starts_with(&format!("{field}: expected ")), "{answer:?}");
        }
        for query in ["after=0", "after=x", "limit=-1", "status=LEFT"] {
            assert_eq!(admin.get(&format!("/sales/{sale}/line/entries?{query}")).await.status, 400, "{query}");
        }
        let early = admin.get(&format!("/sales/{sale}/line/list")).await;
        assert!(early.status == 409 && early.text("detail").contains("is OPEN"), "{early:?}");
        let viewer = admin.call("get", &format!("/sales/{sale}/line/entries"), Some(VIEWER), None).await;
        assert_eq!(viewer.status, 200, "{viewer:?}");
        world.finish().await;
    });
}

#[test]
fn a_person_is_shown_where_the_sale_limits_by_person() {
    run(async {
        let world = World::with(&[Api], &FACTS_AND_PASSES).await;
        let admin = world.admin_port();
        let sale = world.raffle("persons", |sale, _| sale.limit_by = LimitBy::Person).await;
        let one = ShowingBuyer::new(&world, "one").with_claims(json!({ "pid": "p 1" }));
        assert_eq!(one.enter_line(&sale).await.status, 201);
        let entry = page(&admin, &sale, "").await.json["entries"][0].clone();
        assert_eq!((&entry["user_id"], &entry["person"]), (&json!("one"), &json!("p 1")));
        world.finish().await;
    });
}

#[test]
fn a_line_that_waits_for_a_text_is_drawn_over_http_once_and_its_list_is_the_public_one() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let admin = world.admin_port();
        let sale = world.raffle("text", |_, line| line.needs_beacon = true).await;
        let own = world.raffle("own", |_, _| ()).await;
        for no in 0..5 {
            world.entered(&sale, &format!("buyer-{no}")).await;
        }
        let draw = async |sale: &SaleId, beacon: &str| {
            admin.post(&format!("/sales/{sale}/line/draw"), json!({ "beacon": beacon, "by": "Li Wei" })).await
        };
        let early = draw(&sale, "lotto 1").await;
        assert!(early.status == 409 && early.text("detail").contains("is OPEN"), "{early:?}");
        for line in [&sale, &own] {
            world.line_is_over(line).await;
        }
        world.keep_lines().await;
        let sealed = line(&admin, &sale).await;
        assert_eq!((sealed.text("state"), &sealed.json["draw"]["entries"]), ("SEALED".to_owned(), &json!(5)));
        for (text, field) in [("", "beacon"), (" ", "beacon"), (&"b".repeat(201)[..], "beacon")] {
            let answer = draw(&sale, text).await;
            assert_eq!((answer.status, answer.text("field").as_str()), (422, field), "{answer:?}");
        }
        for _ in 0..2 {
            let drawn = held(&admin, "/line/draw", draw(&sale, "lotto 灯塔").await).await;
            assert_eq!(
                (drawn.text("state"), &drawn.json["draw"]["beacon"]),
                ("DRAWN".to_owned(), &json!("lotto 灯塔"))
            );
        }
        for (sale, why) in [(&sale, "another text: lotto 灯塔"), (&own, "is drawn by itself")] {
            let answer = draw(sale, "other").await;
            assert!(answer.status == 409 && answer.text("detail").contains(why), "{answer:?}");
        }
        assert_eq!(world.rows("operator_acts", "action = 'line.draw' AND actor_name = 'Li Wei'").await, 1);
        let list = admin.get(&format!("/sales/{sale}/line/list")).await;
        assert_eq!((list.status, list.header("content-type")), (200, "text/plain; charset=utf-8"));
        world.draw_once(&sale, "DRAWN").await;
        assert_eq!(list.body, world.list_of(&sale).await.body);
        world.finish().await;
    });
}
