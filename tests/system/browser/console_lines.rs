//! Lines in the console: a sale with one is made by its form, its entries are listed page by page, and its draw is made and checked.

use super::console::{no_complaints, signed_in};
use crate::support::processes::browser::Browser;
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role;
use seckill::runtime::now_ms;

/// A local date and time, hours from now, in an input.
async fn fill_hours_ahead(browser: &Browser, css: &str, hours: i64) {
    let ms = now_ms() + hours * 3_600_000;
    let script = format!(
        "const at = new Date({ms}); const input = document.querySelector('{css}');
         input.value = new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19)"
    );
    browser.eval(&script).await;
}

/// A raffle that waits for a text; its close is wrong at first.
async fn is_made_by_the_form(browser: &Browser) {
    browser.click("a[href='#/sales']").await;
    browser.click("#new-sale").await;
    for (field, text) in [("#new-id", "raffle"), ("#new-title", "Aurora X1"), ("#new-product", "x1")] {
        browser.fill(field, text).await;
    }
    fill_hours_ahead(browser, "#new-starts", 2).await;
    fill_hours_ahead(browser, "#new-ends", 4).await;
    browser.misses("label[for='new-line-closes']").await;
    browser.choose("#new-line", "raffle").await;
    browser.sees("label[for='new-line-closes']", "Entries close").await;
    browser.click("#new-line-beacon").await;
    fill_hours_ahead(browser, "#new-line-closes", 5).await;
    browser.click("#create").await;
    browser.sees("#new-line-closes-fault", "a time not after ends_at").await;
    assert_eq!(browser.flaws().await, Vec::<String>::new());
    browser.picture("console-line-form").await;
    fill_hours_ahead(browser, "#new-line-closes", 1).await;
    browser.click("#create").await;
    browser.sees("#sale-head", "Aurora X1").await;
}

/// Sixty entries are a page and a bit, one of them left.
async fn entries_are_listed(world: &World, browser: &Browser) {
    let sale = "raffle".parse().unwrap();
    let mut entries = Vec::new();
    for no in 0..60 {
        entries.push(world.entered(&sale, &format!("buyer-{no}")).await);
    }
    world.leave_line(&sale, "buyer-7", &entries[7]).await;
    browser.click("#refresh-entries").await;
    let rows = "return document.querySelectorAll('#line-entries tr[data-entry]').length";
    eventually("a page", async || browser.eval(rows).await == 50).await;
    browser.click("#more-entries").await;
    eventually("all", async || browser.eval(rows).await == 60).await;
    browser.misses("#more-entries").await;
    browser.choose("#line-state", "LEFT").await;
    eventually("one that left", async || browser.eval(rows).await == 1).await;
    browser.sees("#line-entries", "buyer-7").await;
    browser.sees("#figure-entry-WAITING", "59").await;
    browser.sees("#figure-entry-LEFT", "1").await;
}

#[test]
fn a_raffle_is_made_its_entries_are_listed_and_it_is_drawn_with_a_text_by_clicks() {
    run_waiting(async {
        let world = World::with(&Role::ALL, &["p5_reconcile.interval_ms=100"]).await;
        let admin = world.admin_port();
        let browser = signed_in(&admin, 1280, 900).await;
        is_made_by_the_form(&browser).await;
        browser.sees("#line-kind", "Raffle").await;
        browser.sees("#line-state-now", "takes entries").await;
        browser.sees("#line-card", "announce before the close").await;
        entries_are_listed(&world, &browser).await;
        browser.eval("document.getElementById('line-card').scrollIntoView()").await;
        browser.picture("console-line").await;

        world.line_is_over(&"raffle".parse().unwrap()).await;
        browser.sees("#line-state-now", "list sealed").await;
        browser.click("#draw-line").await;
        browser.sees("dialog h2", "raffle").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.fill("#draw-beacon", "lotto 灯塔").await;
        browser.picture("console-line-draw").await;
        browser.enter().await;
        browser.sees("#line-state-now", "drawn").await;
        browser.misses("#draw-line").await;
        browser.click("#draw-check summary").await;
        browser.sees("#draw-check", "lotto 灯塔").await;
        browser.sees("#draw-check", "seckill line verify").await;
        browser.click("#save-list").await;
        browser.click("#save-draw").await;
        browser.misses("#save-list-problem").await;
        browser.misses("#save-draw-problem").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.eval("document.getElementById('line-card').scrollIntoView()").await;
        browser.picture("console-line-drawn").await;
        browser.click("#language").await;
        browser.sees("#line-kind", "抽签").await;
        browser.click("a[href='#/acts']").await;
        browser.sees("#acts", "抽签").await;
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn a_line_is_read_on_a_phone_in_both_languages() {
    run_waiting(async {
        let world = World::with(&Role::ALL, &["p5_reconcile.interval_ms=100"]).await;
        let admin = world.admin_port();
        let sale = world.raffle("phone", |_, _| ()).await;
        world.entered(&sale, "ann").await;
        let browser = signed_in(&admin, 360, 780).await;
        browser.open(&format!("{}/console/#/sale/phone", admin.url)).await;
        browser.sees("#line-entries", "ann").await;
        world.line_is_over(&sale).await;
        browser.sees("#line-state-now", "drawn").await;
        browser.click("#draw-check summary").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.eval("document.getElementById('line-card').scrollIntoView()").await;
        browser.picture("console-line-phone").await;
        browser.click("#language").await;
        browser.sees("#line-state-now", "已抽签").await;
        browser.sees("#line-entries", "等待").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}
