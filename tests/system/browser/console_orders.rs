//! L4: orders in the console: an operator finds one, cancels it, sends money back, and the acts say so.

use super::console::{no_complaints, signed_in};
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, run_waiting};
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::policy::PurchasePolicy;

#[test]
fn an_operator_finds_an_order_and_cancels_it() {
    run_waiting(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("desk", 3, Some(1), LONG).await;
        let other = world.sale("another", 3, Some(1)).await;
        let alice = world.ordered(&sale, "alice").await;
        let bob = world.ordered(&sale, "bob").await;
        let stateless = world.ordered(&other, "alice").await;
        let browser = signed_in(&admin, 1280, 900).await;
        let row = |id: &dyn ToString| format!("#orders tr[data-request='{}']", id.to_string());
        browser.click("a[href='#/orders']").await;
        for id in [alice, bob, stateless] {
            browser.sees(&row(&id), "1 unit").await;
            assert!(!browser.text(&row(&id)).await.contains("1 units"));
        }
        browser.fill("#find-buyer", "alice").await;
        browser.choose("#find-state", "UNPAID").await;
        browser.click("#find").await;
        browser.misses(&row(&bob)).await;
        browser.misses(&row(&stateless)).await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());

        browser.click(&format!("{} a", row(&alice))).await;
        browser.sees("#order-facts", "unpaid").await;
        browser.sees("#order-facts", "alice").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.click("#cancel-order").await;
        browser.click("#dialog-yes").await;
        assert!(world.order_in("UNPAID", alice).await, "a reason is asked for first");
        browser.fill("#reason", "ticket 4712").await;
        browser.click("#dialog-yes").await;
        browser.sees("#order-facts", "cancelled").await;
        browser.misses("#cancel-order").await;
        assert!(world.order_in("CANCELLED", alice).await);

        browser.click("a[href='#/acts']").await;
        browser.sees("#acts tr:first-child", "Cancel an order").await;
        browser.sees("#acts tr:first-child", "Li Wei").await;
        browser.click("#acts tr:first-child summary").await;
        browser.sees("#acts tr:first-child", "ticket 4712").await;
        browser.fill("#acts-sale", "another").await;
        browser.click("#find-acts button").await;
        browser.sees("#acts", "No acts yet").await;
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn an_operator_sees_what_became_of_a_sales_orders_and_sends_money_back() {
    run_waiting(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("money", 2, Some(1), LONG).await;
        let (paid, unpaid) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        assert_eq!(admin.pay(paid, "pi_1").await.code(), "P6-F1");
        assert_eq!(admin.pay(paid, "pi_2").await.code(), "P6-F4", "money too much");
        let browser = signed_in(&admin, 1280, 900).await;
        browser.sees("#refunds-badge", "1").await;
        browser.click("a[href='#/sales']").await;
        browser.sees("tr[data-sale=money]", "sold out").await;
        browser.click("tr[data-sale=money] a").await;
        browser.sees("#sale-head", "sold out").await;
        browser.sees("#terms", "600 s").await;
        browser.sees("#figure-unpaid", "1").await;
        browser.sees("#figure-paid", "1").await;
        browser.sees("#sheet", "units given back = expired + cancelled orders").await;
        browser.sees("#verdict", "Consistent").await;
        browser.picture("console-sale-paying").await;

        browser.click("#orders-of-sale").await;
        browser.sees("#orders", "alice").await;
        browser.sees("#refunds tr[data-payment=pi_2]", "another payment was first").await;
        browser.picture("console-orders").await;
        browser.click("#refunds tr[data-payment=pi_2] button").await;
        browser.click("#dialog-yes").await;
        browser.sees("#refunds", "No money has to go back").await;
        browser.misses("#refunds-badge").await;
        assert_eq!(world.rows("payments", "payment_id = 'pi_2' AND state = 'REFUNDED'").await, 1);

        // A paid order that is cancelled: its money has to go back, too.
        browser.open(&format!("{}/console/#/order/{paid}", admin.url)).await;
        browser.sees("#payments tr[data-payment=pi_1]", "applied").await;
        browser.click("#cancel-order").await;
        browser.sees("dialog", "its money has to go back").await;
        browser.fill("#reason", "damaged").await;
        browser.click("#dialog-yes").await;
        browser.sees("#payments tr[data-payment=pi_1]", "refund needed").await;
        browser.click("#payments tr[data-payment=pi_1] button").await;
        browser.click("#dialog-yes").await;
        browser.misses("#payments tr[data-payment=pi_1] button").await;
        assert_eq!(world.rows("payments", "payment_id = 'pi_1' AND state = 'REFUNDED'").await, 1);
        browser.open(&format!("{}/console/#/sale/money", admin.url)).await;
        browser.sees("#sale-head", "selling").await;
        browser.sees("#figure-cancelled", "1").await;
        // The figures of a sale whose units came back agree: both were admitted, one stands, one is on sale again.
        for (figure, units) in [("admitted", "2"), ("landed", "1"), ("way", "0"), ("returned", "1"), ("remaining", "1")]
        {
            browser.sees(&format!("#figure-{figure}"), units).await;
        }
        assert!(world.order_in("UNPAID", unpaid).await);
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn a_sale_in_a_currency_without_cents_is_created_with_its_terms_of_payment() {
    run_waiting(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let browser = signed_in(&admin, 1280, 900).await;
        browser.click("a[href='#/sales']").await;
        browser.click("#new-sale").await;
        for (field, text) in [
            ("#new-id", "in-yen"),
            ("#new-title", "A camera"),
            ("#new-product", "c1"),
            ("#new-stock", "5"),
            ("#new-limit", "2"),
            ("#new-currency", "JPY"),
            ("#new-price", "1500"),
            ("#new-pay-within", "900"),
            ("#new-pay-grace", "60"),
        ] {
            browser.fill(field, text).await;
        }
        assert_eq!(browser.eval("return document.getElementById('new-price').step").await, "1");
        browser.click("#new-returns").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.click("#create").await;
        browser.sees("#sale-head", "A camera").await;
        browser.sees("#terms", "Time to pay: 900 s · Grace: 60 s").await;
        let sale = world.servers.rows.sales.get(&"in-yen".parse().unwrap()).await.unwrap().unwrap();
        assert_eq!((sale.price_cents, sale.currency.as_str()), (1_500, "JPY"));
        assert_eq!(sale.policy, PurchasePolicy::from_limit(Some(2)));
        assert_eq!(sale.payment, Some(PaymentTerms { pay_within_s: 900, pay_grace_s: 60, limit_returns: true }));
        browser.click("a[href='#/sales']").await;
        browser.sees("tr[data-sale=in-yen]", "1,500").await;
        assert!(!browser.text("tr[data-sale=in-yen]").await.contains("15.00"), "yen have no cents");
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}
