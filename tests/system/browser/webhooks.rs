//! L5: webhooks in the console: an operator sees what is dead and sends it again, and the acts say so.

use super::console::{no_complaints, signed_in};
use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, webhook};
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role;

#[test]
fn an_operator_sends_dead_deliveries_again() {
    run_waiting(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("500 Internal Server Error", "");
        let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
        let world = World::with_config(&Role::ALL, &["webhook_delivery.retry_ms=50"], &text).await;
        let admin = world.admin_port();
        let sale = world.sale("hooks", 3, Some(1)).await;
        let alice = world.ordered(&sale, "alice").await;
        eventually("it is dead", async || world.deliveries("DEAD").await == 1).await;
        receiver.answers("200 OK", "");
        let browser = signed_in(&admin, 1280, 900).await;
        browser.click("a[href='#/dlq']").await;
        let row = "#webhooks tr[data-webhook='shop']";
        browser.sees(row, "http://127.0.0.1").await;
        browser.sees(row, "1").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.click(&format!("{row} button")).await;
        browser.click("#dialog-yes").await;
        browser.misses(&format!("{row} button")).await;
        receiver.receives("order.confirmed", alice).await;
        browser.click("a[href='#/acts']").await;
        browser.sees("#acts tr:first-child", "Send deliveries again").await;
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}
