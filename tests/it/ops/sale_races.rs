//! Two changes of one sale at the same moment, and a change whose process dies between the database and Redis.

use crate::support::basics::resp::RawRedis;
use crate::support::world::database_sessions::Session;
use crate::support::world::{World, eventually, run, time_passes};
use futures::future::{join, join_all};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::runtime::now_ms;
use serde_json::json;

const HOUR_MS: i64 = 3_600_000;

async fn starting_in(world: &World, id: &str, ms: i64) -> SaleId {
    world
        .sale_with(id, 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = (now_ms() + ms, now_ms() + ms + HOUR_MS))
        .await
}

/// A field of the sale's meta in Redis.
async fn meta(world: &World, sale: &SaleId, field: &str) -> String {
    let key = world.servers.redis.keys.meta(0, sale);
    RawRedis::of(world).await.hash(&key).await.get(field).cloned().unwrap_or_default()
}

#[test]
fn of_edits_at_one_moment_each_is_whole_or_refused() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (sale, admin) = (starting_in(&world, "many", HOUR_MS).await, world.admin_port());
        let edit = async |n: i64| {
            let form = json!({ "title": format!("t{n}"), "price_cents": n, "limit": n });
            admin.post("/sales/many/edit", form).await.status
        };
        let answers = join_all((1..=20).map(edit)).await;
        let made = answers.iter().filter(|status| **status == 200).count();
        assert!(made > 0 && answers.iter().all(|status| [200, 409].contains(status)), "{answers:?}");
        let holds = admin.get("/sales/many").await.json["sale"].clone();
        assert_eq!(holds["version"], 1 + made, "each that was answered with 200 counts");
        let n = holds["price_cents"].as_i64().unwrap();
        assert_eq!((&holds["title"], &holds["policy"]), (&json!(format!("t{n}")), &json!(n)), "one edit, whole");
        assert_eq!(meta(&world, &sale, "limit").await, n.to_string(), "and Redis has it");
        world.finish().await;
    });
}

#[test]
fn edits_go_on_until_the_start_is_settled_and_the_last_one_holds() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (sale, admin) = (starting_in(&world, "close-by", HOUR_MS).await, world.admin_port());
        let first = admin.post("/sales/close-by/edit", json!({ "price_cents": 1, "limit": 1 })).await;
        assert_eq!(first.status, 200, "{first:?}");
        // Only now, so that a slow machine has made an edit.
        world.sql("UPDATE sales SET starts_at = NOW(3) + INTERVAL 32 SECOND WHERE sale_id = 'close-by'").await;
        let settled = async || {
            world
                .number("SELECT starts_at <= NOW(3) + INTERVAL 30 SECOND AS n FROM sales WHERE sale_id = 'close-by'")
                .await
                == 1
        };
        let (mut last, mut refused) = (1, 0);
        while refused < 3 {
            let already = settled().await;
            let n = last + 1;
            let answer = admin.post("/sales/close-by/edit", json!({ "price_cents": n, "limit": n })).await;
            match answer.status {
                200 => last = n,
                409 => refused += 1,
                other => panic!("{other}: {answer:?}"),
            }
            assert!(!already || answer.status == 409, "after the moment by the database's clock none is made");
            assert!(answer.status == 200 || settled().await, "before it none is refused");
        }
        let holds = admin.get("/sales/close-by").await.json["sale"].clone();
        assert_eq!((&holds["price_cents"], &holds["policy"]), (&json!(last), &json!(last)));
        assert_eq!(meta(&world, &sale, "limit").await, last.to_string());
        world.finish().await;
    });
}

#[test]
fn a_reschedule_against_a_close_never_opens_the_sale_again() {
    run(async {
        let world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let mut both = [0, 0];
        for n in 0..12 {
            let sale = starting_in(&world, &format!("race{n}"), if n % 2 == 0 { HOUR_MS } else { -1_000 }).await;
            let end = chrono::DateTime::from_timestamp_millis(now_ms() + 2 * HOUR_MS + n * 1_000).unwrap().to_rfc3339();
            let (reschedule, close) = (format!("/sales/{sale}/reschedule"), format!("/sales/{sale}/close"));
            let moving = admin.post(&reschedule, json!({ "ends_at": end }));
            let (moved, closed) = join(moving, admin.post(&close, json!({}))).await;
            assert_eq!(closed.status, 200, "{closed:?}");
            assert!([200, 409].contains(&moved.status), "{moved:?}");
            both[usize::from(moved.status == 409)] += 1;
            let holds = admin.get(&format!("/sales/{sale}")).await.json["sale"].clone();
            assert_eq!(holds["status"], "closed");
            assert_eq!(holds["version"], if moved.status == 200 { 2 } else { 1 });
            assert_eq!(meta(&world, &sale, "state").await, "closed");
            assert_eq!(meta(&world, &sale, "ends").await, holds["ends_at_ms"].to_string());
        }
        println!("made before the close and refused after it: {both:?}");
        world.finish().await;
    });
}

#[test]
fn a_change_that_the_database_undid_for_contention_is_made_again() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (_, admin) = (starting_in(&world, "contended", HOUR_MS).await, world.admin_port());
        let mut other = Session::open(&world).await;
        let lock = "CONCAT(LEFT(SHA2(DATABASE(), 256), 40), 'undoes')";
        other.run(&format!("DO GET_LOCK({lock}, 60)")).await;
        let undoes = format!(
            "CREATE TRIGGER undoes BEFORE UPDATE ON sales FOR EACH ROW \
             IF IS_USED_LOCK({lock}) IS NOT NULL THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, \
             MESSAGE_TEXT = 'Deadlock found when trying to get lock; try restarting transaction'; END IF"
        );
        world.sql(&undoes).await;
        let let_through = async {
            // Less than the tries take.
            time_passes(300).await;
            other.run(&format!("DO RELEASE_LOCK({lock})")).await;
        };
        let (paused, ()) = join(admin.post("/sales/contended/pause", json!({})), let_through).await;
        assert_eq!(paused.status, 200, "{paused:?}");
        assert_eq!(admin.get("/sales/contended").await.json["sale"]["status"], "paused");
        world.finish().await;
    });
}

#[test]
fn a_change_that_dies_before_redis_is_mended_by_any_api_process() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let sale = starting_in(&world, "half", HOUR_MS).await;
        let starts = meta(&world, &sale, "starts").await;
        let later = chrono::DateTime::from_timestamp_millis((now_ms() / 1000) * 1000 + HOUR_MS / 2).unwrap();
        let (at, ends) = (later.to_rfc3339(), later + chrono::Duration::hours(1));
        for args in [
            vec!["sale", "edit", "half", "--limit", "5"],
            vec!["sale", "reschedule", "half", "--starts-at", &at, "--ends-at", &ends.to_rfc3339()],
        ] {
            let died = world.cli_with_faults("F43=return", &args);
            assert_eq!(died.code, None, "{died:?}");
        }
        assert_eq!(
            world.number("SELECT version AS n FROM sales WHERE sale_id = 'half'").await,
            3,
            "the database has both"
        );
        assert_eq!([meta(&world, &sale, "limit").await, meta(&world, &sale, "starts").await], ["1".to_owned(), starts]);
        world.start_roles(&[Api]).await;
        eventually("the limit and the start in redis", async || {
            let now = [meta(&world, &sale, "limit").await, meta(&world, &sale, "starts").await];
            now == ["5".to_owned(), later.timestamp_millis().to_string()]
        })
        .await;
        world.finish().await;
    });
}

#[test]
fn an_end_that_has_passed_before_redis_gets_it_is_mended_too() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let sale = starting_in(&world, "half-ended", -1_000).await;
        let later = chrono::DateTime::from_timestamp_millis(now_ms() + 2 * HOUR_MS).unwrap().to_rfc3339();
        let moved = ["sale", "reschedule", "half-ended", "--ends-at", &later];
        let died = world.cli_with_faults("F43=return", &moved);
        assert_eq!(died.code, None, "{died:?}");
        // As if that end had passed: a command that takes its time to start would refuse one of the next moment.
        world.sql("UPDATE sales SET ends_at = NOW(3) - INTERVAL 1 SECOND WHERE sale_id = 'half-ended'").await;
        let end = world.stored(&sale).await.ends_at_ms.to_string();
        assert_ne!(meta(&world, &sale, "ends").await, end);
        world.start_roles(&[Api]).await;
        eventually("the end in redis", async || meta(&world, &sale, "ends").await == end).await;
        world.finish().await;
    });
}

#[test]
fn a_close_that_dies_before_redis_is_finished_by_the_reconciler() {
    run(async {
        let world = World::with(&[], &["p5_reconcile.interval_ms=100"]).await;
        let sale = world.sale("half-closed", 10, Some(1)).await;
        let died = world.cli_with_faults("F43=return", &["sale", "close", "half-closed"]);
        assert_eq!(died.code, None, "{died:?}");
        assert_eq!(world.rows("sales", "status = 'closed'").await, 1);
        assert_eq!(meta(&world, &sale, "state").await, "open", "redis does not know it");
        let p5 = world.extra_roles(&[Reconcile], |_| {});
        let key = world.servers.redis.keys.meta(0, &sale);
        eventually("its keys are gone", async || world.redis(&["EXISTS", &key]).await.as_u64() == Some(0)).await;
        p5.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_clone_that_dies_behind_its_commit_is_there_once_with_its_act_and_its_repeat_says_so() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("model", 10, Some(1)).await;
        let (starts, ends) = (world.stored(&sale).await.starts_at_ms, now_ms() + HOUR_MS);
        let at = |ms| chrono::DateTime::from_timestamp_millis(ms).unwrap().to_rfc3339();
        let (starts, ends) = (at(starts), at(ends));
        let clone = ["sale", "clone", "model", "--id", "again", "--starts-at", &starts, "--ends-at", &ends];
        let died = world.cli_with_faults("F39=return", &clone);
        assert_eq!(died.code, None, "{died:?}");
        let there = async || {
            (world.rows("sales", "sale_id = 'again'").await, world.rows("stock_grants", "sale_id = 'again'").await)
        };
        assert_eq!(there().await, (1, 1), "with its first grant");
        assert_eq!(world.rows("operator_acts", "sale_id = 'again' AND outcome = 'ok'").await, 1, "and its act");
        let repeat = world.cli(&clone).exits(1);
        assert!(repeat.err.contains("again"), "{repeat:?}");
        assert_eq!(there().await, (1, 1), "once");
        assert_eq!(
            world.rows("operator_acts", "sale_id = 'again' AND outcome = 'failed' AND code = 'EXISTS'").await,
            1
        );
        world.cli(&["sale", "warm", "again"]).exits(0);
        let again = seckill::domain::ids::SaleId::parse("again").unwrap();
        world.bought(&again, "alice").await;
        assert_eq!(world.servers.redis.stock.units(&again, 0).await.unwrap(), Some(9));
        world.finish().await;
    });
}

#[test]
fn what_a_frozen_sale_is_rebuilt_with_are_the_terms_that_it_was_given_meanwhile() {
    run(async {
        let world =
            World::with(&[Relay, Consumer], &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=300"]).await;
        let sale = starting_in(&world, "frozen", HOUR_MS).await;
        world.cli(&["sale", "rebuild", "frozen"]).exits(0);
        world.cli(&["sale", "edit", "frozen", "--limit", "4"]).exits(0);
        assert_eq!(meta(&world, &sale, "state").await, "frozen", "an edit does not open it");
        let p5 = world.extra_roles(&[Reconcile], |_| {});
        eventually("rebuilt", async || meta(&world, &sale, "state").await == "open").await;
        assert_eq!(meta(&world, &sale, "limit").await, "4");
        p5.stop().await;
        world.finish().await;
    });
}
