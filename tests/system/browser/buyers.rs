//! Buyers in the console: one is blocked and may buy again, and one gets a pass.

use super::console::{no_complaints, signed_in};
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role;

const SECRET: &str = "passes.secrets=pass-secret-of-the-tests-of-32-bytes-or-more";

#[test]
fn an_operator_blocks_a_buyer_lifts_the_block_and_issues_a_pass() {
    run_waiting(async {
        let world = World::with(&Role::ALL, &[SECRET]).await;
        let admin = world.admin_port();
        let sale = world.sale("blocked", 5, Some(1)).await;
        let browser = signed_in(&admin, 1280, 900).await;
        browser.click("a[href='#/buyers']").await;
        browser.sees("#blocks", "No buyer is blocked").await;
        browser.fill("#block-buyer", "mallory").await;
        browser.fill("#block-reason", " ").await;
        browser.click("#block-form-go").await;
        browser.sees("#block-reason-fault", "reason: expected 1 to 200").await;
        browser.fill("#block-reason", "a bot, ticket 4713").await;
        browser.click("#block-form-go").await;
        let row = "#blocks tr[data-buyer='mallory']";
        browser.sees(row, "ticket 4713").await;
        browser.sees(row, "never").await;
        eventually("refused", async || world.buy(&sale, "mallory", 1, None).await.code() == "P1-Q2").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("console-buyers").await;
        browser.click(&format!("{row} button")).await;
        browser.sees("dialog h2", "mallory").await;
        browser.click("#dialog-yes").await;
        browser.misses(row).await;
        eventually("let in again", async || world.buy(&sale, "mallory", 1, None).await.code() != "P1-Q2").await;

        browser.fill("#pass-buyer", "ann").await;
        browser.fill("#pass-id", "sneaker").await;
        browser.fill("#pass-facts", "Tier: gold").await;
        browser.click("#pass-form-go").await;
        browser.sees("#pass-facts-fault", "Tier: expected").await;
        browser.fill("#pass-facts", "tier: gold; team: a, b").await;
        browser.click("#pass-form-go").await;
        browser.sees("#issued", "Pass of ann for sneaker").await;
        let claims = "return JSON.parse(atob(document.getElementById('pass').value.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')))";
        let claims = browser.eval(claims).await;
        assert_eq!(
            (&claims["sub"], &claims["drop"], &claims["tier"]),
            (&"ann".into(), &"sneaker".into(), &"gold".into())
        );
        assert_eq!(claims["team"], serde_json::json!(["a", "b"]));
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.click("a[href='#/acts']").await;
        for act in ["Issue a pass", "Unblock a buyer", "Block a buyer"] {
            browser.sees("#acts", act).await;
        }
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}
