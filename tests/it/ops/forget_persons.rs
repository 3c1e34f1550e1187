//! `seckill buyer forget` of an account and of a person, in a sale that limits by person.

use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer};
use crate::support::world::{World, eventually, run};
use seckill::domain::policy::LimitBy;
use seckill::domain::sale::Sale;
use seckill::p5_reconcile::Window;
use seckill::roles::Role;
use serde_json::json;
use std::collections::BTreeSet;

/// Where the life of an account and of its person is found, in a sale that limits by person.
const PLACES_OF_PERSONS: [(&str, &[&str]); 2] = [
    ("account-7", &["orders.user_id", "failed_request.user_id", "failed_request.payload", "redis"]),
    ("person-7", &["orders.person", "purchases.user_id", "failed_request.person", "failed_request.payload", "redis"]),
];

#[test]
fn an_account_and_a_person_are_forgotten_and_the_limit_by_person_stays() {
    run(async {
        let quick = ["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100", "redis.shards=4"];
        let world = World::with(&Role::ALL, &[&FACTS_AND_PASSES[..], &quick].concat()).await;
        let by_person = |sale: &mut Sale| sale.limit_by = LimitBy::Person;
        let sale = world.sale_with("persons", 10, by_person).await;
        let buy = async |account: &str, person: &str| {
            ShowingBuyer::new(&world, account).with_claims(json!({ "pid": person })).buy(&sale).await
        };
        assert_eq!(buy("account-7", "person-7").await.status, 202);
        assert_eq!(buy("account-8", "person-8").await.status, 202);
        assert!(world.settled(&sale).await.consistent());
        world
            .sql(
                "INSERT INTO failed_request \
                 (request_id, sale_id, user_id, person, quantity, source, reason, detail, payload, status) VALUES \
                 (7, 'persons', 'account-7', 'person-7', 1, 'audit', 'GIVEN_UP', 'd', \
                 '{\"v\":1,\"user\":\"account-7\\\\tperson-7\"}', 'resolved')",
            )
            .await;
        world.is_quiet().await;
        for (name, expected) in PLACES_OF_PERSONS {
            let found = world.occurrences(name).await;
            let places: BTreeSet<&str> = found.iter().map(|place| place.split(' ').next().unwrap()).collect();
            assert!(expected.iter().all(|place| places.contains(place)), "{name}: {found:?}");
            world.forget(name).exits(0);
            assert_eq!(world.occurrences(name).await, Vec::<String>::new());
            assert!(world.audit(&sale, Window::Now).await.consistent());
        }
        assert_eq!(buy("account-9", "person-8").await.code(), "P2-R1", "the other person is as before");
        world.cli(&["sale", "rebuild", "persons"]).exits(0);
        eventually("rebuilt", async || world.audit(&sale, Window::Now).await.consistent()).await;
        world.finish().await;
    });
}
