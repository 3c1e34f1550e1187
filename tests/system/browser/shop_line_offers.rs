//! W3, W4 in the demo shop: an offer that is paid or lapses, and the waiting list of a sale that is sold out.

use super::shop_lines::{dressed_raffle, line_world, visitor};
use crate::support::buyers::orders::LONG;
use crate::support::processes::browser::Browser;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, eventually, run_waiting};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::runtime::now_ms;
use serde_json::json;

/// A raffle of one unit in its window, warmed, with the visitor's entry alone in it, and drawn.
async fn with_an_offer(world: &World, id: &str) -> (SaleId, Browser) {
    let sale = dressed_raffle(world, id, |sale, _| {
        (sale.starts_at_ms, sale.payment, sale.granted, sale.stock) = (now_ms() - 1_000, Some(LONG), 1, 1);
    })
    .await;
    world.sale_control().warm(&sale).await.unwrap();
    let browser = Browser::start(360, 780).await;
    browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
    browser.click("#enter-line").await;
    browser.sees("#line-status", "You are in the draw").await;
    world.line_is_over(&sale).await;
    browser.sees("#line-status", "1 unit is set aside for you. Pay until").await;
    (sale, browser)
}

/// The request of the visitor's offer.
async fn offer(world: &World, sale: &SaleId, browser: &Browser) -> RequestId {
    let mine = world.entry_of(sale, &visitor(browser).await).await;
    assert_eq!(mine.text("state"), "OFFERED", "{mine:?}");
    RequestId::parse(&mine.text("request_id")).unwrap()
}

#[test]
fn an_offer_is_paid_on_the_page_as_any_order_and_is_taken() {
    run_waiting(async {
        let world = line_world().await;
        let (sale, browser) = with_an_offer(&world, "offered").await;
        let request = offer(&world, &sale, &browser).await;
        browser.sees("#line-clock", "00:09:").await;
        browser.sees("#order-unpaid", "held for you").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.eval("document.getElementById('line').scrollIntoView()").await;
        browser.picture("shop-line-offer").await;
        // An offer survives that the page is loaded again.
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.click("#to-payment").await;
        assert_eq!(browser.eval("return document.activeElement.id").await, "pay");
        browser.enter().await;
        browser.sees("#order-paid", "it is yours").await;
        browser.sees("#line-status", "It is yours").await;
        assert!(world.order_in("PAID", request).await);
        eventually("taken", async || world.rows("line_entries", "state = 'TAKEN'").await == 1).await;
        browser.click("#language").await;
        browser.sees("#line-status", "商品归您所有").await;
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn an_offer_that_is_not_paid_lapses_and_the_page_says_so() {
    run_waiting(async {
        let world = line_world().await;
        let (sale, browser) = with_an_offer(&world, "lapses").await;
        let request = offer(&world, &sale, &browser).await;
        world.overdue(request).await;
        browser.sees("#line-status", "has lapsed").await;
        browser.sees("#order-expired", "Not paid in time").await;
        browser.picture("shop-line-lapsed").await;
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

/// A sale of one unit with a waiting list, which another buyer has.
async fn sold_out_list(world: &World, admin: &AdminPort, id: &str) -> (SaleId, RequestId) {
    let at = |ms: i64| chrono::DateTime::from_timestamp_millis(now_ms() + ms).unwrap().to_rfc3339();
    let body = json!({ "id": id, "product": "x1", "title": "Aurora X1", "stock": 1, "limit": 1, "price_cents": 199_900,
        "pay_within_s": 600, "pay_grace_s": 0, "starts_at": at(-1_000), "ends_at": at(3_600_000), "line": "waitlist", "warm": true });
    let made = admin.post("/sales", body).await;
    assert_eq!(made.status, 200, "{made:?}");
    let sale: SaleId = id.parse().unwrap();
    let first = world.ordered(&sale, "the first").await;
    (sale, first)
}

#[test]
fn a_visitor_joins_the_waiting_list_of_a_sold_out_sale_and_gets_the_unit_that_comes_back() {
    run_waiting(async {
        let mut world = World::with(&[], &["p5_reconcile.interval_ms=100"]).await;
        world.demo_shop = true;
        world.start_roles(&seckill::roles::Role::ALL).await;
        let admin = world.admin_port();
        let (sale, first) = sold_out_list(&world, &admin, "list").await;
        let browser = Browser::start(360, 780).await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.sees("#line h2", "Waiting list").await;
        browser.sees("#line-status", "Sold out").await;
        browser.misses("#buy").await;
        browser.picture("shop-list-join").await;
        browser.click("#enter-line").await;
        browser.sees("#line-status", "you are next").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        // Who leaves comes back at the end.
        browser.click("#leave-line").await;
        browser.click("#leave-yes").await;
        browser.sees("#line-status", "at its end").await;
        let other = world.entered(&sale, "another").await;
        browser.click("#enter-line").await;
        browser.sees("#line-status", "at most 1 entry is before you").await;
        browser.picture("shop-list-place").await;
        assert_eq!(world.leave_line(&sale, "another", &other).await.status, 204);
        browser.sees("#line-status", "you are next").await;
        assert_eq!(world.cancel_mine("the first", first).await.status, 200);
        browser.sees("#line-status", "Pay until").await;
        browser.click("#to-payment").await;
        browser.enter().await;
        browser.sees("#line-status", "It is yours").await;
        browser.click("#language").await;
        browser.sees("#line h2", "候补名单").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}
