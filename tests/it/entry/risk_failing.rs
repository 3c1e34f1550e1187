//! A risk service in trouble: `risk.on_failure` decides about its own sales' buyers, the breaker ends the calls, and nothing else waits.

use super::risk::asking;
use crate::support::outside::http_server::HttpReply;
use crate::support::outside::risk_shop::{RiskShop, said};
use crate::support::world::{World, eventually, run, time_passes};
use futures::future::join_all;
use std::time::Duration;

/// Every mood in which it gives no verdict.
fn moods() -> Vec<(&'static str, HttpReply)> {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n";
    let hanging = |text: &str| HttpReply::pieces(vec![text.as_bytes().to_vec()]);
    vec![
        ("silent", HttpReply::silence()),
        ("hanging in its head", hanging("HTTP/1.1 200 OK\r\nContent-")),
        ("hanging in its body", hanging(&format!("{head}{{\"allow\""))),
        ("hanging up", HttpReply::hang_up()),
        ("no HTTP", HttpReply::last(vec![b"220 mail.example ESMTP\r\n".to_vec()])),
        ("500", HttpReply::new("500 Internal Server Error", "", br#"{"allow": true}"#)),
        ("204", HttpReply::new("204 No Content", "", b"")),
        ("302", HttpReply::new("302 Found", "Location: /elsewhere\r\n", br#"{"allow": true}"#)),
        ("no JSON", said("yes")),
        ("no verdict", said(r#"{"allow": "true"}"#)),
        ("too large", said(&format!(r#"{{"allow": true, "why": "{}"}}"#, "x".repeat(5_000)))),
        ("endless", HttpReply::endless()),
    ]
}

/// One call in each mood, of a world each that decides by `on_failure`; the statuses.
async fn in_each_mood(on_failure: &str, status: u16, code: &str) {
    let shop = RiskShop::start().await;
    let set = format!("risk.on_failure={on_failure}");
    for chunk in moods().chunks(4) {
        // A breaker each four: none opens here.
        let world = asking(&shop, &[&set, "risk.timeout_ms=1500"]).await;
        let sale = world.challenged("moody", "hook").await;
        for (number, (mood, reply)) in chunk.iter().enumerate() {
            shop.takes_on(Some(reply.clone()));
            let before = shop.calls().len();
            let answer = world.call_for_token(&sale, &format!("buyer-{number}"), &[]).await;
            let shown = if code.is_empty() { String::new() } else { answer.code() };
            assert_eq!((answer.status, shown.as_str()), (status, code), "{mood}: {answer:?}");
            assert!(shop.calls().len() > before, "{mood}: it was asked");
        }
        world.finish().await;
    }
}

#[test]
fn in_every_mood_without_a_verdict_allow_gives_the_token() {
    run(in_each_mood("allow", 201, ""));
}

#[test]
fn in_every_mood_without_a_verdict_refuse_answers_503() {
    run(in_each_mood("refuse", 503, "UNAVAILABLE"));
}

#[test]
fn a_dead_service_is_a_failure_and_its_refusals_are_none() {
    run(async {
        let mut shop = RiskShop::start().await;
        let world = asking(&shop, &["risk.on_failure=refuse"]).await;
        let sale = world.challenged("dead", "hook").await;
        shop.refuses("mallory");
        for n in 0..20 {
            let refused = world.call_for_token(&sale, "mallory", &[]).await;
            assert_eq!((refused.status, refused.code().as_str()), (403, "P1-Q5"), "{n}: {refused:?}");
        }
        shop.close();
        let dead = world.call_for_token(&sale, "alice", &[]).await;
        assert_eq!((dead.status, dead.code().as_str()), (503, "UNAVAILABLE"), "{dead:?}");
        assert!(!dead.header("retry-after").is_empty(), "{dead:?}");
        let remembered = world.call_for_token(&sale, "mallory", &[]).await;
        assert_eq!(remembered.status, 403, "what it said is remembered: {remembered:?}");
        world.finish().await;
    });
}

#[test]
fn while_it_hangs_other_sales_give_tokens_and_every_sale_sells() {
    run(async {
        let shop = RiskShop::start().await;
        // Two places, and a deadline that no purchase of this test would wait for.
        let world = asking(&shop, &["risk.timeout_ms=10000", "risk.in_flight_max=2"]).await;
        let (hooked, plain) = (world.challenged("hooked", "hook").await, world.sale("plain", 100, None).await);
        let (worked, early) =
            (world.challenged("worked", "pow:4").await, world.call_for_token(&hooked, "early", &[]).await);
        assert_eq!(early.status, 201);
        shop.takes_on(Some(HttpReply::silence()));
        let waiting = join_all((0..6).map(|n| {
            let (world, hooked) = (&world, &hooked);
            async move { world.call_for_token(hooked, &format!("waits-{n}"), &[]).await }
        }));
        let others = async {
            eventually("both places are taken", async || shop.calls().len() == 3).await;
            time_passes(300).await;
            assert_eq!(shop.calls().len(), 3, "no more than two at once");
            for n in 0..30 {
                let buyer = format!("quick-{n}");
                let issued = world.call_for_token(&plain, &buyer, &[]).await;
                assert_eq!(issued.status, 201, "{issued:?}");
                assert_eq!(world.buy(&plain, &buyer, 1, Some(&issued.text("token"))).await.status, 202);
                assert_eq!(world.call_for_token(&worked, &buyer, &[]).await.code(), "P1-Q4");
            }
            let bought = world.buy(&hooked, "early", 1, Some(&early.text("token"))).await;
            assert_eq!(bought.status, 202, "a purchase of its own sale, too: {bought:?}");
        };
        // What waits for the service has no answer yet when the others have all of theirs.
        tokio::select! {
            biased;
            answers = waiting => panic!("answered before the others: {answers:?}"),
            () = others => {}
        }
        world.finish().await;
    });
}

/// Asks as buyers of their own names until `until` holds of an answer.
async fn asked_until(world: &World, sale: &seckill::domain::ids::SaleId, what: &str, until: impl Fn(u16) -> bool) {
    let mut n = 0;
    eventually(what, async || {
        n += 1;
        until(world.call_for_token(sale, &format!("{}-{n}", what.replace(' ', "-")), &[]).await.status)
    })
    .await;
}

#[test]
fn the_breaker_ends_the_calls_and_one_of_them_closes_it_again() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &["risk.on_failure=refuse", "risk.timeout_ms=100"]).await;
        let sale = world.challenged("broken", "hook").await;
        shop.takes_on(Some(said("nothing")));
        let before = join_all((0..40).map(|n| {
            let (world, sale) = (&world, &sale);
            async move { world.call_for_token(sale, &format!("b-{n}"), &[]).await.status }
        }));
        assert!(before.await.iter().all(|status| *status == 503));
        let calls = shop.calls().len();
        assert!(calls >= 5, "{calls}");
        for n in 0..40 {
            assert_eq!(world.call_for_token(&sale, &format!("c-{n}"), &[]).await.status, 503);
        }
        // Of forty calls one or two came after a pause of five seconds, if this machine is slow.
        assert!(shop.calls().len() < calls + 20, "{} of {calls}", shop.calls().len());
        shop.takes_on(None);
        asked_until(&world, &sale, "it closes", |status| status == 201).await;
        for n in 0..5 {
            assert_eq!(world.call_for_token(&sale, &format!("d-{n}"), &[]).await.status, 201);
        }
        world.finish().await;
    });
}

#[test]
fn more_buyers_than_places_are_turned_away_for_a_moment_and_never_let_through() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &["risk.timeout_ms=2000", "risk.in_flight_max=1", "risk.on_failure=allow"]).await;
        let sale = world.challenged("crowded", "hook").await;
        shop.takes_on(Some(HttpReply::silence()));
        let first = world.call_for_token(&sale, "first", &[]);
        let others = async {
            eventually("it is asked", async || shop.calls().len() == 1).await;
            join_all((0..5).map(|n| {
                let (world, sale) = (&world, &sale);
                async move { world.call_for_token(sale, &format!("more-{n}"), &[]).await }
            }))
            .await
        };
        let (first, others) = tokio::join!(first, others);
        assert_eq!(first.status, 201, "its time was over, and that means yes here: {first:?}");
        for answer in &others {
            // Its place came free before this one's wait was over, or it did not.
            assert!(answer.status == 201 || (answer.status, answer.code().as_str()) == (503, "P1-S8"), "{answer:?}");
        }
        assert!(others.iter().any(|answer| answer.code() == "P1-S8"), "{others:?}");
        tokio::time::timeout(Duration::from_secs(60), world.finish()).await.expect("nothing is left hanging");
    });
}
