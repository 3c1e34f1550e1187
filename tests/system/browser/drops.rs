//! Drops in the console and in the shop: made from a file, steered by clicks, bought from.

use super::console::{no_complaints, signed_in};
use super::shop::shop_world;
use crate::support::processes::browser::Browser;
use crate::support::world::{World, eventually, run_waiting};
use seckill::runtime::now_ms;
use serde_json::json;

fn file() -> String {
    let at = |ms: i64| chrono::DateTime::from_timestamp_millis(now_ms() + ms).unwrap().to_rfc3339();
    let sale = |id: &str, title: &str, stock: u32| {
        json!({ "sale_id": id, "product_id": id, "title": title, "stock": stock, "price_cents": 19_900, "currency": "EUR",
            "starts_at": at(-1_000), "ends_at": at(7_200_000), "hidden": true })
    };
    let sales = [sale("eu-41", "EU 41", 5), sale("eu-42", "EU 42", 7), sale("eu-43", "EU 43", 1)];
    json!({ "drop_id": "sneaker", "title": "Sneaker 26", "limit": 1, "sales": sales }).to_string()
}

/// What the server refuses in a pasted file is selected in the text.
async fn a_refusal_is_shown_at_its_place(browser: &Browser) {
    let mut wrong: serde_json::Value = serde_json::from_str(&file()).unwrap();
    wrong["sales"][1]["price_cents"] = json!(-1);
    let text = serde_json::to_string_pretty(&wrong).unwrap();
    browser.eval(&format!("document.querySelector('#drop-text').value = {}", json!(text))).await;
    browser.click("#create").await;
    browser.sees("#create-problem", "eu-42").await;
    browser.sees("#drop-text-fault", "price_cents: expected 0 to").await;
    let chosen = "const e = document.querySelector('#drop-text'); return [document.activeElement === e, e.selectionStart, e.selectionEnd]";
    let chosen = browser.eval(chosen).await;
    let [from, to] = [1, 2].map(|at| usize::try_from(chosen[at].as_u64().unwrap()).unwrap());
    assert!(chosen[0] == true && text[from..to].starts_with("\"price_cents\""), "{chosen}");
    assert!(text[to..].starts_with(" -1"), "of the second sale: {}", &text[from..]);
    browser.fill("#drop-text", "[1]").await;
    browser.click("#create").await;
    browser.sees("#create-problem", "no JSON object").await;
}

/// Nothing is cut off, and the page has no complaint.
async fn is_whole(browser: &Browser) {
    let fits = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.eval(fits).await, json!(true), "nothing is cut off");
    no_complaints(browser).await;
}

/// The shop, at 360 pixels: a size, the limit over all, another visitor.
async fn bought_on_a_phone(world: &World) {
    let browser = Browser::start(360, 780).await;
    browser.open(&format!("{}/shop/?sale=eu-41", world.api)).await;
    browser.sees("#lots", "EU 42").await;
    browser.sees("#drop-limit", "1 in all of this drop").await;
    browser.click("#buy").await;
    browser.sees("#confirmed", "Confirmed").await;
    browser.click("#lots input[value='eu-42']").await;
    browser.sees("h1", "EU 42").await;
    browser.click("#buy").await;
    browser.sees("#refused", "exceed the purchase limit").await;
    browser.sees("#refused", "One over all sizes").await;
    browser.sees("#drop-have", "1 of 1").await;
    browser.click("#someone-else").await;
    browser.sees("#steps", "not bought anything").await;
    browser.click("#lots input[value='eu-43']").await;
    browser.sees("h1", "EU 43").await;
    browser.click("#buy").await;
    browser.sees("#confirmed", "Confirmed").await;
    browser.sees("#lots", "Sold out").await;
    assert_eq!(browser.flaws().await, Vec::<String>::new());
    browser.picture("shop-drop").await;
    is_whole(&browser).await;
}

#[test]
fn a_drop_is_made_warmed_published_bought_from_and_closed_by_clicks() {
    run_waiting(async {
        let world = shop_world().await;
        let admin = world.admin_port();
        let browser = signed_in(&admin, 1280, 900).await;
        browser.click("a[href='#/drops']").await;
        browser.sees("#drops", "no drop yet").await;
        browser.click("#new-drop").await;
        browser.click("#by-file").await;
        browser.fill("#drop-text", "{\"drop_id\": \"sneaker\"}").await;
        browser.click("#create").await;
        browser.sees("#create-problem", "missing field").await;
        a_refusal_is_shown_at_its_place(&browser).await;
        browser.eval(&format!("document.querySelector('#drop-text').value = {}", json!(file()))).await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.click("#create").await;
        browser.sees("#drop-head", "Sneaker 26").await;
        browser.sees("#drop-sales", "EU 43").await;
        for act in ["warm", "publish"] {
            browser.click(&format!("#do-{act}")).await;
            browser.sees("dialog h2", "sneaker").await;
            browser.click("#dialog-yes").await;
            browser.misses("dialog").await;
        }
        browser.sees_element("#do-pause").await;
        browser.misses("#do-warm").await;
        assert_eq!(world.rows("sales", "status = 'warmed' AND hidden = 0").await, 3);
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("console-drop").await;
        is_whole(&browser).await;
        drop(browser);

        bought_on_a_phone(&world).await;

        let browser = signed_in(&admin, 1280, 900).await;
        browser.open(&format!("{}/console/#/drop/sneaker", admin.url)).await;
        browser.click("#do-close").await;
        browser.fill("dialog #typed", "sneaker").await;
        browser.click("#dialog-yes").await;
        eventually("closed", async || world.rows("sales", "status = 'closed'").await == 3).await;
        browser.misses("#do-close").await;
        no_complaints(&browser).await;
        assert!(world.settled(&"eu-41".parse().unwrap()).await.consistent());
        world.finish().await;
    });
}
