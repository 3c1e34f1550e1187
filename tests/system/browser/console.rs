//! F6: the console, used by a person: a real Chromium, real servers.

use crate::support::processes::browser::Browser;
use crate::support::world::admin_port::{AdminPort, TOKEN};
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run_waiting};
use seckill::dev::ServerKind;
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{self, Api};
use seckill::store::rabbit::declare;

pub(super) async fn signed_in(admin: &AdminPort, width: u32, height: u32) -> Browser {
    let browser = Browser::start(width, height).await;
    browser.open(&format!("{}/console/", admin.url)).await;
    browser.fill("#token", TOKEN).await;
    browser.fill("#operator", "Li Wei").await;
    browser.click("#sign-in").await;
    browser.sees("h1", "Pipeline").await;
    browser
}

pub(super) async fn no_complaints(browser: &Browser) {
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

/// Redis has units without a grant, and then has them no more.
async fn a_broken_sheet_is_shown(world: &World, browser: &Browser, id: &SaleId) {
    browser.sees("#sheet", "grants not given + failures held + gaps").await;
    let stock = world.servers.redis.keys.stock(0, id);
    world.redis(&["INCRBY", &stock, "3"]).await;
    browser.click("#check-sheet").await;
    browser.sees("#verdict", "Not consistent").await;
    browser.sees("#sheet tr.broken", "-3").await;
    browser.sees("#what-to-do", "UNBALANCED").await;
    world.redis(&["DECRBY", &stock, "3"]).await;
    browser.click("#check-sheet").await;
    browser.sees("#verdict", "Consistent").await;
}

#[test]
fn a_person_signs_in_and_steers_a_sale_by_clicks() {
    run_waiting(async {
        // A draft that warms itself would not wait for the person.
        let world = World::with(&Role::ALL, &["p5_reconcile.warm_ahead_ms=0"]).await;
        let admin = world.admin_port();
        let browser = Browser::start(1280, 900).await;
        browser.open(&format!("{}/console", admin.url)).await;
        browser.fill("#token", "not-the-token").await;
        browser.click("#sign-in").await;
        browser.sees("#sign-in-problem", "not right").await;
        assert_eq!(browser.eval("return sessionStorage.getItem('seckill.token')").await, serde_json::Value::Null);
        browser.fill("#token", TOKEN).await;
        browser.click("#sign-in").await;
        browser.sees("h1", "Pipeline").await;
        browser.sees("#light-redis", "up").await;

        browser.click("a[href='#/sales']").await;
        browser.click("#new-sale").await;
        for (field, text) in [
            ("#new-id", "by-clicks"),
            ("#new-title", "<b>A phone</b> 手机"),
            ("#new-product", "p1"),
            ("#new-stock", "20"),
        ] {
            browser.fill(field, text).await;
        }
        browser.click("#create").await;
        browser.sees("#sale-head", "<b>A phone</b> 手机").await;
        browser.sees("#sale-head", "draft").await;
        let id = "by-clicks".parse().unwrap();
        let status = async || world.servers.rows.sales.get(&id).await.unwrap().unwrap().status.code();

        browser.click("#do-warm").await;
        browser.click("#dialog-no").await;
        browser.misses("dialog").await;
        assert_eq!(status().await, "draft", "asked, and not done");
        for (button, becomes, shown) in
            [("warm", "warmed", "selling"), ("pause", "paused", "paused"), ("resume", "warmed", "selling")]
        {
            browser.click(&format!("#do-{button}")).await;
            browser.click("#dialog-yes").await;
            browser.sees("#sale-head", shown).await;
            assert_eq!(status().await, becomes);
        }
        browser.click("#do-top-up").await;
        browser.fill("#units", "7").await;
        browser.click("#dialog-yes").await;
        browser.sees("#figure-granted", "27").await;
        assert_eq!(world.buy(&id, "alice", 1, None).await.status, 202);
        browser.sees("#figure-admitted", "1").await;
        browser.sees("#verdict", "Consistent").await;
        a_broken_sheet_is_shown(&world, &browser, &id).await;

        browser.click("#do-close").await;
        browser.fill("#typed", "another").await;
        browser.click("#dialog-yes").await;
        browser.sees("dialog [role=alert]", "by-clicks").await;
        assert_eq!(status().await, "warmed", "the wrong name closes nothing");
        browser.fill("#typed", "by-clicks").await;
        browser.click("#dialog-yes").await;
        browser.sees("#sale-head", "closed").await;
        browser.click("#sign-out").await;
        browser.sees_element("#sign-in").await;
        no_complaints(&browser).await;
    });
}

#[test]
fn parked_requests_are_replayed_and_given_up_by_clicks() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let admin = world.admin_port();
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("desk-clicks", 10, Some(1)).await;
        let replayed = world.bought(&sale, "alice").await;
        world.park_the_outbox().await;
        let given_up = world.bought(&sale, "bob").await;
        world.lose_the_outbox().await;
        world.park_request_in_mq(&sale, given_up).await;
        world.park_in_mq([(String::new(), b"<img src=x onerror=alert(1)>".to_vec(), "UNDECODABLE")]).await;

        let browser = signed_in(&admin, 1280, 900).await;
        browser.sees("#box-relay-dlq .value", "1").await;
        browser.click("a[href='#/dlq']").await;
        let row = |id: &dyn ToString| format!("#parked tr[data-request='{}']", id.to_string());
        browser.sees(&row(&given_up), "attempts spent").await;
        browser.sees("#dlq-counts", "MQ DLQ: 2").await;
        browser.click(&format!("{} summary", row(&given_up))).await;
        browser.sees(&format!("{} pre", row(&given_up)), "\"bob\"").await;
        assert_eq!(browser.eval("return document.querySelectorAll('#parked img').length").await, 0, "text, not markup");
        browser.picture("console-dlq").await;

        browser.click(&format!("{} input", row(&replayed))).await;
        browser.click("#replay").await;
        assert_eq!(
            browser.eval("return document.getElementById('dialog-yes').disabled").await,
            true,
            "a dry run comes first"
        );
        browser.click("#dry-run").await;
        browser.sees("#preview", "would land").await;
        assert_eq!(world.orders(&sale).await, 0, "a dry run lands nothing");
        browser.click("#dialog-yes").await;
        browser.sees("#outcome", "landed").await;
        assert_eq!(world.orders(&sale).await, 1);
        browser.misses(&row(&replayed)).await;

        browser.click(&format!("{} input", row(&given_up))).await;
        browser.click("#give-up").await;
        browser.click("#dry-run").await;
        browser.sees("#preview", "would be given up").await;
        browser.fill("#reason", "refunded, ticket 4711").await;
        browser.click("#dialog-yes").await;
        browser.sees("#outcome", "given up").await;
        eventually("bob sees it", async || {
            world.status_of(&sale, "bob", given_up).await == ("FAILED".to_owned(), "GIVEN_UP".to_owned())
        })
        .await;
        browser.click("a[href='#/register']").await;
        let registered = format!("#register tr[data-request='{given_up}']");
        browser.sees(&registered, "given up by a person").await;
        browser.sees(&registered, "console: Li Wei").await;
        browser.click("a[href='#/acts']").await;
        browser.click("#acts tr:first-child summary").await;
        browser.sees("#acts", "ticket 4711").await;
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn a_broker_that_dies_is_shown_and_its_return_too() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "shown", &Role::ALL, &[]).await;
        let admin = world.admin_port();
        let sale = world.sale("shown", 100, Some(1)).await;
        let browser = signed_in(&admin, 1280, 900).await;
        browser.sees("#light-rabbitmq", "up").await;
        browser.sees("#box-queue .second", "consumers").await;
        world.bought(&sale, "before").await;
        browser.sees("#box-database .value", "1").await;

        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        browser.sees("#light-rabbitmq", "away").await;
        browser.sees("#box-queue .first", "no answer").await;
        browser.sees("#hops", "no answer").await;
        browser.sees("#problems", "RabbitMQ:").await;
        let id = world.bought(&sale, "meanwhile").await;
        browser.sees("#box-outbox .value", "1").await;
        browser.sees("#box-relay .second", "breaker open").await;
        assert!(browser.text("#light-redis").await.contains("up"), "the others are well");
        browser.picture("console-broker-away").await;

        servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
        browser.sees("#light-rabbitmq", "up").await;
        browser.sees("#box-database .value", "2").await;
        browser.sees("#box-relay .second", "breaker closed").await;
        assert_eq!(world.status_of(&sale, "meanwhile", id).await.0, "CONFIRMED");
        no_complaints(&browser).await;
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn every_view_works_in_two_languages_by_keyboard_and_on_a_phone() {
    run_waiting(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.sale("views", 10, Some(1)).await;
        world.bought(&sale, "alice").await;
        for (width, height) in [(1280, 900), (360, 780)] {
            let browser = signed_in(&admin, width, height).await;
            let mut reached = vec![browser.tab().await];
            for _ in 0..14 {
                reached.push(browser.tab().await);
            }
            for control in [
                "Sales",
                "Drops",
                "Orders",
                "Buyers",
                "Dead letters",
                "Register",
                "Audits",
                "Acts",
                "language",
                "sign-out",
            ] {
                assert!(reached.iter().any(|one| one == control), "{control} not by Tab: {reached:?}");
            }
            for (view, english, chinese) in [
                ("pipeline", "Pipeline", "链路"),
                ("sales", "Sales", "活动"),
                ("dlq", "Dead letters", "死信"),
                ("register", "Register", "失败登记"),
                ("audits", "Audits", "审计"),
                ("acts", "Acts", "操作记录"),
                ("orders", "Orders", "订单"),
                ("drops", "Drops", "组合活动"),
                ("buyers", "Buyers", "买家"),
                ("sale/views", "t", "t"),
            ] {
                browser.open(&format!("{}/console/#/{view}", admin.url)).await;
                browser.sees("h1", english).await;
                assert_eq!(browser.flaws().await, Vec::<String>::new(), "{view} at {width}");
                browser.click("#language").await;
                browser.sees("h1", chinese).await;
                browser.sees("nav a[aria-current]", if view == "sale/views" { "活动" } else { chinese }).await;
                assert_eq!(browser.eval("return document.documentElement.lang").await, "zh-CN");
                browser.picture(&format!("zh-{}-{width}", view.replace('/', "-"))).await;
                browser.click("#language").await;
                browser.sees("h1", english).await;
                browser.picture(&format!("en-{}-{width}", view.replace('/', "-"))).await;
            }
            no_complaints(&browser).await;
        }
        world.finish().await;
    });
}
