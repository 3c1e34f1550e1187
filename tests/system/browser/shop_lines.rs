//! W1, W2 in the demo shop: a raffle from its entries to the rank that was drawn, by clicks and by keyboard.

use crate::support::buyers::lines::ranks;
use crate::support::processes::browser::Browser;
use crate::support::world::{World, eventually, run_waiting};
use seckill::domain::ids::SaleId;
use seckill::domain::line::LinePlan;
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::Sale;
use seckill::roles::Role;
use serde_json::json;

pub(super) async fn line_world() -> World {
    let mut world = World::with(&[], &["p5_reconcile.interval_ms=100"]).await;
    world.demo_shop = true;
    world.start_roles(&Role::ALL).await;
    world
}

/// A raffle with all that a shop shows, of two units for a buyer.
pub(super) async fn dressed_raffle(world: &World, id: &str, change: impl FnOnce(&mut Sale, &mut LinePlan)) -> SaleId {
    let dressed = |sale: &mut Sale, line: &mut LinePlan| {
        (sale.title, sale.price_cents) = ("Aurora X1 · 512 GB".to_owned(), 199_900);
        sale.policy = PurchasePolicy::from_limit(Some(2));
        change(sale, line);
    };
    world.raffle(id, dressed).await
}

/// The name of the visitor that the page is.
pub(super) async fn visitor(browser: &Browser) -> String {
    let kept = "return JSON.parse(sessionStorage.getItem('seckill.visitor')).visitor.visitor";
    browser.eval(kept).await.as_str().expect("a name").to_owned()
}

async fn focused(browser: &Browser) -> String {
    let script = "return document.activeElement.id";
    browser.eval(script).await.as_str().unwrap_or_default().to_owned()
}

/// What is wrong with the units is said at their field; then two are entered for by the Enter key.
async fn enters_by_keyboard(browser: &Browser) {
    browser.fill("#line-units", "9").await;
    browser.click("#enter-line").await;
    browser.sees("#line-units-fault", "expected 1 to 2").await;
    assert_eq!(focused(browser).await, "line-units");
    let said =
        "const e = document.activeElement; return [e.getAttribute('aria-invalid'), e.getAttribute('aria-describedby')]";
    assert_eq!(browser.eval(said).await, json!(["true", "line-units-hint line-units-fault"]));
    browser.picture("shop-line-fault").await;
    browser.fill("#line-units", "2").await;
    browser.enter().await;
    browser.sees("#line-status", "You are in the draw, for 2 units").await;
    assert_eq!(focused(browser).await, "line-status", "the focus is not lost");
}

/// The receipt can be copied, and is one of ours.
async fn the_receipt_is_good(world: &World, browser: &Browser) {
    let receipt = browser.eval("return document.getElementById('receipt').value").await;
    let said = world.cli(&["line", "receipt", receipt.as_str().unwrap()]).exits(0).json();
    assert_eq!((said["entry_id"].as_str().unwrap(), &said["quantity"]), (&*browser.text("#entry-id").await, &json!(2)));
    browser.click("#copy-receipt").await;
    browser.sees(".receipt [role=status]", "ed").await;
}

/// For good: it asks first, and the keyboard is on the harmless answer.
async fn leaves_for_good(browser: &Browser) {
    browser.click("#leave-line").await;
    browser.sees("#leave-no", "不退出").await;
    assert_eq!(focused(browser).await, "leave-no");
    browser.enter().await;
    browser.sees_element("#leave-line").await;
    assert_eq!(focused(browser).await, "leave-line");
    browser.enter().await;
    browser.click("#leave-yes").await;
    browser.sees("#line-status", "您已退出此抽签").await;
}

#[test]
fn a_visitor_enters_leaves_enters_again_and_sees_the_rank_that_was_drawn() {
    run_waiting(async {
        let world = line_world().await;
        let sale = dressed_raffle(&world, "draw", |_, _| ()).await;
        for no in 0..8 {
            world.entered(&sale, &format!("other-{no}")).await;
        }
        let browser = Browser::start(360, 780).await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.sees("#line h2", "Draw").await;
        browser.sees("#line-status", "go by a draw, not to the first").await;
        browser.sees("#line-clock", "00:5").await;
        browser.misses("#buy").await;
        browser.picture("shop-line-enter").await;
        enters_by_keyboard(&browser).await;
        the_receipt_is_good(&world, &browser).await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.picture("shop-line-entered").await;

        browser.click("#leave-line").await;
        browser.sees("#line-status", "You left the draw. You may enter again").await;
        assert_eq!(world.rows("line_entries", "state = 'LEFT' AND listed = 0").await, 1);
        browser.click("#enter-line").await;
        browser.sees("#line-status", "for 1 unit.").await;
        let entry = browser.text("#entry-id").await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.sees("#entry-id", &entry).await;

        world.line_is_over(&sale).await;
        browser.sees("#line-status", "Your rank is").await;
        let (draw, list) = (world.draw_once(&sale, "DRAWN").await, world.list_of(&sale).await);
        let rank = ranks(&draw, &list).of(entry.parse().unwrap()).unwrap();
        browser.sees("#line-status", &format!("Your rank is {rank}: ")).await;
        browser.click("#draw-check summary").await;
        browser.sees("#draw-seed", &draw.text("seed")).await;
        browser.sees("#draw-check", &format!("--entry {entry}")).await;
        let links = "return [...document.querySelectorAll('#draw-check a')].map((a) => a.getAttribute('href'))";
        assert_eq!(browser.eval(links).await, json!(["/v1/sales/draw/draw", "/v1/sales/draw/draw/entries", "/docs/"]));
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        browser.eval("document.getElementById('line').scrollIntoView()").await;
        browser.picture("shop-line-drawn").await;

        browser.click("#language").await;
        browser.sees("#line-status", &format!("您的名次为 {rank}")).await;
        browser.sees("#draw-check summary", "如何验证抽签").await;
        leaves_for_good(&browser).await;
        assert_eq!(world.entry_of(&sale, &visitor(&browser).await).await.text("state"), "LEFT");
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

#[test]
fn a_draw_that_waits_for_a_text_says_so_and_who_is_not_in_it_reads_that() {
    run_waiting(async {
        let world = line_world().await;
        let sale = dressed_raffle(&world, "text", |sale, line| {
            (line.needs_beacon, sale.policy) = (true, PurchasePolicy::from_limit(Some(1)));
        })
        .await;
        let browser = Browser::start(1280, 900).await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.sees_element("#enter-line").await;
        browser.misses("#line-units").await;
        browser.click("#enter-line").await;
        browser.sees("#line-status", "for 1 unit.").await;
        browser.click("#draw-check summary").await;
        browser.sees("#draw-check", "A text from outside is mixed in").await;
        browser.sees("#draw-check", "public after the close").await;
        world.line_is_over(&sale).await;
        browser.sees("#line-status", "the draw waits for a text from outside").await;
        browser.picture("shop-line-waits").await;
        world.cli(&["line", "draw", "text", "--beacon", "lotto 灯塔"]).exits(0);
        browser.sees("#line-status", "Your rank is 1: you are next").await;
        browser.sees("#draw-beacon", "lotto 灯塔").await;
        assert_eq!(browser.eval("return document.getElementById('draw-check').open").await, true, "it stays open");
        browser.click("#someone-else").await;
        browser.sees("#line-status", "you are not in this draw").await;
        assert_eq!(browser.flaws().await, Vec::<String>::new());
        assert_eq!(browser.complaints().await, Vec::<String>::new());
        drop(browser);
        world.finish().await;
    });
}

/// A page forgets its calls after the first 250.
const REMEMBER_ALL: &str = "performance.setResourceTimingBufferSize(5000)";

/// How often the page has asked for this.
async fn asked(browser: &Browser, end: &str) -> i64 {
    let script = format!(
        "return performance.getEntriesByType('resource').filter((one) => one.name.endsWith({})).length",
        json!(end)
    );
    browser.eval(&script).await.as_i64().unwrap()
}

#[test]
fn the_page_asks_for_an_entry_only_while_it_can_change_and_a_hidden_page_asks_nothing() {
    run_waiting(async {
        let world = line_world().await;
        let sale = dressed_raffle(&world, "asks", |_, _| ()).await;
        let plain = world.sale("plain", 5, None).await;
        let browser = Browser::start(1280, 900).await;
        browser.open(&format!("{}/shop/?sale={sale}", world.api)).await;
        browser.eval(REMEMBER_ALL).await;
        browser.click("#enter-line").await;
        browser.sees("#line-status", "You are in the draw").await;
        let reads = async |more: i64| {
            let before = asked(&browser, "/v1/sales").await;
            eventually("the list of sales", async || asked(&browser, "/v1/sales").await >= before + more).await;
        };
        reads(5).await;
        let (entry, line) = (asked(&browser, "/entries/mine").await, asked(&browser, "/draw").await);
        reads(5).await;
        assert_eq!(asked(&browser, "/entries/mine").await, entry, "nothing changes before the close");
        assert!(asked(&browser, "/draw").await > line, "the line may");
        world.line_is_over(&sale).await;
        browser.sees("#line-status", "Your rank is 1").await;
        eventually("its offer is waited for", async || asked(&browser, "/entries/mine").await > entry + 2).await;

        browser.eval("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })").await;
        nothing_is_asked(&browser).await;
        browser.eval("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))").await;
        reads(1).await;

        // A sale without a line is asked about its line once.
        browser.open(&format!("{}/shop/?sale={plain}", world.api)).await;
        browser.eval(REMEMBER_ALL).await;
        browser.sees("#buy", "Buy now").await;
        browser.misses("#line").await;
        reads(6).await;
        assert!(asked(&browser, "/draw").await <= 1);
        assert_eq!(asked(&browser, "/entries/mine").await, 0);
        drop(browser);
        world.finish().await;
    });
}

/// The page's timer comes round many times, without a call once what was under way has ended.
async fn nothing_is_asked(browser: &Browser) {
    let all = "return performance.getEntriesByType('resource').length";
    browser.eval("window.turns = 0; setInterval(() => { window.turns += 1; }, 400)").await;
    let turns = async |count: u32| {
        let script = format!("return window.turns >= {count}");
        eventually("turns", async || browser.eval(&script).await == true).await;
    };
    turns(5).await;
    let before = browser.eval(all).await;
    turns(17).await;
    assert_eq!(browser.eval(all).await, before);
}
