//! What sums hide: grants compared by their names, gifts between two buckets, units that another version did not count.

use super::rebuild_and_grants::{QUICK, lose_the_keys, rebuilt, stock};
use crate::support::basics::documented_commands::commands;
use crate::support::basics::time::eventually;
use crate::support::world::{World, run};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::redis::{Between, Given, Taken};

/// The sums agree: what Redis was given too much hides behind what it was not given at all.
#[test]
fn grants_are_compared_by_name_and_not_by_their_sum() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("names", 10, Some(1)).await;
        world.cli(&["sale", "top-up", "names", "3", "--grant", "more"]).exits(0);
        let grants = world.servers.redis.keys.grants(0, &sale);
        world.redis(&["HSET", &grants, "more", "1", "nobody", "2"]).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.equations.iter().all(|equation| equation.left == equation.right), "{audit:#?}");
        let details: Vec<&str> = audit.findings.iter().map(|finding| finding.detail.as_str()).collect();
        assert!(!audit.consistent() && details.len() == 2, "{details:?}");
        assert!(details[0].contains("grant more of 3 units") && details[1].contains("grant nobody"), "{details:?}");
        world.cli(&["audit", "--now"]).exits(2);
        world.cli(&["sale", "rebuild", "names"]).exits(0);
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(13));
        world.finish().await;
    });
}

/// A gift that its target has lost, and its source has forgotten: the pair goes on, the units are reported, and a rebuild
/// finds them.
#[test]
fn a_lost_gift_between_two_buckets_is_reported_and_wedges_nothing() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[QUICK, &["redis.shards=2"]].concat()).await;
        let sale = world.sale("gift", 20, Some(1)).await;
        let redis = &world.servers.redis;
        let Taken::Record(first) = redis.transfers.take(&sale, Between { source: 0, target: 1 }, 1, 4).await.unwrap()
        else {
            panic!("nothing taken")
        };
        // The target's server is replaced by one that never saw it; the source's has forgotten the record.
        redis.transfers.forget(&sale, &first).await.unwrap();
        let Taken::Record(second) = redis.transfers.take(&sale, Between { source: 0, target: 1 }, 1, 2).await.unwrap()
        else {
            panic!("nothing taken")
        };
        assert_eq!((first.number, second.number), (1, 2));
        assert_eq!(redis.transfers.give(&sale, &second).await.unwrap(), Given::Now, "the lower number is no obstacle");
        redis.transfers.forget(&sale, &second).await.unwrap();
        let audit = world.audit(&sale, Window::Now).await;
        let details = audit.findings.iter().map(|finding| finding.detail.clone()).collect::<Vec<_>>().join("; ");
        assert!(details.contains(&format!("{} units left a bucket and reached no other", first.units)), "{details}");
        world.cli(&["sale", "rebuild", "gift"]).exits(0);
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(20));
        world.finish().await;
    });
}

/// During an upgrade an older process accepts with a script that does not count units.
#[test]
fn what_another_version_accepted_without_counting_is_summed_from_the_ledger() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("mixed", 10, Some(2)).await;
        let meta = world.servers.redis.keys.meta(0, &sale);
        assert_eq!(world.buy(&sale, "a", 2, None).await.status, 202);
        assert_eq!(world.redis(&["HGET", &meta, "accepted"]).await.as_str(), Some("1 2"));
        world.redis(&["HSET", &meta, "accepted", "0 0"]).await;
        world.bought(&sale, "b").await;
        assert_eq!(world.redis(&["HGET", &meta, "accepted"]).await.as_str(), Some("0 0"), "the count does not go on");
        let audit = world.settled(&sale).await;
        assert!(audit.consistent() && audit.counted.accepted == 3, "{audit:#?}");
        world.finish().await;
    });
}

/// Redis lost the sale, and the database the outcome of the newest number: nothing knows of that number any more, and the sums
/// agree. Only the order is left to show it.
#[test]
fn an_order_without_an_outcome_is_reported_even_when_its_number_is_forgotten() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("s1", 10, Some(1)).await;
        for user in ["a", "b"] {
            world.bought(&sale, user).await;
        }
        let newest = world.bought(&sale, "c").await;
        assert!(world.settled(&sale).await.consistent());
        lose_the_keys(&world, &sale).await;
        world.sql(&format!("DELETE FROM request_outcome WHERE request_id = {newest}")).await;
        world.start_roles(&[Reconcile]).await;
        eventually("it is sold again", async || stock(&world, &sale).await == Some(7)).await;
        let said = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(said.contains("orders without an outcome = none: 1 against 0"), "{said}");
        // What docs/operations.md says to do; its sale is this one.
        world.sql(&commands("mysql-missing-outcomes").join("\n")).await;
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.cli(&["sale", "rebuild", "s1"]).exits(0);
        rebuilt(&world, &sale, 2).await;
        assert_eq!(world.status_of(&sale, "c", newest).await.0, "CONFIRMED");
        world.finish().await;
    });
}

/// An order without an outcome and an outcome without its order are as many orders as there were: neither hides the other.
#[test]
fn an_order_without_an_outcome_is_reported_beside_an_outcome_without_its_order() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("pair", 10, Some(1)).await;
        let oldest = world.bought(&sale, "a").await;
        world.bought(&sale, "b").await;
        let newest = world.bought(&sale, "c").await;
        assert!(world.settled(&sale).await.consistent());
        // With Redis' own numbers the newest outcome is missed there; without them nothing knows of its number.
        for keys_are_lost in [false, true] {
            if keys_are_lost {
                lose_the_keys(&world, &sale).await;
                world.start_roles(&[Reconcile]).await;
                eventually("it is sold again", async || stock(&world, &sale).await.is_some()).await;
            } else {
                world.sql(&format!("DELETE FROM orders WHERE request_id = {oldest}")).await;
                world.sql(&format!("DELETE FROM request_outcome WHERE request_id = {newest}")).await;
            }
            let said = world.cli(&["audit", "--now"]).exits(2).out;
            assert!(said.contains("orders without an outcome = none: 1 against 0"), "{keys_are_lost}: {said}");
        }
        world.stop().await;
    });
}
