//! Events do not depend on who changes the order: the leader's webhooks are in the database (L5).

use crate::support::basics::time::time_passes;
use crate::support::buyers::orders::LONG;
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, SOON, webhook};
use crate::support::processes::programs::call;
use crate::support::world::{World, eventually, run};
use seckill::config::ServerUrl;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// All tables but `webhook_subscriptions`.
const TABLES_OF_BEFORE: [&str; 18] = [
    "sales",
    "orders",
    "purchases",
    "request_outcome",
    "outcome_event",
    "failed_request",
    "stock_flow",
    "stock_grants",
    "audit_runs",
    "audit_findings",
    "closed_findings",
    "payments",
    "webhook_deliveries",
    "operator_acts",
    "sale_epochs",
    "archived_sales",
    "order_events",
    "__diesel_schema_migrations",
];

/// The settings of a world without its configuration file, as an operator's machine has them.
fn without_the_file(world: &World) -> Vec<String> {
    let sets = world.sets();
    let file = sets.iter().position(|word| word == "--config").expect("the world has a file");
    sets[..file].iter().chain(&sets[file + 2..]).cloned().collect()
}

#[test]
fn a_command_without_the_webhooks_writes_their_events_all_the_same() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay, Consumer, Reconcile], &[], &receiver).await;
        eventually("the leader has written them", async || {
            world.rows("webhook_subscriptions", "webhook = 'shop' AND events LIKE '%order.cancelled%'").await == 1
        })
        .await;
        let sale = world.paying_sale("elsewhere", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let (sets, rid) = (without_the_file(&world), alice.to_string());
        let command = ["order", "cancel", &rid, "--reason", "never paid"];
        let all: Vec<&str> = sets.iter().map(String::as_str).chain(command).collect();
        let (code, out, err) = call(&all);
        assert_eq!(code, Some(0), "{out} {err}");
        let written = format!("request_id = {alice} AND event_key = 'order.cancelled'");
        assert_eq!(world.rows("webhook_deliveries", &written).await, 1, "in the transaction of the change");
        receiver.receives("order.cancelled", alice).await;

        let doctor: Vec<&str> = sets.iter().map(String::as_str).chain(["doctor", "--json"]).collect();
        let (_, out, err) = call(&doctor);
        let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
        let line = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "webhooks of the leader");
        let line = line.expect("compared");
        assert_eq!((&line["verdict"], &line["expected"]), (&"warning".into(), &"none".into()), "{line}");
        assert!(line["value"].as_str().unwrap().contains("shop ("), "{line}");
        world.finish().await;
    });
}

#[test]
fn a_webhook_that_the_leader_has_no_more_gets_no_events_of_processes_without_it() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay], &[], &receiver).await;
        world.sql("INSERT INTO webhook_subscriptions (webhook, events) VALUES ('former', 'order.confirmed')").await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        eventually("its events are gone", async || {
            world.rows("webhook_subscriptions", "webhook = 'former' AND events = ''").await == 1
        })
        .await;
        let consumer = world.extra_roles(&[Consumer], |settings| settings.webhooks.clear());
        let sale = world.paying_sale("left", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        receiver.receives("order.confirmed", alice).await;
        assert_eq!(world.rows("webhook_deliveries", "webhook = 'former'").await, 0);
        consumer.stop().await;
        leader.stop().await;
        world.finish().await;
    });
}

#[test]
fn orders_and_their_events_go_on_with_a_database_of_before_the_subscriptions() {
    run(async {
        let (receiver, gone) = (HookReceiver::start().await, HookReceiver::start().await);
        gone.answers("410 Gone", "");
        let hooks = [("shop", &receiver), ("gone", &gone)];
        let text: String = hooks.map(|(name, at)| webhook(name, &at.url(), &[SECRET], &ALL_EVENTS)).concat();
        let world = World::with_config(&[Api, Relay], &[SOON], &text).await;
        world.sql("RENAME TABLE webhook_subscriptions TO subscriptions_elsewhere").await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let leader = world.process("reconcile", "", &[SOON]);
        let (disabled, faults) =
            (r#"seckill_p6_webhook_disabled{webhook="gone"}"#, r#"seckill_faults_total{phase="p6_webhooks"}"#);
        leader.until_metric(disabled, |value| value == 0.0).await;
        let before = leader.metric(faults).await.expect("from the start");
        let sale = world.paying_sale("before", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        receiver.receives("order.confirmed", alice).await;
        leader.until_metric(disabled, |value| value == 1.0).await;
        assert_eq!(world.cancel_mine("alice", alice).await.text("state"), "CANCELLED");
        receiver.receives("order.cancelled", alice).await;
        // Several times that at which a leader asks whether a replay has opened the closed one.
        time_passes(2_000).await;
        assert_eq!(leader.metric(faults).await, Some(before), "it waits for no server");
        assert_eq!(gone.calls().len(), 1, "what is closed stays closed");
        // The migration comes while the same leader leads.
        world.sql("RENAME TABLE subscriptions_elsewhere TO webhook_subscriptions").await;
        let written = "events <> '' AND (disabled_at IS NULL) = (webhook = 'shop')";
        eventually("the subscriptions", async || world.rows("webhook_subscriptions", written).await == 2).await;
        let bob = world.ordered(&sale, "bob").await;
        receiver.receives("order.confirmed", bob).await;
        assert_eq!(gone.calls().len(), 1, "closed before, and closed now");
        leader.kill();
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn orders_and_their_events_go_on_with_an_account_of_before_the_subscriptions() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay], &[], &receiver).await;
        let (name, url) = ("subscriber", world.settings.mysql.url.expose());
        let user = format!("'{name}'@'127.0.0.1'");
        world.sql(&format!("DROP USER IF EXISTS {user}")).await;
        world.sql(&format!("CREATE USER {user}")).await;
        for table in TABLES_OF_BEFORE {
            let right = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {}.{table} TO {user}", world.database());
            world.sql(&right).await;
        }
        let older = url.replace("root@", &format!("{name}@"));
        let rest = world.extra_roles(&[Consumer, Reconcile], |settings| settings.mysql.url = ServerUrl::new(older));
        let sale = world.paying_sale("rights", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        receiver.receives("order.confirmed", alice).await;
        world.overdue(alice).await;
        receiver.receives("order.expired", alice).await;
        assert_eq!(world.rows("webhook_subscriptions", "TRUE").await, 0, "it may not write them");
        rest.stop().await;
        world.sql(&format!("DROP USER {user}")).await;
        world.finish().await;
    });
}
