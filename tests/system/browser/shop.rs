//! F6: the demo shop, used by a visitor, with the console beside it.

use crate::support::processes::browser::Browser;
use crate::support::world::admin_port::{AdminPort, TOKEN};
use crate::support::world::{Answer, World, eventually, run_waiting};
use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use seckill::roles::Role;
use seckill::runtime::now_ms;
use serde_json::json;

/// A sale with all that a shop shows.
async fn phones(world: &World, id: &str, stock: i64) -> SaleId {
    let dressed = |sale: &mut seckill::domain::sale::Sale| {
        sale.title = "Aurora X1 · 512 GB".to_owned();
        sale.price_cents = 199_900;
        sale.ends_at_ms = now_ms() + 26 * 3_600_000;
    };
    world.sale_with(id, stock, dressed).await
}

/// The same, whose orders have to be paid.
pub(super) async fn phones_to_pay(world: &World, id: &str, stock: i64, terms: PaymentTerms) -> SaleId {
    let dressed = |sale: &mut seckill::domain::sale::Sale| {
        sale.title = "Aurora X1 · 512 GB".to_owned();
        sale.price_cents = 199_900;
        sale.payment = Some(terms);
    };
    world.sale_with(id, stock, dressed).await
}

pub(super) async fn shop_world() -> World {
    let mut world = World::with(&[], &[]).await;
    world.demo_shop = true;
    world.start_roles(&Role::ALL).await;
    world
}

pub(super) async fn opened(world: &World, sale: &SaleId) -> Browser {
    let browser = Browser::start(1280, 900).await;
    browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
    browser
}

#[test]
fn a_visitor_buys_and_sees_the_true_outcome_and_each_refusal() {
    run_waiting(async {
        let mut world = shop_world().await;
        let sale = phones(&world, "shop", 3).await;
        let browser = opened(&world, &sale).await;
        browser.sees("#left", "3").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.click("#buy").await;
        browser.sees("#confirmed", "Confirmed").await;
        assert_eq!(world.orders(&sale).await, 1);
        browser.picture("shop-confirmed").await;
        browser.click("#buy").await;
        browser.sees("#refused", "already bought").await;

        // Honest while it waits: with no consumer to land it, it stays queued, also after the page was loaded again.
        // Not the page's fault: it would ask the old address again, and the browser complain of that.
        browser.open("about:blank").await;
        world.stop_roles().await;
        world.start_roles(&[Role::Api]).await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.click("#someone-else").await;
        browser.sees("#steps", "not bought anything").await;
        browser.click("#buy").await;
        browser.sees("#steps", "Queued").await;
        browser.sees("#steps .now", "Order").await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.sees("#steps .now", "Order").await;
        let more = world.extra_roles(&[Role::Relay, Role::Consumer], |_| {});
        browser.sees("#confirmed", "Confirmed").await;

        world.sale_control().pause(&sale).await.unwrap();
        browser.sees("#buy", "Paused").await;
        world.sale_control().resume(&sale).await.unwrap();
        browser.sees("#buy", "Buy now").await;
        assert_eq!(world.buy(&sale, "the last one", 1, None).await.status, 202);
        browser.sees("#buy", "Sold out").await;
        browser.click("#language").await;
        browser.sees("#buy", "已售罄").await;
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        more.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_sale_that_has_not_begun_counts_down_by_the_servers_clock_and_then_sells() {
    run_waiting(async {
        let world = shop_world().await;
        // The browser first: it may take its time to start, and the countdown must not be over by then.
        let browser = Browser::start(1280, 900).await;
        let soon = |sale: &mut seckill::domain::sale::Sale| sale.starts_at_ms = now_ms() + 20_000;
        let sale = world.sale_with("soon", 5, soon).await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.sees("#buy", "Not yet").await;
        browser.sees("#clock", "00:00:").await;
        browser.sees("#buy", "Buy now").await;
        browser.click("#buy").await;
        browser.sees("#confirmed", "Confirmed").await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn the_countdown_is_right_on_a_computer_whose_clock_is_two_hours_wrong() {
    run_waiting(async {
        let world = shop_world().await;
        let in_an_hour = |sale: &mut seckill::domain::sale::Sale| {
            (sale.starts_at_ms, sale.ends_at_ms) = (now_ms() + 3_590_000, now_ms() + 7_200_000);
        };
        let sale = world.sale_with("wrong-clock", 5, in_an_hour).await;
        let browser = opened(&world, &sale).await;
        browser.sees("#clock", "00:5").await;
        browser.eval("const real = Date.now; Date.now = () => real() - 7200000; window.shown = new Set()").await;
        browser.eval("setInterval(() => window.shown.add(document.getElementById('clock').textContent), 50)").await;
        browser.eval("performance.clearResourceTimings()").await;
        let reads = "return performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/v1/sales/wrong-clock')).length";
        eventually("two reads", async || browser.eval(reads).await.as_i64() >= Some(2)).await;
        browser.eval("window.shown.clear()").await;
        eventually("two more", async || browser.eval(reads).await.as_i64() >= Some(4)).await;
        let shown = browser.eval("return [...window.shown]").await;
        let shown: Vec<&str> = shown.as_array().unwrap().iter().filter_map(serde_json::Value::as_str).collect();
        assert!(!shown.is_empty() && shown.iter().all(|clock| clock.starts_with("00:5")), "{shown:?}");
        drop(browser);
        world.finish().await;
    });
}

async fn crowd(world: &World, sale: &SaleId, buyers: u64) -> Answer {
    let body = json!({ "sale_id": sale, "buyers": buyers });
    Answer::of(world.http.post(format!("{}/shop/v1/crowds", world.api)).json(&body)).await
}

#[test]
fn a_crowd_at_the_press_of_a_button_moves_the_console() {
    run_waiting(async {
        let world = shop_world().await;
        let admin: AdminPort = world.admin_port();
        let sale = phones(&world, "crowded", 1_500).await;
        let browser = opened(&world, &sale).await;
        browser.click("#send-crowd").await;
        browser.sees("#crowd-words", "2,000 have their answer").await;
        browser.open(&format!("{}/console/#/sale/crowded", admin.url)).await;
        browser.fill("#token", TOKEN).await;
        browser.click("#sign-in").await;
        browser.sees("#figure-admitted", "1,500").await;
        browser.sees("#figure-landed", "1,500").await;
        browser.picture("console-sale").await;
        browser.click("a[href='#/pipeline']").await;
        browser.sees("#box-database .value", "1,500").await;

        // The next crowd, with the console open: its figures move while the crowd buys.
        let second = phones(&world, "second", 8_000).await;
        browser.sees("#box-entry .value", "/s").await;
        assert_eq!(crowd(&world, &second, 10_000).await.status, 200);
        browser.sees_element(".pipe[data-flow=slow], .pipe[data-flow=fast]").await;
        eventually("most of it landed", async || {
            let text = browser.text("#box-database .value").await.replace(',', "");
            text.parse::<u64>().is_ok_and(|units| units > 6_500)
        })
        .await;
        browser.picture("console-pipeline").await;
        browser.sees("#box-database .value", "9,500").await;
        browser.open(&format!("{}/shop/?sale=crowded", world.api)).await;
        browser.sees("#crowd-answers", "sold out or over").await;
        browser.sees("#left", "0").await;
        browser.picture("shop-crowd").await;
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn there_is_no_shop_on_a_production_api_and_none_that_others_can_reach() {
    run_waiting(async {
        let plain = World::with(&[Role::Api], &[]).await;
        for (method, path) in [
            ("GET", "/shop/"),
            ("GET", "/shop/shop.js"),
            ("POST", "/shop/v1/visitors"),
            ("POST", "/shop/v1/payments"),
            ("POST", "/shop/v1/crowds"),
        ] {
            let url = format!("{}{path}", plain.api);
            let answer = Answer::of(plain.http.request(method.parse().unwrap(), url).json(&json!({}))).await;
            assert_eq!((answer.status, answer.code().as_str()), (404, "NO_SUCH_ROUTE"), "{method} {path}");
        }
        plain.finish().await;

        let world = shop_world().await;
        let sale = world.sale("limits", 1, Some(1)).await;
        // One crowd at a time: the second comes while the first is under way.
        for (buyers, status) in [(0, 422), (10_001, 422), (10_000, 200), (1, 409)] {
            assert_eq!(crowd(&world, &sale, buyers).await.status, status, "{buyers}");
        }
        let form = world.http.post(format!("{}/shop/v1/visitors", world.api)).body("x=1");
        assert_eq!(Answer::of(form).await.status, 415, "another site's form mints nothing");
        let mut settings = (*world.settings).clone();
        settings.http.listen = "0.0.0.0:0".to_owned();
        settings.auth.secret = Secret::new("test-access-secret-of-32-bytes-or-more".to_owned());
        let stopper = seckill::runtime::Stopper::new();
        let options = seckill::roles::ApiOptions { public_port: None, demo_shop: true };
        let refused = seckill::roles::start(&std::sync::Arc::new(settings), &[Role::Api], options, &stopper);
        let why = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(why.contains("http.listen") && why.contains("loopback"), "{why}");
        world.finish().await;
    });
}
