//! `GET /v1/sales`: which sales it has, and what a crowd that reloads it costs.

use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::roles::Role;
use serde_json::Value;

async fn listed(world: &World) -> Vec<Value> {
    let answer = Answer::of(world.request(Method::GET, "/v1/sales", "a")).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "public, max-age=1"), "{answer:?}");
    answer.json["sales"].as_array().unwrap().clone()
}

fn ids(sales: &[Value]) -> Vec<&str> {
    let mut ids: Vec<&str> = sales.iter().map(|sale| sale["sale_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_sale_is_listed_until_a_day_after_its_end() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let ended = |hours: i64| {
            move |sale: &mut seckill::domain::sale::Sale| {
                sale.ends_at_ms = seckill::runtime::now_ms() - hours * 3_600_000;
                sale.starts_at_ms = sale.ends_at_ms - 1_000;
            }
        };
        world.sale("live", 5, None).await;
        world.sale_with("yesterday", 5, ended(23)).await;
        world.sale_with("long-ago", 5, ended(25)).await;
        world.draft("draft", 5, |sale| sale.starts_at_ms += 3_000_000).await;
        let closed = world.sale("closed", 5, None).await;
        world.sale_control().close(&closed).await.unwrap();
        eventually("the list", async || ids(&listed(&world).await) == ["draft", "live", "yesterday"]).await;
        let sales = listed(&world).await;
        let state = |id: &str| {
            let sale = sales.iter().find(|sale| sale["sale_id"] == id).unwrap();
            (sale["state"].as_str().unwrap(), sale["remaining"].as_i64())
        };
        assert_eq!(state("live"), ("READY", Some(5)));
        assert_eq!(state("yesterday").0, "ENDED");
        assert_eq!(state("draft").0, "NOT_STARTED");
        // What is not listed any more can be asked for.
        let page = Answer::of(world.request(Method::GET, "/v1/sales/long-ago", "a")).await;
        assert_eq!((page.status, page.text("code").as_str()), (200, "P1-S6"), "{page:?}");
        world.finish().await;
    });
}

#[test]
fn the_list_follows_pauses_and_stock_within_seconds() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &[]).await;
        // More than are refreshed for one list.
        for n in 0..60 {
            world.sale(&format!("s{n:02}"), 5, None).await;
        }
        let first = seckill::domain::ids::SaleId::parse("s00").unwrap();
        // A list may be a second old.
        eventually("the list has them all", async || listed(&world).await.len() == 60).await;
        world.bought(&first, "alice").await;
        let shown = async || {
            let sales = listed(&world).await;
            let sale = sales.iter().find(|sale| sale["sale_id"] == "s00").unwrap().clone();
            (sale["state"].as_str().unwrap().to_owned(), sale["remaining"].as_i64())
        };
        eventually("its stock", async || shown().await == ("READY".to_owned(), Some(4))).await;
        world.sale_control().pause(&first).await.unwrap();
        eventually("its pause", async || shown().await.0 == "PAUSED").await;
        world.finish().await;
    });
}
