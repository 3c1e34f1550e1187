//! L4: visitors of the demo shop who pay, cancel, or let their deadline pass.

use super::shop::{opened, phones_to_pay, shop_world};
use crate::support::basics::answer::Answer;
use crate::support::buyers::orders::LONG;
use crate::support::processes::browser::Browser;
use crate::support::world::{World, run_waiting};
use seckill::domain::ids::RequestId;
use seckill::domain::order_life::PaymentTerms;
use serde_json::{Value, json};

/// The visitor's newest order, once the page shows it in this state.
async fn order_shown(browser: &Browser, state: &str) -> RequestId {
    let row = format!("#orders li[data-state='{state}']");
    browser.sees(&row, "").await;
    let id = browser.eval(&format!("return document.querySelector(\"{row}\").dataset.request")).await;
    RequestId::parse(id.as_str().expect("an id")).expect("a request id")
}

/// The access token of the visitor that the page is.
async fn visitor_token(browser: &Browser) -> String {
    let kept = "return JSON.parse(sessionStorage.getItem('seckill.visitor')).visitor.token";
    browser.eval(kept).await.as_str().expect("a token").to_owned()
}

/// What the shop's page sends when its visitor pays.
async fn pays(world: &World, token: &str, body: Value) -> Answer {
    let request = world.http.post(format!("{}/shop/v1/payments", world.api)).bearer_auth(token).json(&body);
    Answer::of(request).await
}

#[test]
fn a_visitor_sees_the_deadline_and_pays() {
    run_waiting(async {
        let world = shop_world().await;
        let sale = phones_to_pay(&world, "pays", 3, LONG).await;
        let browser = opened(&world, &sale).await;
        browser.sees("#terms", "within 600 seconds").await;
        browser.sees("#orders", "No order yet").await;
        browser.click("#buy").await;
        browser.sees("#confirmed", "Confirmed").await;
        browser.sees("#order-unpaid", "held for you").await;
        browser.sees("#deadline", "00:09:").await;
        let id = order_shown(&browser, "UNPAID").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.eval("document.getElementById('visitor').scrollIntoView({ block: 'end' })").await;
        browser.picture("shop-unpaid").await;

        browser.click("#pay").await;
        browser.sees("#order-paid", "it is yours").await;
        browser.misses("#payment").await;
        assert_eq!(order_shown(&browser, "PAID").await, id);
        assert_eq!(world.rows("payments", "state = 'APPLIED' AND amount_cents = 199900").await, 1);
        assert!(world.order_in("PAID", id).await);
        browser.picture("shop-paid").await;
        // A button that is pressed again, or a repeat after a lost answer: the same payment.
        let again = pays(&world, &visitor_token(&browser).await, json!({ "request_id": id })).await;
        assert_eq!((again.status, again.code()), (200, "P6-F1".to_owned()), "{again:?}");
        assert_eq!(world.rows("payments", "1 = 1").await, 1);
        browser.click("#language").await;
        browser.sees("#order-paid", "已付款").await;
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn a_visitor_cancels_and_the_unit_is_sold_to_another() {
    run_waiting(async {
        let world = shop_world().await;
        let sale = phones_to_pay(&world, "cancels", 1, LONG).await;
        let browser = opened(&world, &sale).await;
        browser.click("#buy").await;
        browser.sees("#order-unpaid", "held for you").await;
        let first = order_shown(&browser, "UNPAID").await;
        browser.sees("#buy", "Sold out").await;
        browser.click("#cancel-order").await;
        browser.sees("#order-cancelled", "on sale again").await;
        browser.sees("#buy", "Buy now").await;
        browser.click("#someone-else").await;
        browser.sees("#orders", "No order yet").await;
        browser.click("#buy").await;
        browser.sees("#order-unpaid", "held for you").await;
        let second = order_shown(&browser, "UNPAID").await;
        assert_ne!(first, second);
        browser.click("#pay").await;
        browser.sees("#order-paid", "it is yours").await;
        assert!(world.order_in("CANCELLED", first).await && world.order_in("PAID", second).await);
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn an_order_that_is_not_paid_expires_the_page_says_so_and_late_money_goes_back() {
    run_waiting(async {
        let world = shop_world().await;
        let admin = world.admin_port();
        let sale = phones_to_pay(&world, "expires", 1, PaymentTerms { limit_returns: true, ..LONG }).await;
        let browser = opened(&world, &sale).await;
        browser.click("#buy").await;
        browser.sees("#order-unpaid", "held for you").await;
        let (id, token) = (order_shown(&browser, "UNPAID").await, visitor_token(&browser).await);
        browser.sees("#buy", "Sold out").await;
        world.overdue(id).await;
        browser.sees("#order-expired", "Not paid in time").await;
        browser.misses("#payment").await;
        assert_eq!(order_shown(&browser, "EXPIRED").await, id);
        browser.sees("#buy", "Buy now").await;
        browser.picture("shop-expired").await;

        // The button is gone; who pays all the same sees that the money goes back, and no unit is taken anew.
        let late = pays(&world, &token, json!({ "request_id": id })).await;
        assert_eq!((late.code(), late.text("reason")), ("P6-F4".to_owned(), "EXPIRED".to_owned()), "{late:?}");
        assert_eq!(admin.get("/refunds").await.json["count"], 1);
        browser.click("#buy").await;
        browser.sees("#order-unpaid", "held for you").await;
        assert_ne!(order_shown(&browser, "UNPAID").await, id, "a new order of the same visitor");
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn only_a_visitor_pays_only_an_order_of_his_that_has_to_be_paid() {
    run_waiting(async {
        let world = shop_world().await;
        let paying = phones_to_pay(&world, "bounds", 3, LONG).await;
        let plain = world.sale("plain", 3, Some(1)).await;
        let (unpaid, stateless) = (world.ordered(&paying, "alice").await, world.ordered(&plain, "alice").await);
        let alice = world.access("alice");
        let refused = async |token: &str, body: Value| {
            let answer = pays(&world, token, body).await;
            (answer.status, answer.code())
        };
        let of = |id: RequestId| json!({ "request_id": id });
        assert_eq!(refused(&world.access("bob"), of(unpaid)).await, (404, "ORDER_NOT_FOUND".to_owned()));
        assert_eq!(refused("no-token", of(unpaid)).await, (401, "UNAUTHORIZED".to_owned()));
        assert_eq!(refused(&alice, of(stateless)).await, (409, "CONFLICT".to_owned()));
        assert_eq!(refused(&alice, json!({ "order": unpaid })).await, (400, "BAD_REQUEST".to_owned()));
        let form = world.http.post(format!("{}/shop/v1/payments", world.api)).bearer_auth(&alice).body("request_id=1");
        assert_eq!(Answer::of(form).await.status, 415, "another site's form pays nothing");
        assert_eq!(world.rows("payments", "1 = 1").await, 0);
        assert_eq!(refused(&alice, of(unpaid)).await, (200, "P6-F1".to_owned()));
        world.finish().await;
    });
}
