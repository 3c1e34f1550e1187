//! A drop made by its form in the console: what is refused is shown at its field, units move and leave, and each act needs its role.

use super::console::{no_complaints, signed_in};
use crate::support::processes::browser::Browser;
use crate::support::world::admin_port::{AdminPort, VIEWER, named_tokens};
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role;
use seckill::runtime::now_ms;
use serde_json::{Value, json};

/// Puts a local date and time into an input, milliseconds from now.
async fn fill_ahead(browser: &Browser, css: &str, ms: i64) {
    let script = format!(
        "const at = new Date({}); const input = document.querySelector('{css}');
         input.value = new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19)",
        now_ms() + ms
    );
    browser.eval(&script).await;
}

/// The form with two sizes, as a person fills it.
async fn filled(browser: &Browser) {
    browser.click("a[href='#/drops']").await;
    browser.click("#new-drop").await;
    for (field, words) in
        [("#drop-id", "shoes"), ("#drop-title", "Shoes"), ("#lot1-product", "shoe"), ("#lot1-stock", "8")]
    {
        browser.fill(field, words).await;
    }
    fill_ahead(browser, "#lot1-starts", -2_000).await;
    browser.fill("#drop-sizes", "EU 41, EU 42").await;
    browser.click("#add-sizes").await;
    browser.sees_element("#lot2-id").await;
    let ids =
        "return ['lot1-id', 'lot2-id', 'lot2-product', 'lot2-stock'].map((id) => document.getElementById(id).value)";
    assert_eq!(browser.eval(ids).await, json!(["shoes-eu-41", "shoes-eu-42", "shoe", "8"]));
}

/// What members, a release and a rollover need, with a mistake of each kind first.
async fn with_members_and_a_release(browser: &Browser) {
    browser.click("#lot1 summary").await;
    browser.fill("#lot1-needs", "gold").await;
    browser.click("#create-by-form").await;
    browser.sees("#lot1-needs-fault", "gold: expected a fact").await;
    browser.fill("#lot1-needs", "tier: gold, platinum").await;
    browser.choose("#lot1-rollover", "lot2").await;
    browser.click("#lot2 summary").await;
    browser.click("#lot2-releases").await;
    browser.fill("#lot2-release1-units", "5").await;
    // By the server: the rest goes to a sale that ends later.
    browser.click("#create-by-form").await;
    browser.sees("#lot1-rollover-fault", "which ends later").await;
    assert_eq!(browser.eval("return document.activeElement.id").await, "lot1-rollover");
    assert_eq!(browser.eval("return document.activeElement.getAttribute('aria-invalid')").await, "true");
    assert_eq!(browser.flaws().await, Vec::<String>::new());
    browser.picture("console-drop-form").await;
    fill_ahead(browser, "#lot1-ends", 3_600_000).await;
    browser.click("#create-by-form").await;
    browser.sees("#drop-head", "Shoes").await;
}

async fn done(browser: &Browser, button: &str) {
    browser.click(&format!("#do-{button}")).await;
    browser.click("#dialog-yes").await;
    browser.misses("dialog").await;
}

async fn progress(admin: &AdminPort) -> Vec<(i64, i64)> {
    let drop = admin.get("/drops/shoes").await.json;
    let one = |sale: &Value| (sale["granted"].as_i64().unwrap(), sale["unsold"].as_i64().unwrap());
    drop["progress"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_drop_is_made_by_its_form_steered_and_its_units_move_and_leave() {
    run_waiting(async {
        let world = World::with(&Role::ALL, &["p5_reconcile.warm_ahead_ms=0"]).await;
        let admin = world.admin_port();
        let browser = signed_in(&admin, 1280, 900).await;
        filled(&browser).await;
        with_members_and_a_release(&browser).await;
        let (first, second) = ("#drop-sales tr[data-sale='shoes-eu-41']", "#drop-sales tr[data-sale='shoes-eu-42']");
        browser.sees(first, "tier gold / platinum").await;
        browser.sees(first, "shoes-eu-42").await;
        browser.sees(second, "+5 units").await;
        assert_eq!(progress(&admin).await, [(8, 8), (8, 8)]);

        browser.misses("#do-move").await;
        done(&browser, "warm").await;
        for (act, shown) in [("pause", "paused"), ("resume", "selling")] {
            done(&browser, act).await;
            browser.sees(second, shown).await;
        }
        browser.click("#do-move").await;
        browser.fill("#units", "3").await;
        browser.choose("#units-from", "shoes-eu-42").await;
        browser.choose("#units-to", "shoes-eu-42").await;
        browser.click("#dialog-yes").await;
        browser.sees("dialog [role=alert]", "another sale than from").await;
        browser.choose("#units-to", "shoes-eu-41").await;
        browser.click("#dialog-yes").await;
        browser.sees("#toasts", "3 units moved").await;
        eventually("moved", async || progress(&admin).await == [(11, 11), (5, 5)]).await;
        browser.click("#do-withdraw").await;
        browser.click("#dialog-yes").await;
        browser.sees("#toasts", "1 unit is off sale").await;
        eventually("withdrawn", async || progress(&admin).await == [(10, 10), (5, 5)]).await;
        browser.sees(first, "0 / 10").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("console-drop").await;

        browser.click("a[href='#/acts']").await;
        for act in ["Move units", "Withdraw units", "Resume", "Pause", "Warm up", "Create a sale"] {
            browser.sees("#acts", act).await;
        }
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

/// Sales of two hours from now.
fn later() -> Value {
    let at = |ms: i64| chrono::DateTime::from_timestamp_millis(now_ms() + ms).unwrap().to_rfc3339();
    let sale = |id: &str| json!({ "sale_id": id, "product_id": "p", "title": id, "stock": 5, "starts_at": at(7_200_000), "ends_at": at(9_000_000) });
    json!({ "drop_id": "later", "title": "Later", "limit": 2, "sales": [sale("l-1"), sale("l-2")] })
}

#[test]
fn a_drop_that_has_not_begun_is_edited_hidden_and_closed_and_a_viewer_changes_nothing() {
    run_waiting(async {
        let world = World::with(&Role::ALL, &["p5_reconcile.warm_ahead_ms=0", &named_tokens()]).await;
        let admin = world.admin_port();
        assert_eq!(admin.post("/drops", later()).await.status, 200);
        let browser = signed_in(&admin, 360, 780).await;
        browser.open(&format!("{}/console/#/drop/later", admin.url)).await;
        browser.sees("#drop-head", "2 a buyer").await;
        browser.click("#do-edit").await;
        browser.click("#dialog-yes").await;
        browser.sees("dialog [role=alert]", "Nothing is changed").await;
        browser.fill("#edit-drop-title", "Later, for two").await;
        browser.fill("#edit-drop-limit", "").await;
        browser.click("#dialog-yes").await;
        browser.sees("#drop-head", "Later, for two").await;
        assert_eq!(admin.get("/drops/later").await.json["limit"], Value::Null);
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("console-drop-phone").await;
        for (act, next) in [("hide", "#do-publish"), ("publish", "#do-hide")] {
            done(&browser, act).await;
            browser.sees_element(next).await;
        }
        browser.click("#do-close").await;
        browser.fill("#typed", "later").await;
        browser.click("#dialog-yes").await;
        browser.sees("#drop-note", "seckill drop archive later").await;
        no_complaints(&browser).await;

        assert_eq!(
            admin
                .post(
                    "/drops",
                    json!({ "drop_id": "other", "title": "Other", "sales": [{ "sale_id": "o", "product_id": "p",
            "title": "o", "stock": 1, "starts_at": "2027-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z" }] })
                )
                .await
                .status,
            200
        );
        browser.click("#sign-out").await;
        browser.fill("#token", VIEWER).await;
        browser.click("#sign-in").await;
        browser.sees("#drop-head", "Later").await;
        browser.open(&format!("{}/console/#/drop/other", admin.url)).await;
        browser.sees("#drop-head", "Other").await;
        let disabled =
            "return [...document.querySelectorAll('#actions button')].map((one) => [one.disabled, one.title])";
        let buttons = browser.eval(disabled).await;
        let buttons = buttons.as_array().unwrap();
        assert!(!buttons.is_empty() && buttons.iter().all(|one| one[0] == true), "{buttons:?}");
        assert!(buttons[0][1].as_str().unwrap().contains("operate"), "{buttons:?}");
        drop(browser);
        world.finish().await;
    });
}
