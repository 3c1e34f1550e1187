//! Q4: the demo shop's page solves a proof of work, in a worker, and stops when its visitor says so.

use super::shop::{opened, shop_world};
use crate::support::world::run_waiting;
use serde_json::json;

#[test]
fn the_page_solves_a_proof_of_work_and_says_so_in_both_languages() {
    run_waiting(async {
        let world = shop_world().await;
        let (quick, slow) = (world.challenged("quick", "pow:15").await, world.challenged("slow", "pow:24").await);
        let browser = opened(&world, &quick).await;
        browser.click("#buy").await;
        browser.sees("#confirmed", "Confirmed").await;
        assert_eq!(world.orders(&quick).await, 1);
        assert_eq!(browser.text("#stop-solving").await, "", "nothing is left to stop");

        // A hard one, stopped from the keyboard.
        browser.open(&format!("{}/shop/?sale={slow}", world.api)).await;
        browser.click("#buy").await;
        browser.sees("#steps", "your device tries about 16,777,216 numbers").await;
        browser.sees_element("#solving:not([hidden])").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("shop-solving").await;
        // The page stays alive meanwhile.
        browser.click("#language").await;
        browser.sees("#stop-solving", "停止").await;
        browser.sees("#steps", "购买令牌").await;
        let mut focused = String::new();
        for _ in 0..30 {
            focused = browser.tab().await;
            if focused == "stop-solving" {
                break;
            }
        }
        assert_eq!(focused, "stop-solving", "it can be reached by keyboard");
        browser.enter().await;
        browser.sees("#refused", "您停止了工作量证明").await;
        browser.misses("#stop-solving").await;
        assert_eq!(browser.eval("return document.activeElement.id").await, json!("buy"), "the focus is not lost");
        assert_eq!(world.orders(&slow).await, 0);
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}
