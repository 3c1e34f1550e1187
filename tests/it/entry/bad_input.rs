//! Input that no client should send. Every answer is a problem document that names the field, and nothing is touched.

use crate::support::buyers::raw_http::{purchase_head, send};
use crate::support::world::{Answer, World, run};
use reqwest::Method;
use seckill::roles::Role;
use seckill::runtime::now_ms;

/// Bodies of a purchase: (body, status, code, what the detail names).
const BODIES: [(&str, u16, &str, &str); 29] = [
    ("", 400, "BAD_REQUEST", "body"),
    ("{", 400, "BAD_REQUEST", "body"),
    ("x", 400, "BAD_REQUEST", "body"),
    ("null", 400, "BAD_REQUEST", "body"),
    ("1", 400, "BAD_REQUEST", "body"),
    ("\"quantity\"", 400, "BAD_REQUEST", "body"),
    ("[]", 400, "BAD_REQUEST", "body"),
    ("[1]", 400, "BAD_REQUEST", "body"),
    ("[{\"quantity\":1}]", 400, "BAD_REQUEST", "body"),
    ("{\"quantity\":1}{}", 400, "BAD_REQUEST", "body"),
    ("{\"quantity\":1,}", 400, "BAD_REQUEST", "body"),
    ("{\"quantity\":1,\"price\":0}", 400, "BAD_REQUEST", "price"),
    ("{\"Quantity\":1}", 400, "BAD_REQUEST", "Quantity"),
    ("{\"quantity\":1,\"quantity\":1}", 400, "BAD_REQUEST", "quantity"),
    ("{\"quantity\":1,\"quantit\\u0079\":2}", 400, "BAD_REQUEST", "quantity"),
    ("{\"quantity\":01}", 400, "BAD_REQUEST", "body"),
    ("{\"quantity\":NaN}", 400, "BAD_REQUEST", "body"),
    ("{\"quantity\":0}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":-1}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":9223372036854775808}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":4294967297}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":1.5}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":1.0}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":1e1}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":\"1\"}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":null}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":[1]}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":true}", 422, "UNPROCESSABLE", "quantity"),
    ("{\"quantity\":1001}", 422, "UNPROCESSABLE", "1000"),
];

/// Paths with a good access token: (method, path, status, code, what the detail names).
const PATHS: [(&str, &str, u16, &str, &str); 31] = [
    ("POST", "/v1/sales/a%20b/orders", 400, "BAD_REQUEST", "sale_id"),
    ("POST", "/v1/sales/%7B0%7D/orders", 400, "BAD_REQUEST", "sale_id"),
    ("POST", "/v1/sales/a.b/tokens", 400, "BAD_REQUEST", "sale_id"),
    ("POST", "/v1/sales/%E5%8D%96/tokens", 400, "BAD_REQUEST", "sale_id"),
    ("POST", "/v1/sales/%FF/orders", 400, "BAD_REQUEST", ""),
    ("GET", "/v1/sales/a:b", 400, "BAD_REQUEST", "sale_id"),
    ("GET", "/v1/sales/bad/orders/0", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/01", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/+1", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/-1", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/abc", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/1%20", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/9223372036854775808", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/12345678901234567890", 400, "BAD_REQUEST", "request_id"),
    ("GET", "/v1/sales/bad/orders/1?wait=x", 400, "BAD_REQUEST", "wait"),
    ("GET", "/v1/sales/bad/orders/1?wait=-1", 400, "BAD_REQUEST", "wait"),
    ("GET", "/v1/sales/bad/orders/1?wait=2147483648", 400, "BAD_REQUEST", "wait"),
    ("GET", "/v1/sales/bad/orders/1?wait=1.5", 400, "BAD_REQUEST", "wait"),
    ("GET", "/v1/sales/bad/orders/1?wait=", 400, "BAD_REQUEST", "wait"),
    ("GET", "/v1/sales/bad/orders/1?wait=1&wait=1", 400, "BAD_REQUEST", "wait"),
    ("GET", "/v1/sales/bad/orders/1?sleep=1", 400, "BAD_REQUEST", "sleep"),
    ("GET", "/v1/orders?cursor=0", 400, "BAD_REQUEST", "cursor"),
    ("GET", "/v1/orders?cursor=1&cursor=1", 400, "BAD_REQUEST", "cursor"),
    ("GET", "/v1/orders?page=1", 400, "BAD_REQUEST", "page"),
    ("GET", "/v1/sales/bad/orders/1", 404, "ORDER_NOT_FOUND", ""),
    ("GET", "/v1/sales/bad/orders", 405, "METHOD_NOT_ALLOWED", "GET"),
    ("GET", "/v1/sales/bad/tokens", 405, "METHOD_NOT_ALLOWED", "GET"),
    ("DELETE", "/v1/sales/bad/orders/1", 405, "METHOD_NOT_ALLOWED", "DELETE"),
    ("POST", "/v1/sales/bad", 405, "METHOD_NOT_ALLOWED", "POST"),
    ("GET", "/v1/nowhere", 404, "NO_SUCH_ROUTE", "/v1/nowhere"),
    ("GET", "/admin/v1/sales", 404, "NO_SUCH_ROUTE", "/admin/v1/sales"),
];

fn is_problem(answer: &Answer, status: u16, code: &str, names: &str) {
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json", "{answer:?}");
    assert_eq!(answer.json["status"], status, "{answer:?}");
    assert!(!answer.text("title").is_empty() && answer.text("type").starts_with("urn:seckill:problem:"));
    assert!(answer.text("detail").contains(names), "the detail names {names}: {answer:?}");
}

#[test]
fn bad_bodies_paths_and_headers_are_refused_with_the_reason_and_change_nothing() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("bad", 7, None).await;
        let orders = "/v1/sales/bad/orders";
        for (body, status, code, names) in BODIES {
            let request = world.request(Method::POST, orders, "a").header("Content-Type", "application/json");
            is_problem(&Answer::of(request.body(body)).await, status, code, names);
        }
        for (method, path, status, code, names) in PATHS {
            let request = world.request(method.parse().unwrap(), path, "a").header("Content-Type", "application/json");
            is_problem(&Answer::of(request.body("{}")).await, status, code, names);
        }
        for kind in ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "json", "text/json"] {
            let mut request = world.request(Method::POST, orders, "a").body("{\"quantity\":1}");
            if !kind.is_empty() {
                request = request.header("Content-Type", kind);
            }
            is_problem(&Answer::of(request).await, 415, "WRONG_MEDIA_TYPE", "Content-Type");
        }
        let post = || world.request(Method::POST, orders, "a").json(&serde_json::json!({}));
        let twice = post().header("Authorization", format!("Bearer {}", world.access("a")));
        is_problem(&Answer::of(twice).await, 400, "BAD_REQUEST", "authorization");
        let twice = post().header("Idempotency-Key", "x").header("Idempotency-Key", "x");
        is_problem(&Answer::of(twice).await, 400, "BAD_REQUEST", "idempotency-key");
        let twice = post().header("Content-Type", "text/plain").header("Content-Type", "application/json");
        let answer = Answer::of(twice).await;
        assert!(matches!(answer.status, 400 | 415), "{answer:?}");
        is_problem(&Answer::of(post().header("Idempotency-Key", "ü")).await, 400, "BAD_REQUEST", "idempotency-key");
        world.assert_untouched(&sale, 7).await;
        let plain = world.request(Method::POST, orders, "a").header("Content-Type", "application/json; charset=utf-8");
        assert_eq!(Answer::of(plain.body(" {\"quantity\" : 1000 } ")).await.code(), "P2-R7", "and a good one is read");
        world.stop().await;
    });
}

#[test]
fn a_body_that_is_too_large_is_refused_however_it_is_sent() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("large", 7, None).await;
        let max = world.settings.http.body_bytes_max;
        let padded = |length: usize| format!("{{\"quantity\":1}}{}", " ".repeat(length - 14));
        let orders = format!("/v1/sales/{sale}/orders");
        let declared = world.request(Method::POST, &orders, "a").header("Content-Type", "application/json");
        is_problem(&Answer::of(declared.body(padded(max + 1))).await, 413, "BODY_TOO_LARGE", &max.to_string());
        // Only announced: the answer does not wait for the body.
        let head = purchase_head(&world, sale.as_str(), "a", "Content-Length: 1000000000\r\n\r\n");
        let answer = send(&world, head.as_bytes()).await;
        assert_eq!((answer.status, answer.text("code").as_str()), (413, "BODY_TOO_LARGE"), "{answer:?}");
        let chunked = |length: usize| {
            let head = purchase_head(&world, sale.as_str(), "a", "Transfer-Encoding: chunked\r\n\r\n");
            let chunks = padded(length)
                .as_bytes()
                .chunks(100)
                .fold(head, |all, chunk| format!("{all}{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)));
            format!("{chunks}0\r\n\r\n")
        };
        let answer = send(&world, chunked(max + 1).as_bytes()).await;
        assert_eq!((answer.status, answer.text("code").as_str()), (413, "BODY_TOO_LARGE"), "{answer:?}");
        assert!(answer.head.contains("content-type: application/problem+json"), "{answer:?}");
        world.assert_untouched(&sale, 7).await;
        let answer = send(&world, chunked(max).as_bytes()).await;
        assert_eq!(answer.status, 202, "exactly the limit is fine: {answer:?}");
        world.stop().await;
    });
}

#[test]
fn titles_come_in_the_language_of_the_buyer() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        for (language, title, tag) in [
            ("zh-CN,zh;q=0.9,en;q=0.8", "活动不存在", "zh"),
            ("fr, zh", "活动不存在", "zh"),
            ("en-US, zh", "There is no such sale", "en"),
            ("fr", "There is no such sale", "en"),
        ] {
            let request = world.request(Method::POST, "/v1/sales/none/tokens", "a").header("Accept-Language", language);
            let answer = Answer::of(request).await;
            is_problem(&answer, 404, "P1-S3", "none");
            assert_eq!((answer.text("title").as_str(), answer.header("content-language")), (title, tag));
        }
        world.stop().await;
    });
}

#[test]
fn what_a_buyer_gets_beside_the_title_is_in_the_language_of_the_title() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let hour = |sale: &mut seckill::domain::sale::Sale| sale.starts_at_ms = now_ms() + 3_599_500;
        let (early, limited) = (world.sale_with("early", 5, hour).await, world.sale("limited", 5, Some(2)).await);
        let stopped = world.sale("stopped", 5, None).await;
        world.sale_control().pause(&stopped).await.unwrap();
        for (sale, quantity, code, english, chinese) in [
            (&early, 1, "P1-S5", "starts in 3", "秒后开始"),
            (&limited, 3, "P2-R5", "the limit is 2 a buyer, you have 0", "每人限购 2 件，您已有 0 件"),
            (&stopped, 1, "P1-S7", "stopped by an operator", "已由运营暂停"),
        ] {
            for (language, detail) in [("en", english), ("zh-CN", chinese)] {
                let request = world.request(Method::POST, &format!("/v1/sales/{sale}/orders"), "a");
                let request =
                    request.header("Accept-Language", language).json(&serde_json::json!({ "quantity": quantity }));
                let answer = Answer::of(request).await;
                assert_eq!(answer.code(), code, "{answer:?}");
                assert!(answer.text("detail").contains(detail), "{answer:?}");
            }
        }
        world.stop().await;
    });
}
