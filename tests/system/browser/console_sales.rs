//! L7: a sale's own life in the console: its forms, the buttons that fit its state, and what is refused.

use super::console::{no_complaints, signed_in};
use crate::support::processes::browser::Browser;
use crate::support::world::{World, eventually, run_waiting};
use seckill::domain::sale::Sale;
use seckill::roles::Role;
use seckill::runtime::now_ms;

async fn sale(world: &World, id: &str) -> Option<Sale> {
    world.servers.rows.sales.get(&id.parse().unwrap()).await.unwrap()
}

/// A local date and time, hours from now, as an input takes it.
async fn fill_hours_ahead(browser: &Browser, css: &str, hours: i64) {
    let ms = now_ms() + hours * 3_600_000;
    let script = format!(
        "const at = new Date({ms}); const input = document.querySelector('{css}');
         input.value = new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19)"
    );
    browser.eval(&script).await;
}

async fn new_sale(browser: &Browser, id: &str) {
    browser.click("a[href='#/sales']").await;
    browser.click("#new-sale").await;
    for (field, text) in
        [("#new-id", id), ("#new-title", "Aurora X1"), ("#new-product", "x1"), ("#new-price", "1999.00")]
    {
        browser.fill(field, text).await;
    }
    fill_hours_ahead(browser, "#new-starts", 2).await;
    fill_hours_ahead(browser, "#new-ends", 4).await;
    browser.click("#new-hidden").await;
    browser.picture("console-new-sale").await;
    browser.click("#create").await;
    browser.sees("#sale-head", "Aurora X1").await;
}

#[test]
fn a_sale_is_created_hidden_edited_moved_published_and_cloned_by_clicks() {
    run_waiting(async {
        let world = World::with(&Role::ALL, &["p5_reconcile.warm_ahead_ms=0"]).await;
        let admin = world.admin_port();
        let browser = signed_in(&admin, 1280, 900).await;
        new_sale(&browser, "autumn").await;
        browser.sees("#sale-head", "hidden").await;
        let made = sale(&world, "autumn").await.unwrap();
        assert_eq!((made.hidden, made.price_cents, made.version), (true, 199_900, 1));

        browser.click("#do-edit").await;
        browser.sees("dialog h2", "autumn").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.fill("#edit-price", "1888.50").await;
        browser.fill("#edit-limit", "").await;
        browser.fill("#edit-pay-within", "600").await;
        browser.picture("console-edit-sale").await;
        browser.click("#dialog-yes").await;
        browser.sees("#terms", "600").await;
        let edited = sale(&world, "autumn").await.unwrap();
        assert_eq!((edited.price_cents, edited.policy.into(), edited.version), (188_850, None::<u32>, 2));
        assert_eq!(edited.payment.map(|terms| terms.pay_within_s), Some(600));
        assert_eq!(edited.title, made.title, "what was not touched stays");

        // Somebody else was quicker: what was seen is not what there is.
        browser.click("#do-edit").await;
        world.cli(&["sale", "edit", "autumn", "--title", "Aurora X1 Pro"]).exits(0);
        browser.fill("#edit-title", "Aurora").await;
        browser.click("#dialog-yes").await;
        browser.sees("dialog [role=alert]", "changed since it was read").await;
        browser.click("#dialog-no").await;
        assert_eq!(sale(&world, "autumn").await.unwrap().title, "Aurora X1 Pro");

        browser.open(&format!("{}/console/#/sales", admin.url)).await;
        browser.click("a[href='#/sale/autumn']").await;
        browser.sees("#sale-head", "Aurora X1 Pro").await;
        browser.click("#do-reschedule").await;
        fill_hours_ahead(&browser, "#move-starts", 3).await;
        browser.click("#dialog-yes").await;
        eventually("moved", async || sale(&world, "autumn").await.unwrap().starts_at_ms > made.starts_at_ms).await;
        assert_eq!(sale(&world, "autumn").await.unwrap().ends_at_ms, made.ends_at_ms);

        browser.click("#do-publish").await;
        browser.click("#dialog-yes").await;
        browser.sees_element("#do-hide").await;
        assert!(!sale(&world, "autumn").await.unwrap().hidden);

        browser.click("#do-clone").await;
        browser.fill("#clone-id", "winter").await;
        browser.click("#dialog-yes").await;
        browser.sees("#sale-head", "winter").await;
        let again = sale(&world, "winter").await.unwrap();
        assert_eq!((again.price_cents, again.granted, again.hidden), (188_850, 100, false));
        browser.click("a[href='#/acts']").await;
        for act in ["Cloned", "Published", "Times changed", "Terms changed"] {
            browser.sees("#acts", act).await;
        }
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn a_running_sale_offers_what_fits_it_and_is_called_sold_out_when_it_is() {
    run_waiting(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let id = world.sale("running", 1, Some(1)).await;
        let browser = signed_in(&admin, 1280, 900).await;
        browser.open(&format!("{}/console/#/sale/running", admin.url)).await;
        browser.sees("#sale-status", "selling").await;
        for button in ["#do-edit", "#do-hide"] {
            browser.misses(button).await;
        }
        browser.sees_element("#do-reschedule").await;
        world.bought(&id, "alice").await;
        browser.sees("#sale-status", "sold out").await;
        browser.click("a[href='#/sales']").await;
        browser.sees("tr[data-sale='running']", "sold out").await;
        browser.picture("console-sold-out").await;
        browser.click("a[href='#/sale/running']").await;
        browser.click("#do-pause").await;
        browser.click("#dialog-yes").await;
        browser.click("#do-hide").await;
        browser.click("#dialog-yes").await;
        browser.sees("#sale-head", "hidden").await;
        browser.sees("#sale-head", "paused").await;
        browser.click("#language").await;
        browser.sees("#sale-head", "已隐藏").await;
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}
