//! `seckill sale withdraw` and `seckill drop move`: unsold units leave a sale once for each name, however often it is cut off.

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::{Value, json};

const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

impl World {
    /// Units left in the buckets, and by the database: granted, unsold.
    pub(super) async fn units(&self, sale: &SaleId) -> (i64, i64, i64) {
        let mut left = 0;
        for shard in 0..self.settings.redis.shards {
            left += self.servers.redis.stock.units(sale, shard).await.unwrap().unwrap_or(0);
        }
        let of = async |column: &str| {
            self.number(&format!("SELECT CAST({column} AS SIGNED) AS n FROM sales WHERE sale_id = '{sale}'")).await
        };
        (left, of("granted").await, of("stock").await)
    }

    pub(super) async fn open_withdrawals(&self) -> i64 {
        self.rows("stock_withdrawals", "taken IS NULL").await
    }
}

#[test]
fn a_withdrawal_takes_what_it_says_once_and_never_more_than_is_unsold() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("off", 10, None).await;
        world.bought(&sale, "ann").await;
        assert!(world.settled(&sale).await.consistent());
        for _ in 0..2 {
            let said = world.cli(&["sale", "withdraw", "off", "3", "--name", "n"]).exits(0);
            assert!(said.out.contains("3 of 3 units are off sale in off (withdrawal n)"), "{said:?}");
            assert_eq!(world.units(&sale).await, (6, 7, 6));
        }
        assert_eq!(world.rows("operator_acts", "action = 'sale.withdraw' AND outcome = 'ok'").await, 2);
        let other = world.cli(&["sale", "withdraw", "off", "4", "--name", "n"]).exits(1);
        assert!(other.err.contains("exists already with another value of units"), "{other:?}");
        let rest = world.cli(&["sale", "withdraw", "off", "4000000000"]).exits(0);
        assert!(rest.out.contains("6 of 4000000000 units") && rest.err.contains("--name cli-"), "{rest:?}");
        assert_eq!(world.units(&sale).await, (0, 1, 0));
        eventually("sold out", async || world.buy(&sale, "bob", 1, None).await.status == 410).await;
        let none = world.cli(&["sale", "withdraw", "off", "1", "--name", "none"]).exits(0);
        assert!(none.out.contains("0 of 1 units"), "{none:?}");
        assert_eq!(world.rows("stock_grants", "grant_id LIKE 'withdraw-%'").await, 2, "none of 0 units");
        world.cli(&["sale", "top-up", "off", "2"]).exits(0);
        assert_eq!(world.units(&sale).await, (2, 3, 2), "what came since stays");
        eventually("it sells again", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
        let audit = world.settled(&sale).await;
        assert_eq!((audit.counted.withdrawn, audit.counted.granted), (9, 3), "{audit:#?}");
        world.finish().await;
    });
}

#[test]
fn what_cannot_be_withdrawn_is_said_and_changes_nothing() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("there", 10, None).await;
        world.draft("draft", 10, |_| ()).await;
        world.sale("closed", 10, None).await;
        world.cli(&["sale", "close", "closed"]).exits(0);
        for (args, code, said) in [
            (["there", "0", "n"], 64, "expected a whole number from 1"),
            (["there", "-3", "n"], 64, "expected a whole number from 1"),
            (["there", "3", &"n".repeat(56)], 64, "expected 1 to 55 bytes"),
            (["there", "3", " "], 64, "expected 1 to 55 bytes"),
            (["unknown", "3", "n"], 1, "there is no sale unknown"),
            (["draft", "3", "n"], 1, "sale draft is a draft: nothing of it is on sale"),
            (["closed", "3", "n"], 1, "sale closed is closed"),
        ] {
            let refused = world.cli(&["sale", "withdraw", args[0], args[1], "--name", args[2]]).exits(code);
            assert!(refused.err.contains(said), "{refused:?}");
        }
        // Names of withdrawals are none of a grant's.
        let reserved = world.cli(&["sale", "top-up", "there", "1", "--grant", "withdraw-n"]).exits(1);
        assert!(reserved.err.contains("rebuild-, withdraw- or move-"), "{reserved:?}");
        // A version that did not know that.
        world.sql("INSERT INTO stock_grants (sale_id, grant_id, quantity) VALUES ('draft', 'withdraw-n', 1), ('there', 'withdraw-n', 0)").await;
        let taken = world.cli(&["sale", "withdraw", "there", "3", "--name", "n"]).exits(1);
        assert!(taken.err.contains("grant withdraw-n exists already"), "{taken:?}");
        world.sql("DELETE FROM stock_grants WHERE grant_id = 'withdraw-n'").await;
        assert_eq!((world.rows("stock_withdrawals", "TRUE").await, world.units(&sale).await), (0, (10, 10, 10)));
        let refusals = "action = 'sale.withdraw' AND outcome = 'failed'";
        assert_eq!(world.rows("operator_acts", refusals).await, 4);
        world.finish().await;
    });
}

#[test]
fn four_buckets_give_no_more_than_was_asked_for_however_many_finish_it_while_buyers_buy() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &["redis.shards=4"]).await;
        let sale = world.sale("crowded", 400, None).await;
        let withdraw = |name: &'static str, units| {
            let (control, sale) = (world.sale_control(), sale.clone());
            tokio::spawn(async move { control.withdraw(&sale, name, units).await.unwrap() })
        };
        let mut left = 400;
        for (name, units) in [("a", 100), ("b", 100), ("c", 80)] {
            let all = [withdraw(name, units), withdraw(name, units), withdraw(name, units)];
            drop(world.sell(&sale, 20).await);
            let mut taken = Vec::new();
            for one in all {
                taken.push(one.await.unwrap().taken);
            }
            assert!(taken.iter().all(|of| *of == taken[0]) && taken[0] <= i64::from(units), "{taken:?}");
            left -= taken[0];
            assert_eq!(world.units(&sale).await.1, left);
        }
        let audit = world.settled(&sale).await;
        assert!(audit.consistent(), "{audit:#?}");
        assert_eq!(audit.counted.withdrawn, 400 - left);
        world.finish().await;
    });
}

#[test]
fn buckets_are_left_even() {
    run(async {
        let world = World::with(&[], &["redis.shards=4"]).await;
        let sale = world.sale("even", 40, None).await;
        let redis = &world.servers.redis;
        redis.sale_keys.withdraw(&sale, (0, 1, 0), ("by-hand", 8)).await.unwrap();
        let taken = world.sale_control().withdraw(&sale, "n", 12).await.unwrap().taken;
        let mut left = Vec::new();
        for shard in 0..4 {
            left.push(redis.stock.units(&sale, shard).await.unwrap().unwrap());
        }
        assert_eq!((taken, left), (12, vec![2, 6, 6, 6]));
        let audit = world.audit(&sale, Window::Now).await;
        let found = &audit.findings[0].detail;
        assert!(found.contains("redis was given -8 units of grant by-hand, the database knows of 0"), "{audit:#?}");
        world.stop().await;
    });
}

#[test]
fn a_withdrawal_that_dies_at_any_line_is_finished_by_p5_once() {
    run(async {
        let mut world = World::with(&[], &[&["redis.shards=2"], QUICK].concat()).await;
        let sale = world.sale("cut-off", 20, None).await;
        for (at, faults) in ["F45=return", "F46=return", "F46=1*off->return", "F47=return"].into_iter().enumerate() {
            let died =
                world.cli_with_faults(faults, &["sale", "withdraw", "cut-off", "3", "--name", &format!("n{at}")]);
            assert_eq!(died.code, None, "{faults}: {died:?}");
            assert!(world.audit(&sale, Window::Now).await.consistent(), "{faults}");
        }
        assert_eq!((world.rows("stock_withdrawals", "TRUE").await, world.open_withdrawals().await), (4, 3));
        assert_eq!(world.rows("operator_acts", "action = 'sale.withdraw'").await, 4, "each is on record");
        assert_eq!(world.units(&sale).await.1, 17, "the database has only what ended");
        world.start_roles(&[Reconcile]).await;
        eventually("p5 finished them", async || world.open_withdrawals().await == 0).await;
        assert_eq!(world.units(&sale).await, (8, 8, 8));
        for at in 0..4 {
            let said = world.cli(&["sale", "withdraw", "cut-off", "3", "--name", &format!("n{at}")]).exits(0);
            assert!(said.out.contains("3 of 3 units"), "{said:?}");
        }
        assert_eq!(world.units(&sale).await, (8, 8, 8));
        world.finish().await;
    });
}

#[test]
fn a_rebuild_between_redis_and_the_database_gives_the_units_back_and_they_are_taken_once_more() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("rebuilt", 10, None).await;
        let died = world.cli_with_faults("F46=return", &["sale", "withdraw", "rebuilt", "4", "--name", "n"]);
        assert_eq!((died.code, world.units(&sale).await), (None, (6, 10, 10)), "{died:?}");
        world.cli(&["sale", "rebuild", "rebuilt"]).exits(0);
        let frozen = world.cli(&["sale", "withdraw", "rebuilt", "4", "--name", "n"]).exits(1);
        assert!(frozen.err.contains("is frozen") && frozen.err.contains("repeat it with --name n"), "{frozen:?}");
        world.start_roles(&[Reconcile]).await;
        eventually("p5 finished it", async || world.open_withdrawals().await == 0).await;
        assert_eq!(world.units(&sale).await, (6, 6, 6));
        assert_eq!(world.rows("stock_grants", "grant_id = 'withdraw-n' AND epoch = 2 AND quantity = -4").await, 1);
        world.finish().await;
    });
}

#[test]
fn a_move_takes_units_from_one_sale_of_a_drop_to_another_once() {
    run(async {
        let mut world = World::with(&[], &[&["redis.shards=2"], QUICK].concat()).await;
        let sales = world.drop_of(0, &["from", "to"], |_| ()).await;
        world.cli(&["sale", "warm", "from"]).exits(0);
        world.sale("alone", 10, None).await;
        let units = async |world: &World| (world.units(&sales[0]).await, world.units(&sales[1]).await);
        for _ in 0..2 {
            let said = world.cli(&["drop", "move", "from", "to", "4", "--name", "m"]).exits(0);
            assert!(said.out.contains("4 of 4 units moved from from to to (move m)"), "{said:?}");
            assert_eq!(units(&world).await, ((6, 6, 6), (14, 14, 14)));
        }
        for (args, code, said) in [
            (["from", "to", "5", "m"], 1, "another value of units"),
            (["from", "alone", "4", "x"], 1, "units move between sales of one drop, and from and alone are not"),
            (["alone", "to", "4", "x"], 1, "units move between sales of one drop, and alone and to are not"),
            (["from", "unknown", "4", "x"], 1, "there is no sale unknown"),
            (["from", "from", "4", "x"], 64, "expected two sales"),
        ] {
            let refused = world.cli(&["drop", "move", args[0], args[1], args[2], "--name", args[3]]).exits(code);
            assert!(refused.err.contains(said), "{refused:?}");
        }
        let plain = world.cli(&["sale", "withdraw", "from", "4", "--name", "m"]).exits(1);
        assert!(plain.err.contains("another value of to"), "{plain:?}");
        for (at, faults) in ["F45=return", "F46=1*off->return", "F47=return"].into_iter().enumerate() {
            let died = world.cli_with_faults(faults, &["drop", "move", "from", "to", "1", "--name", &format!("m{at}")]);
            assert_eq!(died.code, None, "{faults}: {died:?}");
        }
        let open = async |world: &World| {
            world.open_withdrawals().await + world.rows("stock_grants", "applied_at IS NULL").await
        };
        assert_eq!(open(&world).await, 3);
        world.start_roles(&[Reconcile]).await;
        eventually("p5 finished them", async || open(&world).await == 0).await;
        assert_eq!(units(&world).await, ((3, 3, 3), (17, 17, 17)));
        assert_eq!(world.rows("operator_acts", "action = 'drop.move' AND outcome = 'ok' AND sale_id = 'to'").await, 4);
        world.finish().await;
    });
}

/// No unit vanishes: what left the one sale is unsold in the other one's books.
#[test]
fn a_move_within_a_drop_that_was_closed_since_ends_in_the_books() {
    run(async {
        let mut world = World::with(&[], QUICK).await;
        let sales = world.drop_of(0, &["a", "b"], |_| ()).await;
        world.cli(&["drop", "warm", "drop"]).exits(0);
        let died = world.cli_with_faults("F46=return", &["drop", "move", "a", "b", "4", "--name", "m"]);
        assert_eq!(died.code, None, "{died:?}");
        world.cli(&["drop", "close", "drop"]).exits(0);
        world.start_roles(&[Reconcile]).await;
        eventually("p5 finished it", async || world.open_withdrawals().await == 0).await;
        let said = world.cli(&["drop", "move", "a", "b", "4", "--name", "m"]).exits(0);
        assert!(said.err.contains("b was closed meanwhile"), "{said:?}");
        let granted = async |sale: &SaleId| world.units(sale).await.1;
        assert!(matches!((granted(&sales[0]).await, granted(&sales[1]).await), (6, 14) | (10, 10)));
        world.finish().await;
    });
}

#[test]
fn units_are_withdrawn_and_moved_over_http() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let port = world.admin_port();
        world.drop_of(0, &["one", "two"], |_| ()).await;
        world.cli(&["drop", "warm", "drop"]).exits(0);
        let (withdraw, between) = ("/sales/one/withdraw", "/drops/drop/move");
        let body = |units: Value, name: &str| json!({ "units": units, "name": name, "by": "Li" });
        for _ in 0..2 {
            let done = port.post(withdraw, body(3.into(), "n")).await;
            assert_eq!((done.status, &done.json["withdrawn"]), (200, &json!({ "name": "n", "asked": 3, "taken": 3 })));
        }
        let moving = json!({ "from": "one", "to": "two", "units": 100, "name": "all" });
        let moved = port.post(between, moving.clone()).await;
        assert_eq!((moved.status, &moved.json["moved"]["taken"]), (200, &json!(7)), "{moved:?}");
        assert_eq!(moved.json["drop"]["sales"][1]["stock"], 17, "{moved:?}");
        for (path, body, status, english, chinese) in [
            (withdraw, body(0.into(), "x"), 422, "units: expected a whole number from 1", "units：应为从 1 起的整数"),
            (withdraw, body(1.into(), ""), 422, "name: expected 1 to 55 bytes", "name：应为 1 至 55 字节"),
            (withdraw, body(4.into(), "n"), 409, "another value of units", "units 不同"),
            ("/sales/unknown/withdraw", body(1.into(), "x"), 404, "no sale unknown", "没有活动 unknown"),
            ("/drops/unknown/move", moving.clone(), 404, "no drop unknown", "没有组合活动 unknown"),
        ] {
            let (plain, zh) = (port.post(path, body.clone()).await, port.post_in("zh", path, body).await);
            assert_eq!((plain.status, zh.status), (status, status), "{plain:?}");
            assert!(plain.text("detail").contains(english) && zh.text("detail").contains(chinese), "{plain:?} {zh:?}");
        }
        assert_eq!(port.post(withdraw, json!({ "units": 1 })).await.status, 400, "a browser may repeat a call");
        let mut same = moving;
        same["to"] = "one".into();
        assert_eq!(port.post(between, same).await.status, 422);
        world.finish().await;
    });
}
