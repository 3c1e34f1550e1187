//! Units go to the entries of a line by rank, each once, what lapses to the next, and nothing to a click while somebody waits (W3, W4).

use crate::support::outside::sale_listener::SaleListener;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::line::LineKind;
use seckill::domain::policy::PurchasePolicy;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

pub(super) const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];
const ALL: &[seckill::roles::Role] = &[Api, Relay, Consumer, Reconcile];

/// A click gets nothing: the units are the line's.
pub(super) async fn no_click(world: &World, sale: &SaleId, user: &str) {
    let click = world.buy(sale, user, 1, None).await;
    assert!(click.status == 409 && click.code() == "ONLY_BY_LINE", "{click:?}");
}

#[test]
fn units_of_a_raffle_go_to_the_first_ranks_and_what_lapses_to_the_next() {
    run(async {
        let world = World::with(ALL, QUICK).await;
        let admin = world.admin_port();
        let events = SaleListener::listen(&world).await;
        let sale = world.line_sale("raffle", 2, LineKind::Raffle, |_| ()).await;
        no_click(&world, &sale, "eager").await;
        let by_rank = world.drawn(&sale, &["ann", "bob", "cat", "dan", "eve"]).await;
        let (first, second) = (world.offered(&sale, &by_rank[0]).await, world.offered(&sale, &by_rank[1]).await);
        let mine = world.entry_of(&sale, &by_rank[1]).await;
        assert_eq!((&mine.json["rank"], &mine.json["before"]), (&2.into(), &0.into()), "{mine:?}");
        // How far the line has come is read once a second.
        eventually("two are in front", async || world.entry_of(&sale, &by_rank[4]).await.json["before"] == 2).await;
        let waits = world.entry_of(&sale, &by_rank[4]).await;
        assert_eq!(
            (waits.text("state"), &waits.json["rank"], &waits.json["request_id"]),
            ("WAITING".to_owned(), &5.into(), &serde_json::Value::Null)
        );
        no_click(&world, &sale, "eager").await;
        let refused =
            world.leave_line(&sale, &by_rank[0], &world.entry_of(&sale, &by_rank[0]).await.text("entry_id")).await;
        assert_eq!((refused.status, refused.code()), (409, "ENTRY_OFFERED".to_owned()), "{refused:?}");

        assert_eq!(admin.pay(first, "p1").await.status, 200);
        eventually("taken", async || world.entry_is(&sale, &by_rank[0], "TAKEN").await).await;
        world.overdue(second).await;
        let third = world.offered(&sale, &by_rank[2]).await;
        eventually("lapsed", async || world.entry_is(&sale, &by_rank[1], "LAPSED").await).await;
        assert_eq!(world.entry_of(&sale, &by_rank[1]).await.text("reason"), "EXPIRED");
        world.cancel_mine(&by_rank[2], third).await;
        let fourth = world.offered(&sale, &by_rank[3]).await;
        eventually("lapsed", async || world.entry_of(&sale, &by_rank[2]).await.text("reason") == "CANCELLED").await;
        no_click(&world, &sale, "eager").await;

        // Who leaves is passed over; then no entry waits, and the door is open.
        let last = world.entry_of(&sale, &by_rank[4]).await.text("entry_id");
        assert_eq!(world.leave_line(&sale, &by_rank[4], &last).await.status, 204);
        world.cancel_mine(&by_rank[3], fourth).await;
        eventually("a click", async || world.buy(&sale, "eager", 1, None).await.status == 202).await;
        eventually("done", async || world.draw_of(&sale).await.text("state") == "DONE").await;
        eventually("clicks are named", async || world.shown_sale(&sale).await.json["by_line"] == false).await;
        eventually("its events", async || events.of_line(&sale).await == [1, 4, 3]).await;
        assert!(world.audit(&sale, Window::Now).await.consistent());

        // An entry that contradicts its order is named.
        for (state, buyer) in [("LAPSED", 0), ("TAKEN", 4)] {
            let of = format!("user_id = '{}'", by_rank[buyer]);
            let before = world.entry_of(&sale, &by_rank[buyer]).await.text("state");
            world.sql(&format!("UPDATE line_entries SET state = '{state}' WHERE {of}")).await;
            let findings = world.audit(&sale, Window::Now).await.findings;
            let named =
                findings.iter().any(|one| one.detail.contains("entries of the line") && one.detail.contains(state));
            assert!(named, "{findings:?}");
            world.sql(&format!("UPDATE line_entries SET state = '{before}' WHERE {of}")).await;
        }
        world.finish().await;
    });
}

#[test]
fn a_waiting_list_gets_what_comes_back_and_clicks_get_it_when_no_entry_waits() {
    run(async {
        let world = World::with(ALL, &[QUICK, &["redis.shards=2"]].concat()).await;
        let admin = world.admin_port();
        let sale = world.line_sale("list", 2, LineKind::Waitlist, |_| ()).await;
        let early = world.enter_line(&sale, "ann", 1).await;
        assert_eq!((early.status, early.code()), (409, "LINE_AWAITED".to_owned()), "{early:?}");
        let (one, two) = (world.ordered(&sale, "one").await, world.ordered(&sale, "two").await);
        for (buyer, rank) in [("ann", 1), ("bob", 2), ("cat", 3)] {
            world.joined(&sale, buyer).await;
            assert_eq!(world.entry_of(&sale, buyer).await.json["rank"], rank, "{buyer}");
        }
        assert_eq!(world.entry_of(&sale, "cat").await.json["before"], 2);
        no_click(&world, &sale, "eager").await;
        world.cancel_mine("one", one).await;
        let anns = world.offered(&sale, "ann").await;
        no_click(&world, &sale, "eager").await;
        assert_eq!(admin.pay(anns, "p1").await.status, 200);
        eventually("taken", async || world.entry_is(&sale, "ann", "TAKEN").await).await;

        // Bob leaves, and may come again, behind cat.
        let bobs = world.entry_of(&sale, "bob").await.text("entry_id");
        assert_eq!(world.leave_line(&sale, "bob", &bobs).await.status, 204);
        world.joined(&sale, "bob").await;
        assert_eq!(world.entry_of(&sale, "bob").await.json["rank"], 4);
        world.overdue(two).await;
        let cats = world.offered(&sale, "cat").await;
        world.overdue(cats).await;
        let bobs = world.offered(&sale, "bob").await;
        world.cancel_mine("bob", bobs).await;
        eventually("a click", async || world.buy(&sale, "eager", 1, None).await.status == 202).await;
        eventually("open again, it is sold out", async || {
            world.shown_sale(&sale).await.json["by_line"] == serde_json::Value::Bool(true)
        })
        .await;
        world.joined(&sale, "dan").await;
        let again = world.enter_line(&sale, "cat", 1).await;
        assert_eq!((again.status, again.code()), (409, "ALREADY_ENTERED".to_owned()), "it lapsed: {again:?}");
        assert_eq!(world.draw_of(&sale).await.code(), "NO_LINE", "a waiting list is not drawn");
        world.finish().await;
    });
}

#[test]
fn who_is_blocked_or_has_the_limit_is_passed_over_and_a_pair_keeps_its_rank() {
    run(async {
        let world = World::with(ALL, QUICK).await;
        let two_each = |sale: &mut seckill::domain::sale::Sale| sale.policy = PurchasePolicy::from_limit(Some(2));
        let sale = world.line_sale("passed", 2, LineKind::Waitlist, two_each).await;
        let (one, two) = (world.ordered(&sale, "has").await, world.ordered(&sale, "has").await);
        eventually("the list is open", async || world.enter_line(&sale, "blocked", 1).await.status == 201).await;
        assert_eq!(world.enter_line(&sale, "has", 1).await.status, 201);
        assert_eq!(world.enter_line(&sale, "pair", 2).await.status, 201);
        for buyer in ["ann", "bob", "cat"] {
            world.joined(&sale, buyer).await;
        }
        world.cli(&["block", "add", "blocked", "--reason", "r"]).exits(0);
        world.cancel_mine("has", one).await;
        world.offered(&sale, "ann").await;
        for (buyer, reason) in [("blocked", "BLOCKED"), ("has", "LIMIT")] {
            let entry = world.entry_of(&sale, buyer).await;
            assert_eq!((entry.text("state"), entry.text("reason")), ("LAPSED".into(), reason.into()), "{buyer}");
        }
        let pair = world.entry_of(&sale, "pair").await;
        assert_eq!((pair.text("state"), &pair.json["request_id"]), ("WAITING".into(), &serde_json::Value::Null));

        // Two units at once: the pair is the first that wants them.
        world.servers.rows.grants.top_up(&sale, "more", 2).await.unwrap();
        world.sale_control().warm(&sale).await.unwrap();
        world.offered(&sale, "pair").await;
        assert!(world.entry_is(&sale, "bob", "WAITING").await);
        world.cancel_mine("has", two).await;
        world.offered(&sale, "bob").await;
        world.finish().await;
    });
}

#[test]
fn a_sale_that_is_rebuilt_goes_on_with_its_line_and_its_door() {
    run(async {
        let mut world = World::with(ALL, QUICK).await;
        let sale = world.line_sale("rebuilt", 2, LineKind::Raffle, |_| ()).await;
        let by_rank = world.drawn(&sale, &["ann", "bob", "cat", "dan"]).await;
        world.offered(&sale, &by_rank[0]).await;
        let second = world.offered(&sale, &by_rank[1]).await;
        assert!(world.settled(&sale).await.consistent());
        super::rebuild_and_grants::lose_the_keys(&world, &sale).await;
        eventually("rebuilt", async || super::rebuild_and_grants::epoch(&world).await == 2).await;
        world.overdue(second).await;
        world.offered(&sale, &by_rank[2]).await;
        no_click(&world, &sale, "eager").await;
        assert!(world.entry_is(&sale, &by_rank[3], "WAITING").await);
        // A server that lost the door only: the next step sets it.
        let meta = world.servers.redis.keys.meta(0, &sale);
        world.redis(&["HSET", &meta, "door", "open"]).await;
        let door = async || world.redis(&["HGET", &meta, "door"]).await.as_str() == Some("line");
        eventually("the door is the line's", door).await;
        world.stop_roles().await;
        world.start_roles(ALL).await;
        world.finish().await;
    });
}
