//! Events of sales: each change that lasts is announced, on the exchange and to the webhooks that want it, with a version that grows,
//! however often a process dies between the check and the broker.

use crate::support::buyers::orders::LONG;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, NEXT_SECRET, SECRET, SOON, webhook};
use crate::support::outside::sale_listener::{SaleListener, named};
use crate::support::world::{World, eventually, run};
use seckill::domain::announcement::SaleEvent;
use seckill::domain::ids::SaleId;
use seckill::domain::policy::PurchasePolicy;
use seckill::p5_reconcile::Announcer;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::runtime::{Worker, now_ms};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100", "redis.shards=2"];

impl World {
    /// A worker as the leader has it.
    fn announcer(&self) -> Announcer {
        let keys = self.servers.redis.sale_keys.clone();
        let leads = Arc::new(AtomicBool::new(true));
        Announcer::new(self.servers.rows.announcements.clone(), keys, leads)
    }

    /// One check of all sales, by a process that has just begun.
    async fn announce(&self) {
        self.announcer().step().await.unwrap();
    }

    /// The events of a sale that wait for the broker, in the order of their writing.
    async fn written(&self, sale: &SaleId) -> Vec<String> {
        let mut names = Vec::new();
        for event in SaleEvent::ALL {
            let of = format!("event_key = '{}' AND body LIKE '%\"sale_id\":\"{sale}\"%'", event.key());
            let count = self.rows("order_events", &of).await;
            if count > 0 {
                let query = format!("SELECT CAST(MIN(event_id) AS SIGNED) AS n FROM order_events WHERE {of}");
                names.push((self.number(&query).await, count, event.key().trim_start_matches("sale.").to_owned()));
            }
        }
        names.sort();
        assert!(names.iter().all(|(_, count, _)| *count == 1), "{names:?}");
        names.into_iter().map(|(_, _, name)| name).collect()
    }

    /// What was announced of a sale last, and its version.
    async fn announced(&self, sale: &SaleId, state: &str, version: u32) -> bool {
        let row = format!("sale_id = '{sale}' AND state = '{state}' AND version = {version}");
        self.rows("sale_announcements", &row).await == 1
    }

    /// As if the last announcements were long ago.
    async fn time_has_passed(&self) {
        self.sql("UPDATE sale_announcements SET announced_at = NOW(3) - INTERVAL 1 MINUTE").await;
    }

    async fn end_now(&self, sale: &SaleId) {
        let past = "starts_at = NOW(3) - INTERVAL 2 MINUTE, ends_at = NOW(3) - INTERVAL 1 SECOND";
        self.sql(&format!("UPDATE sales SET {past} WHERE sale_id = '{sale}'")).await;
    }
}

#[test]
fn a_sales_life_is_announced_on_the_exchange_and_to_the_webhooks_that_want_it() {
    run(async {
        let (shop, other) = (HookReceiver::start().await, HookReceiver::start().await);
        let keys = SaleEvent::ALL.map(SaleEvent::key);
        let hooks = [
            webhook("shop", &shop.url(), &[SECRET], &keys),
            webhook("orders-only", &other.url(), &[NEXT_SECRET], &ALL_EVENTS),
        ];
        let set = [QUICK, &[SOON]].concat();
        let world = World::with_config(&[Api, Relay, Consumer, Reconcile], &set, &hooks.concat()).await;
        let listener = SaleListener::listen(&world).await;
        let begins = now_ms() + 1_500;
        let sale = world
            .sale_with("life", 1, |sale| {
                (sale.starts_at_ms, sale.payment) = (begins, Some(LONG));
                sale.policy = PurchasePolicy::Unlimited;
            })
            .await;
        let control = world.sale_control();
        let life: [&str; 8] = ["opened", "paused", "resumed", "sold_out", "back", "sold_out", "ended", "closed"];
        listener.receives(&sale, &life[..1]).await;
        assert_eq!(listener.last(&sale, "opened")["remaining"], 1);
        assert!(listener.last(&sale, "opened")["at"].as_i64().unwrap() >= begins, "not before it begins");
        control.pause(&sale).await.unwrap();
        listener.receives(&sale, &life[..2]).await;
        control.resume(&sale).await.unwrap();
        listener.receives(&sale, &life[..3]).await;
        let order = world.ordered(&sale, "ann").await;
        listener.receives(&sale, &life[..4]).await;
        world.time_has_passed().await;
        world.cli(&["order", "cancel", &order.to_string(), "--reason", "r"]).exits(0);
        listener.receives(&sale, &life[..5]).await;
        eventually("it is on sale", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
        listener.receives(&sale, &life[..6]).await;
        world.end_now(&sale).await;
        listener.receives(&sale, &life[..7]).await;
        world.sale_control().close(&sale).await.unwrap();
        listener.receives(&sale, &life).await;
        assert_eq!(world.rows("sale_announcements", "TRUE").await, 0, "nothing follows a close");
        let got = async || shop.events_of_sales().len() == life.len();
        eventually("the shop has them", got).await;
        let expected: BTreeSet<(u64, String)> = (1..).zip(life.map(str::to_owned)).collect();
        assert_eq!(shop.events_of_sales(), expected);
        eventually("all is delivered", async || world.deliveries("WAITING").await == 0).await;
        let orders: BTreeSet<String> = other.calls().iter().map(|call| call.event().0).collect();
        assert!(orders.iter().all(|event| event.starts_with("order.")), "no other one gets them: {orders:?}");
        world.finish().await;
    });
}

#[test]
fn two_processes_that_check_at_once_announce_once_and_one_that_does_not_lead_announces_nothing() {
    run(async {
        let world = World::with(&[Api], QUICK).await;
        let sales = [world.sale("a", 0, None).await, world.sale("b", 5, None).await];
        let keys = world.servers.redis.sale_keys.clone();
        let rows = world.servers.rows.announcements.clone();
        Announcer::new(rows, keys, Arc::default()).step().await.unwrap();
        assert_eq!(world.rows("order_events", "TRUE").await, 0, "another process leads");
        let (mut one, mut two) = (world.announcer(), world.announcer());
        let (first, second) = tokio::join!(one.step(), two.step());
        first.unwrap();
        second.unwrap();
        world.announce().await;
        assert_eq!(world.written(&sales[0]).await, ["opened", "sold_out"], "it was sold out before the first check");
        assert_eq!(world.written(&sales[1]).await, ["opened"]);
        world.sale_control().close(&sales[1]).await.unwrap();
        let (first, second) = tokio::join!(one.step(), world.announce());
        first.unwrap();
        let () = second;
        world.announce().await;
        assert_eq!(world.written(&sales[1]).await, ["opened", "closed"]);
        world.finish().await;
    });
}

#[test]
fn a_leader_that_dies_at_any_line_is_followed_by_one_that_announces_what_is_missing() {
    run(async {
        let world = World::with(&[], QUICK).await;
        let listener = SaleListener::listen(&world).await;
        let sale = world.sale("dies", 5, None).await;
        world.process("reconcile", "F60=return", QUICK).dies_at("F60").await;
        assert_eq!((world.written(&sale).await.len(), world.rows("sale_announcements", "TRUE").await), (0, 0));
        world.process("reconcile", "F61=return", QUICK).dies_at("F61").await;
        assert_eq!(world.written(&sale).await, ["opened"]);
        let next = world.extra_roles(&[Reconcile], |_| ());
        world.sale_control().pause(&sale).await.unwrap();
        eventually("paused", async || world.announced(&sale, "PAUSED", 2).await).await;
        assert_eq!(world.written(&sale).await, ["opened", "paused"], "each once");
        next.stop().await;
        // The broker has them, the database does not know it: they come again, as what they were.
        world.process("consumer", "F38=return", QUICK).dies_at("F38").await;
        let consumer = world.extra_roles(&[Consumer], |_| ());
        eventually("twice", async || listener.events_of(&sale).await.len() == 4).await;
        listener.receives(&sale, &["opened", "paused"]).await;
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn nothing_is_said_of_a_sale_before_it_begins_but_that_it_was_closed() {
    run(async {
        let world = World::with(&[], QUICK).await;
        let later = |sale: &mut seckill::domain::sale::Sale| sale.starts_at_ms = now_ms() + 3_000_000;
        let draft = world.draft("draft", 5, later).await;
        let [begins, closes] = [world.sale_with("begins", 5, later).await, world.sale_with("closes", 5, later).await];
        world.sale_control().pause(&closes).await.unwrap();
        world.announce().await;
        for sale in [&begins, &closes] {
            assert!(world.announced(sale, "UPCOMING", 0).await, "{sale}");
        }
        assert_eq!(world.rows("order_events", "TRUE").await, 0);
        world.sql("UPDATE sales SET starts_at = NOW(3) - INTERVAL 1 SECOND WHERE sale_id = 'begins'").await;
        for sale in [&draft, &closes] {
            world.sale_control().close(sale).await.unwrap();
        }
        world.announce().await;
        assert_eq!(world.written(&begins).await, ["opened"]);
        assert_eq!(world.written(&closes).await, ["closed"]);
        assert!(world.written(&draft).await.is_empty(), "a draft that never was warm says nothing");
        assert_eq!(world.rows("sale_announcements", "TRUE").await, 1);
        world.finish().await;
    });
}

#[test]
fn an_announcement_that_is_written_before_its_events_is_missed() {
    run(async {
        let world = World::with(&[], QUICK).await;
        let sale = world.sale("missed", 5, None).await;
        let faults = "announced_with_its_events=return;F60=return";
        world.process("reconcile", faults, QUICK).dies_at("F60").await;
        world.announce().await;
        assert!(world.announced(&sale, "OPEN", 1).await);
        assert!(world.written(&sale).await.is_empty(), "and never will be");
        world.finish().await;
    });
}

#[test]
fn units_that_are_unknown_say_nothing_and_those_that_come_back_at_once_wait() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("units", 1, None).await;
        world.sql("UPDATE sales SET status = 'paused' WHERE sale_id = 'units'").await;
        world.sale_control().warm(&sale).await.unwrap();
        world.sql("UPDATE sales SET status = 'warmed' WHERE sale_id = 'units'").await;
        world.announce().await;
        assert_eq!(world.rows("sale_announcements", "TRUE").await, 0, "Redis does not sell yet");
        world.sale_control().warm(&sale).await.unwrap();
        world.announce().await;
        assert!(world.announced(&sale, "OPEN", 1).await);
        world.bought(&sale, "ann").await;
        world.announce().await;
        assert!(world.announced(&sale, "SOLD_OUT", 2).await);
        world.sale_control().top_up(&sale, "more", 3).await.unwrap();
        world.announce().await;
        assert!(world.announced(&sale, "SOLD_OUT", 2).await, "too early");
        world.time_has_passed().await;
        world.announce().await;
        assert!(world.announced(&sale, "OPEN", 3).await);
        assert_eq!(world.rows("order_events", "event_key LIKE 'sale.%' AND request_id <> 1").await, 0);
        world.finish().await;
    });
}

#[test]
fn an_announced_sale_is_shown_among_deliveries_without_a_request() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("500 No", "");
        let hook = webhook("shop", &receiver.url(), &[SECRET], &["sale.opened"]);
        let world = World::with_config(&[Api, Reconcile], QUICK, &hook).await;
        world.sale("shown", 5, None).await;
        eventually("it is tried", async || !receiver.calls().is_empty()).await;
        let listed = world.admin_port().get("/webhooks/deliveries?state=WAITING").await.json;
        let one = &listed["deliveries"][0];
        assert_eq!(
            (&one["type"], &one["request_id"], &one["sale_id"]),
            (&json!("sale.opened"), &json!(null), &json!("shown"))
        );
        let table = world.cli(&["webhook", "list", "--state", "WAITING"]).exits(0);
        assert!(table.out.contains("shown"), "{table:?}");
        receiver.answers("204 No Content", "");
        eventually("taken", async || receiver.events_of_sales().len() == 1).await;
        world.finish().await;
    });
}

impl HookReceiver {
    /// The events of sales that it took, each once: version and name without `sale.`.
    fn events_of_sales(&self) -> BTreeSet<(u64, String)> {
        let calls = self.calls();
        let taken = calls.iter().filter(|call| call.taken).map(|call| {
            crate::support::basics::asyncapi::assert_call(&call.json());
            named(&call.json()["data"])
        });
        taken.collect()
    }
}
