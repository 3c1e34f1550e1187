//! A drop in the demo shop: sizes chosen by keyboard, a members' window, what a buyer lacks, the limit over all sizes, a release to wait
//! for.

use crate::support::processes::browser::{ARROW_DOWN, Browser};
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, run_waiting};
use seckill::roles::Role;
use seckill::runtime::now_ms;
use serde_json::{Value, json};

const HOUR: i64 = 3_600_000;

fn file() -> Value {
    let at = |ms: i64| chrono::DateTime::from_timestamp_millis(now_ms() + ms).unwrap().to_rfc3339();
    let sale = |id: &str, title: &str, stock: u32, (starts, ends): (i64, i64)| {
        json!({ "sale_id": id, "product_id": "shoe", "title": title, "stock": stock, "price_cents": 89_900, "currency": "CNY",
            "starts_at": at(starts), "ends_at": at(ends) })
    };
    let mut members = sale("eu-41-gold", "EU 41 · members", 4, (-1_000, HOUR));
    (members["needs"], members["rollover_to"]) = (json!({ "tier": ["gold"] }), json!("eu-41"));
    let mut few = sale("eu-42", "EU 42", 1, (-1_000, 9 * HOUR));
    few["releases"] = json!([{ "at": at(2 * HOUR), "units": 20 }]);
    let sales =
        [sale("eu-40", "EU 40", 9, (-1_000, 9 * HOUR)), members, sale("eu-41", "EU 41", 20, (HOUR, 9 * HOUR)), few];
    json!({ "drop_id": "shoe", "title": "Aurora Run · 极光跑鞋", "limit": 1, "sales": sales })
}

async fn shop(admin: &AdminPort) {
    assert_eq!(admin.post("/drops", file()).await.status, 200);
    assert_eq!(admin.post("/drops/shoe/warm", json!({})).await.json["failed_count"], 0);
}

/// Sizes that sell, that do not yet, and that wait for more; by the arrow keys.
async fn sizes_are_chosen_by_keyboard(browser: &Browser) {
    let lot = |id: &str| format!("#lots [data-sale='{id}']");
    browser.sees(&lot("eu-40"), "about 9 left").await;
    browser.sees(&lot("eu-41-gold"), "tier gold, until").await;
    browser.sees(&lot("eu-41"), "starts in 00:5").await;
    browser.sees(&lot("eu-42"), "sold out, more").await;
    browser.sees("h1", "EU 40").await;
    browser.eval("document.querySelector('#lots input:checked').focus()").await;
    browser.press(ARROW_DOWN).await;
    browser.sees("h1", "EU 41 · members").await;
    for (title, button, clock) in [("EU 41", "Not yet", "Starts in"), ("EU 42", "more soon", "More in")] {
        browser.press(ARROW_DOWN).await;
        browser.sees("h1", title).await;
        browser.sees("#buy", button).await;
        browser.sees(".clock", clock).await;
    }
    assert_eq!(browser.eval("return document.activeElement.value").await, "eu-42", "the keyboard keeps its place");
    assert_eq!(browser.eval("return document.getElementById('buy').disabled").await, true);
    browser.sees("#window", "time zone").await;
}

#[test]
fn a_visitor_chooses_a_size_lacks_a_tier_becomes_a_member_and_meets_the_limit_over_all_sizes() {
    run_waiting(async {
        let mut world = World::with(&[], &["auth.facts=tier=tier"]).await;
        world.demo_shop = true;
        world.start_roles(&Role::ALL).await;
        shop(&world.admin_port()).await;
        world.bought(&"eu-42".parse().unwrap(), "alice").await;
        let browser = Browser::start(360, 780).await;
        browser.open(&format!("{}/shop/?drop=shoe", world.api)).await;
        sizes_are_chosen_by_keyboard(&browser).await;

        browser.click("#lots input[value='eu-41-gold']").await;
        browser.sees("#needs", "tier gold").await;
        browser.sees("#lack", "You lack: tier gold").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("shop-lacks").await;
        browser.click("#buy").await;
        browser.sees("#refused", "It needs: tier gold").await;
        browser.click("#be-member").await;
        browser.sees("#visitor", "a member: tier gold").await;
        browser.misses("#lack").await;
        browser.click("#buy").await;
        browser.sees("#confirmed", "Confirmed").await;
        browser.sees("#drop-have", "1 of 1 over all sizes: EU 41 · members").await;
        browser.click("#lots input[value='eu-40']").await;
        browser.sees("h1", "EU 40").await;
        browser.click("#buy").await;
        browser.sees("#refused", "One over all sizes of this drop").await;
        browser.picture("shop-limit").await;

        browser.click("#language").await;
        browser.sees("#lots legend", "选择").await;
        browser.sees("#drop-have", "合计限购 1 件").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        let fits = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        assert_eq!(browser.eval(fits).await, json!(true));
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}
