//! A page of another origin buys in a real browser when the configuration names its origin, and only then (F6).

use crate::support::processes::browser::Browser;
use crate::support::world::{World, run_waiting};
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn a_page_of_another_origin_buys_in_a_real_browser() {
    run_waiting(async {
        // The pages come from one server, the API is another one: another port is another origin.
        let pages = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = pages.sale("elsewhere", 10, Some(1)).await;
        let api = pages.second_world(&[Api], &[&format!("http.cors_origins={}", pages.api)]).await;
        let closed = pages.second_world(&[Api], &["http.cors_origins=https://shop.example"]).await;
        let browser = Browser::start(1280, 900).await;
        browser.open(&format!("{}/openapi.json", pages.api)).await;
        let buys = |url: &str| {
            format!(
                "return fetch('{url}/v1/sales/{sale}/orders', {{ method: 'POST', body: '{{}}', headers: {{
                   'Authorization': 'Bearer {}', 'Content-Type': 'application/json', 'X-Request-Id': 'from-a-page' }} }})
                 .then(async (a) => ({{ status: a.status, at: a.headers.get('Location'), id: a.headers.get('X-Request-Id'),
                   body: await a.json() }}), (error) => ({{ error: String(error) }}))",
                api.access("alice")
            )
        };
        let refused = browser.eval(&buys(&closed.api)).await;
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("Failed to fetch")), "{refused}");
        assert_eq!(pages.rows("orders", "1 = 1").await, 0);

        let bought = browser.eval(&buys(&api.api)).await;
        assert_eq!((bought["status"].as_u64(), bought["id"].as_str()), (Some(202), Some("from-a-page")), "{bought}");
        let id = bought["body"]["request_id"].as_str().expect("a request id");
        assert_eq!(bought["at"], format!("/v1/sales/{sale}/orders/{id}"), "a page can follow it");
        assert_eq!(pages.status(&sale, "alice", id, 20).await.text("status"), "CONFIRMED");
        drop(browser);
        for mut more in [api, closed] {
            more.stop_roles().await;
        }
        pages.finish().await;
    });
}
