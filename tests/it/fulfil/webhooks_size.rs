//! Webhooks at size: what is due is found along one index, and many deliveries arrive, each once.

use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, webhook};
use crate::support::world::parts::mysql_store::{config, fresh, rows, url};
use crate::support::world::{World, eventually, run};
use diesel::QueryableByName;
use diesel::sql_types::{Nullable, Text};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use seckill::domain::webhook::DeliveryState;
use seckill::events::webhooks::rows::{DeliveriesFilter, TriedDelivery};
use seckill::roles::Role::Reconcile;
use seckill::store::mysql::{Db, DbConfig};
use std::time::Instant;

/// Deliveries of a webhook that does not take them.
const OTHERS: u32 = 20_000;
/// Deliveries of one that does.
const MANY: u32 = 2_000;

/// A table `n` with the column `i`, from 0 to below `count`, at most 100,000; in words that every server takes.
fn numbers(count: u32) -> String {
    let digits: Vec<String> = (0..10).map(|digit| format!("SELECT {digit} AS d")).collect();
    let digits = digits.join(" UNION ALL ");
    let places: Vec<String> = (0..5).map(|place| format!("({digits}) p{place}")).collect();
    let value: Vec<String> = (0..5).map(|place| format!("p{place}.d * {}", 10_u32.pow(place))).collect();
    let all = format!("SELECT {} AS i FROM {}", value.join(" + "), places.join(", "));
    format!("(SELECT i FROM ({all}) a WHERE i < {count}) n")
}

async fn fill(world: &World, webhook: &str, count: u32, state: &str) {
    let event = r#"CONCAT('{"v":1,"rid":"', i, '","sale":"s","user":"u","qty":1,"status":"PAID","version":2}')"#;
    world
        .sql(&format!(
            "INSERT INTO webhook_deliveries (webhook, request_id, event_key, body, state) \
             SELECT '{webhook}', i + 1, 'order.paid', {event}, '{state}' FROM {}",
            numbers(count)
        ))
        .await;
}

#[derive(QueryableByName, Debug)]
struct PlanStep {
    #[diesel(sql_type = Nullable<Text>)]
    key: Option<String>,
    #[diesel(sql_type = Nullable<Text>, column_name = "Extra")]
    extra: Option<String>,
}

#[test]
fn what_is_due_is_found_along_one_index_and_never_sorted() {
    run(async {
        let world = World::with(&[], &[]).await;
        for (webhook, state) in [("slow", "WAITING"), ("shop", "WAITING"), ("shop", "DELIVERED"), ("slow", "DEAD")] {
            fill(&world, webhook, 5_000, state).await;
        }
        let mut session = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        diesel::sql_query("ANALYZE TABLE webhook_deliveries").execute(&mut session).await.unwrap();
        let of_shop = "webhook = 'shop' AND next_at <= NOW(3)";
        for query in [
            format!("SELECT delivery_id, body FROM webhook_deliveries WHERE state = 'WAITING' AND {of_shop} ORDER BY next_at LIMIT 40"),
            format!("SELECT delivery_id FROM webhook_deliveries WHERE state = 'DELIVERED' AND {of_shop} LIMIT 1000"),
            "SELECT delivery_id, body FROM webhook_deliveries WHERE state = 'DEAD' ORDER BY webhook, next_at LIMIT 50".to_owned(),
            "SELECT webhook FROM webhook_deliveries WHERE state = 'DELIVERED' AND webhook > '' ORDER BY webhook LIMIT 1"
                .to_owned(),
            "SELECT webhook, state, COUNT(*), MIN(created_at) FROM webhook_deliveries WHERE state IN ('DEAD', 'WAITING') \
             GROUP BY state, webhook"
                .to_owned(),
        ] {
            let plan: Vec<PlanStep> = diesel::sql_query(format!("EXPLAIN FORMAT=TRADITIONAL {query}")).load(&mut session).await.unwrap();
            for step in plan {
                assert_eq!(step.key.as_deref(), Some("ix_webhook_due"), "{query}: {step:?}");
                assert!(!step.extra.as_deref().unwrap_or("").contains("filesort"), "{query}: {step:?}");
            }
        }
        world.stop().await;
    });
}

#[test]
fn many_deliveries_arrive_each_once_beside_more_of_a_receiver_that_takes_none() {
    run(async {
        let (shop, slow) = (HookReceiver::start().await, HookReceiver::start().await);
        slow.falls_silent();
        let text = [
            webhook("shop", &shop.url(), &[SECRET], &ALL_EVENTS),
            webhook("slow", &slow.url(), &[SECRET], &ALL_EVENTS),
        ];
        let mut world = World::with_config(&[], &[], &text.concat()).await;
        fill(&world, "slow", OTHERS, "WAITING").await;
        fill(&world, "shop", MANY, "WAITING").await;
        let begun = Instant::now();
        world.start_roles(&[Reconcile]).await;
        eventually("all of them are delivered", async || world.deliveries("DELIVERED").await == i64::from(MANY)).await;
        eprintln!("webhook record: {MANY} deliveries to one receiver in {:.1} s", begun.elapsed().as_secs_f64());
        assert_eq!(shop.calls().len(), usize::try_from(MANY).unwrap(), "each once");
        assert_eq!(shop.taken().len(), usize::try_from(MANY).unwrap());
        // Each place is free again when a try has failed.
        let deadline_ms = u128::from(world.settings.webhook_delivery.deadline_ms);
        let in_turn = 1 + begun.elapsed().as_millis() / deadline_ms;
        assert!(slow.calls().len() as u128 <= 8 * in_turn, "its own places only");
        world.stop().await;
    });
}

#[derive(QueryableByName)]
struct Counter {
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

/// Statements of the one session of this pool so far.
async fn statements(db: &Db) -> u64 {
    let query = "SHOW SESSION STATUS LIKE 'Questions'";
    let counted: Counter =
        db.run("test_status", async |conn| Ok(diesel::sql_query(query).get_result(conn).await?)).await.unwrap();
    counted.value.parse().unwrap()
}

/// The sender waits for it before it goes on. Of a database that is milliseconds away it would wait for each of them.
#[test]
fn what_was_delivered_is_recorded_by_one_statement_however_much_it_is() {
    run(async {
        drop(fresh("webhooks_recorded").await);
        let db = Db::connect(DbConfig { pool_max: 1, ..config(url("webhooks_recorded").await) }).unwrap();
        let waiting = (1..=64).map(|id| format!("({id}, 'shop', {id}, 'order.paid', '{{}}')")).collect::<Vec<_>>();
        let insert = format!(
            "INSERT INTO webhook_deliveries (delivery_id, webhook, request_id, event_key, body) VALUES {}",
            waiting.join(",")
        );
        db.run("test_insert", async |conn| Ok(conn.batch_execute(&insert).await?)).await.unwrap();
        let webhooks = rows(&db).webhooks;
        let taken = |ids: std::ops::RangeInclusive<u64>, keep_s| {
            ids.map(move |delivery_id| TriedDelivery::Delivered { delivery_id, keep_s })
        };
        let before = statements(&db).await;
        webhooks.record_tries(&taken(1..=50, 60).collect::<Vec<_>>()).await.unwrap();
        let sent = statements(&db).await - before;
        assert!(sent <= 5, "{sent} statements for 50 deliveries");

        // With failures among them, and rows that are kept for another time.
        let again =
            TriedDelivery::Again { delivery_id: 60, attempts: 0, after_ms: 60_000, problem: "answers 500".to_owned() };
        let mixed: Vec<_> =
            taken(51..=55, 60).chain([again]).chain(taken(56..=59, 600)).chain(taken(1..=1, 9)).collect();
        webhooks.record_tries(&mixed).await.unwrap();
        let find = async |state| {
            let filter = DeliveriesFilter { state, webhook: None, after: None, limit: 100 };
            webhooks.list(&filter).await.unwrap().deliveries
        };
        let delivered = find(DeliveryState::Delivered).await;
        assert!(delivered.len() == 59 && delivered.iter().all(|row| row.attempts == 1), "{delivered:?}");
        let kept = |of: u64| delivered.iter().find(|row| row.delivery_id == of).unwrap().next_at_ms;
        assert!(kept(56) - kept(55) > 500_000, "each as long as it was said");
        let failed: Vec<_> = find(DeliveryState::Waiting).await;
        let tried: Vec<_> = failed.iter().filter(|row| row.attempts == 1).map(|row| row.delivery_id).collect();
        assert_eq!((failed.len(), tried), (5, vec![60]));
    });
}
