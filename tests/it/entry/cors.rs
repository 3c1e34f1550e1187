//! Pages of other origins call the buyers' API when the configuration names them, and only then (F6).

use crate::support::basics::answer::Answer;
use crate::support::world::{World, run};
use reqwest::Method;
use reqwest::header::HeaderMap;
use seckill::config::{Layers, Settings};
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::json;
use std::collections::BTreeSet;

const SHOP: &str = "https://shop.example";

/// A preflight as a browser sends it.
async fn preflight(world: &World, path: &str, origin: &str, (method, headers): (&str, &str)) -> Answer {
    let request = world.http.request(Method::OPTIONS, format!("{}{path}", world.api)).header("Origin", origin);
    let request = request.header("Access-Control-Request-Method", method);
    Answer::of(request.header("Access-Control-Request-Headers", headers)).await
}

fn cors_headers(headers: &HeaderMap) -> Vec<&str> {
    headers.keys().map(|name| name.as_str()).filter(|name| name.starts_with("access-control-")).collect()
}

fn listed(text: &str) -> BTreeSet<String> {
    text.split(',').map(|item| item.trim().to_lowercase()).collect()
}

#[test]
fn named_origins_get_exactly_what_the_api_uses_and_others_get_nothing() {
    run(async {
        let set = format!("http.cors_origins={SHOP},http://127.0.0.1:3000");
        let world = World::with(&[Api], &[&set]).await;
        let sale = world.sale("cors", 10, Some(1)).await;
        let orders = format!("/v1/sales/{sale}/orders");
        let used = "authorization,content-type,idempotency-key,seckill-pass,seckill-place,seckill-solution,x-request-id,accept-language";

        let allowed = preflight(&world, &orders, SHOP, ("POST", used)).await;
        assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, SHOP), "{allowed:?}");
        assert_eq!(listed(allowed.header("access-control-allow-methods")), listed("GET, POST, DELETE"));
        assert_eq!(listed(allowed.header("access-control-allow-headers")), listed(used));
        assert_eq!(allowed.header("access-control-allow-credentials"), "", "no cookies");
        assert_eq!(allowed.header("access-control-max-age"), "3600");
        assert!(!allowed.header("x-request-id").is_empty());
        for (origin, asked) in [
            ("https://evil.example", ("POST", used)),
            ("https://shop.example.evil.example", ("POST", used)),
            ("null", ("POST", used)),
            (SHOP, ("PATCH", used)),
            (SHOP, ("POST", "authorization,cookie")),
        ] {
            let refused = preflight(&world, &orders, origin, asked).await;
            assert!(refused.status == 400, "{origin} {asked:?}: {refused:?}");
        }

        // A page may read what it acts on, of a refusal as of a success.
        let buy = |origin: &str| {
            world.request(Method::POST, &orders, "alice").header("Origin", origin.to_owned()).json(&json!({}))
        };
        let accepted = Answer::of(buy("http://127.0.0.1:3000")).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        assert_eq!(accepted.header("access-control-allow-origin"), "http://127.0.0.1:3000");
        let wanted = listed("location, retry-after, x-request-id, www-authenticate");
        assert_eq!(listed(accepted.header("access-control-expose-headers")), wanted);
        assert!(listed(accepted.header("vary")).contains("origin"), "caches must not mix origins up");
        let refused = Answer::of(buy(SHOP)).await;
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (409, SHOP));
        let garbage = world.http.get(format!("{}/v1/sales/%ff", world.api)).header("Origin", SHOP);
        let garbage = Answer::of(garbage).await;
        assert_eq!((garbage.status, garbage.header("access-control-allow-origin")), (400, SHOP), "{garbage:?}");
        let foreign = Answer::of(buy("https://evil.example")).await;
        assert_eq!(foreign.header("access-control-allow-origin"), "");
        let rest = world.extra_roles(&[Relay, Consumer], |_| {});
        let audit = world.settled(&sale).await;
        assert!(audit.consistent(), "{audit:#?}");
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn without_origins_there_is_no_trace_of_cors() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("plain", 10, Some(1)).await;
        let orders = format!("/v1/sales/{sale}/orders");
        let asked = preflight(&world, &orders, SHOP, ("POST", "authorization")).await;
        assert_eq!((asked.status, asked.code().as_str()), (405, "METHOD_NOT_ALLOWED"), "{asked:?}");
        let path = format!("/v1/sales/{sale}");
        let seen = Answer::of(world.request(Method::GET, &path, "alice").header("Origin", SHOP)).await;
        assert_eq!(seen.status, 200);
        // A problem is in the reader's language; nothing varies by where a page comes from.
        for (answer, varies_by) in [(asked, "Accept-Language"), (seen, "")] {
            assert_eq!(cors_headers(&answer.headers), Vec::<&str>::new());
            assert_eq!(answer.header("vary"), varies_by);
        }
        world.finish().await;
    });
}

#[test]
fn an_origin_that_no_browser_sends_stops_the_start() {
    for bad in ["*", "null", "shop.example", "https://shop.example/", "https://shop.example/a", "ftp://shop.example"] {
        let layers = Layers { files: vec![], set: vec![format!("http.cors_origins={SHOP},{bad}")] };
        let refused = Settings::load(&layers).expect_err(bad).to_string();
        // A headline, and one complaint: the other origin is fine.
        let complaints: Vec<&str> = refused.lines().skip(1).collect();
        assert!(complaints.len() == 1 && complaints[0].contains("http.cors_origins") && complaints[0].contains(bad));
    }
}
