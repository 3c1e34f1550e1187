//! Commands that no other test runs: listing, pausing and resuming sales, and the settings in effect (row F4).

use crate::support::buyers::refusals::refused;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role;
use seckill::store::rabbit::declare;
use serde_json::Value;

#[test]
fn sales_are_listed_paused_and_resumed_at_the_command_line() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &[]).await;
        let (first, second) = (world.sale("first", 5, Some(1)).await, world.sale("second", 7, Some(2)).await);
        let listed = || -> Vec<(String, String, i64)> {
            let sales: Value = serde_json::from_str(&world.cli(&["sale", "list", "--json"]).exits(0).out).unwrap();
            let of = |sale: &Value| {
                let text = |field: &str| sale[field].as_str().unwrap().to_owned();
                (text("sale_id"), text("status"), sale["granted"].as_i64().unwrap())
            };
            let mut sales: Vec<_> = sales.as_array().unwrap().iter().map(of).collect();
            sales.sort();
            sales
        };
        let sale = |id: &str, status: &str, granted: i64| (id.to_owned(), status.to_owned(), granted);
        assert_eq!(listed(), [sale("first", "warmed", 5), sale("second", "warmed", 7)]);

        assert!(world.cli(&["sale", "pause", "first"]).exits(0).out.contains("paused first"));
        refused(&world, &first, 423, "P1-S7").await;
        assert_eq!(world.buy(&second, "alice", 1, None).await.status, 202, "the other sells on");
        assert_eq!(listed(), [sale("first", "paused", 5), sale("second", "warmed", 7)]);
        let table = world.cli(&["sale", "list"]).exits(0).out;
        let row =
            |id: &str| table.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{table}")).to_owned();
        assert!(row("first").contains("paused") && row("second").contains("warmed"), "{table}");
        world.cli(&["sale", "pause", "first"]).exits(0);

        assert!(world.cli(&["sale", "resume", "first"]).exits(0).out.contains("resumed first"));
        eventually("selling again", async || world.buy(&first, "bob", 1, None).await.status == 202).await;
        let unknown = world.cli(&["sale", "pause", "nowhere"]).exits(1);
        assert!(unknown.err.contains("nowhere"), "{unknown:?}");
        world.finish().await;
    });
}

#[test]
fn the_settings_in_effect_are_shown_without_their_secrets() {
    run(async {
        let world = World::with(&[], &[]).await;
        let secret = world.settings.auth.secret.expose().to_owned();
        for form in [&["config", "show"][..], &["config", "show", "--json"]] {
            let shown = world.cli(&[&["--set", "p3_relay.window_max=321"], form].concat()).exits(0).out;
            assert!(shown.contains("321") && shown.contains("window_max"), "{shown}");
            assert!(!shown.contains(&secret), "a secret is shown: {shown}");
        }
        world.finish().await;
    });
}

#[test]
fn an_audit_of_parked_requests_is_consistent_and_counts_what_waits_for_an_operator() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        declare(&world.servers.rabbit).await.expect("queues");
        let sale = world.sale("parked", 5, Some(1)).await;
        for user in ["alice", "bob"] {
            world.bought(&sale, user).await;
        }
        world.park_the_outbox().await;
        let audit = world.cli(&["audit", "--now"]).exits(0).out;
        assert!(
            audit.contains("consistent: ") && audit.contains("wait for an operator: 2 (seckill dlq list)"),
            "{audit}"
        );
        world.cli(&["dlq", "replay", "--all"]).exits(0);
        let audit = world.cli(&["audit", "--now"]).exits(0).out;
        assert!(audit.contains("consistent: ") && !audit.contains("operator"), "{audit}");
        world.finish().await;
    });
}
