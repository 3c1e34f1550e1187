//! Timetables: each release is given once, and what is unsold at the end of a sale goes to the next one, however often it is cut off.

use crate::support::basics::time::pause;
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::fault::Progress;
use seckill::domain::ids::SaleId;
use seckill::domain::sale::Sale;
use seckill::domain::timetable::{Release, Timetable};
use seckill::p5_reconcile::Timekeeper;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::runtime::{Worker, now_ms};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100", "redis.shards=2"];

impl World {
    /// A worker as the leader has it.
    fn timekeeper(&self) -> Timekeeper {
        Timekeeper::new(self.sale_control(), Arc::new(AtomicBool::new(true)))
    }

    /// Everything that is due now, by a process that has just begun.
    async fn keep_times(&self) -> Progress {
        self.timekeeper().step().await.unwrap()
    }

    /// A sale of 10 units with these releases: milliseconds from now, units.
    async fn releasing(&self, id: &str, releases: &[(i64, u32)]) -> SaleId {
        let sale_id = SaleId::parse(id).unwrap();
        let sale = Sale::draft(sale_id.clone(), 10, now_ms() - 60_000, now_ms() + 3_600_000);
        let release = |(in_ms, units): &(i64, u32)| Release { at_ms: now_ms() + in_ms, units: *units };
        let plan = Timetable { releases: releases.iter().map(release).collect(), ..Timetable::default() };
        self.servers.rows.sales.create_planned(&sale, &plan).await.unwrap();
        sale_id
    }

    /// A warmed drop whose sales but for the last one give it what is unsold, with time to pay; they ended a minute ago.
    async fn rolling(&self, sales: &[&str]) -> Vec<SaleId> {
        let last = SaleId::parse(sales.last().unwrap()).unwrap();
        let sales = self
            .planned_drop(0, sales, |sale, plan| {
                sale.payment = Some(LONG);
                plan.rollover_to = (sale.sale_id != last).then(|| last.clone());
            })
            .await;
        self.cli(&["drop", "warm", "drop"]).exits(0);
        sales
    }

    async fn ends(&self, sale: &SaleId) {
        let past = "starts_at = NOW(3) - INTERVAL 2 MINUTE, ends_at = NOW(3) - INTERVAL 1 MINUTE";
        self.sql(&format!("UPDATE sales SET {past} WHERE sale_id = '{sale}'")).await;
        self.sale_control().warm(sale).await.unwrap();
    }

    async fn releases_given(&self) -> i64 {
        self.rows("stock_grants", "grant_id LIKE 'release-%'").await
    }

    /// What the system did by itself, on record.
    async fn acts_of_timetables(&self, action: &str) -> i64 {
        self.rows("operator_acts", &format!("action = '{action}' AND actor_name = 'timetable' AND outcome = 'ok'"))
            .await
    }
}

#[test]
fn a_release_is_given_once_although_two_processes_keep_the_times() {
    run(async {
        let world = World::with(&[Api], &["redis.shards=2"]).await;
        let sale = world.releasing("rounds", &[(-500, 5), (-400, 6), (1_500, 7), (3_600_000, 9)]).await;
        let paused = world.releasing("paused", &[(-500, 5)]).await;
        world.keep_times().await;
        assert_eq!(world.releases_given().await, 0, "nothing of a draft is on sale");
        for id in [&sale, &paused] {
            world.sale_control().warm(id).await.unwrap();
        }
        world.sale_control().pause(&paused).await.unwrap();
        let both = [world.timekeeper(), world.timekeeper()].map(|mut keeper| {
            tokio::spawn(async move {
                loop {
                    keeper.step().await.unwrap();
                    pause().await;
                }
            })
        });
        eventually("the third one came", async || world.units(&sale).await == (28, 28, 28)).await;
        eventually("a paused sale has its own", async || world.units(&paused).await == (15, 15, 15)).await;
        for one in both {
            assert!(!one.is_finished());
            one.abort();
        }
        assert_eq!((world.releases_given().await, world.acts_of_timetables("sale.top_up").await), (4, 4));
        assert_eq!(world.rows("stock_grants", "applied_at IS NULL").await, 0);
        world.finish().await;
    });
}

#[test]
fn a_release_that_dies_behind_redis_is_given_once() {
    run(async {
        let mut world = World::with(&[], QUICK).await;
        let sale = world.releasing("cut-off", &[(-500, 5)]).await;
        world.sale_control().warm(&sale).await.unwrap();
        world.process("reconcile", "F23=return", QUICK).dies_at("F23").await;
        let open = async |world: &World| world.rows("stock_grants", "applied_at IS NULL").await;
        assert_eq!((world.units(&sale).await, open(&world).await), ((15, 15, 15), 1));
        world.start_roles(&[Reconcile]).await;
        eventually("it is marked", async || open(&world).await == 0).await;
        assert_eq!((world.units(&sale).await, world.releases_given().await), ((15, 15, 15), 1));
        assert_eq!(world.acts_of_timetables("sale.top_up").await, 1);
        world.finish().await;
    });
}

#[test]
fn what_is_unsold_at_the_end_goes_to_the_next_sale_and_what_comes_back_follows() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sales = world.rolling(&["early", "late"]).await;
        let order = world.ordered(&sales[0], "ann").await;
        assert_eq!(world.keep_times().await, Progress::Idle, "it has not ended");
        world.ends(&sales[0]).await;
        world.start_roles(&[Reconcile]).await;
        let units = async |world: &World| (world.units(&sales[0]).await, world.units(&sales[1]).await);
        eventually("moved", async || units(&world).await == ((0, 1, 0), (19, 19, 19))).await;
        eventually("it sells", async || world.buy(&sales[1], "bob", 1, None).await.status == 202).await;
        world.overdue(order).await;
        eventually("the late one, too", async || world.units(&sales[0]).await == (0, 0, 0)).await;
        eventually("bought and come", async || world.units(&sales[1]).await == (19, 20, 19)).await;
        let names = "name IN ('rollover-1', 'rollover-2') AND moves_to = 'late' AND taken = asked";
        assert_eq!((world.rows("stock_withdrawals", names).await, world.open_withdrawals().await), (2, 0));
        assert_eq!(world.acts_of_timetables("drop.move").await, 4, "two with both sales");
        world.finish().await;
    });
}

#[test]
fn a_rollover_that_dies_at_any_line_is_finished_once() {
    run(async {
        let world = World::with(&[], QUICK).await;
        let sales = world.rolling(&["early", "late"]).await;
        world.ends(&sales[0]).await;
        for (at, (name, faults)) in [("F45", "F45=return"), ("F46", "F46=1*off->return")].into_iter().enumerate() {
            if at > 0 {
                world.sale_control().top_up(&sales[0], "more", 4).await.unwrap();
            }
            world.process("reconcile", faults, QUICK).dies_at(name).await;
            assert_eq!((world.open_withdrawals().await, world.keep_times().await), (1, Progress::Idle), "{name}");
            let next = world.extra_roles(&[Reconcile], |_| ());
            eventually("p5 finished it", async || world.open_withdrawals().await == 0).await;
            let all = if at == 0 { 20 } else { 24 };
            eventually("given", async || world.units(&sales[1]).await == (all, all, all)).await;
            assert_eq!(world.units(&sales[0]).await, (0, 0, 0), "{name}");
            next.stop().await;
        }
        assert_eq!(
            (world.rows("stock_withdrawals", "TRUE").await, world.acts_of_timetables("drop.move").await),
            (2, 4)
        );
        world.finish().await;
    });
}

#[test]
fn sales_that_end_together_go_to_one_each_under_its_own_name() {
    run(async {
        let world = World::with(&[], QUICK).await;
        let sales = world.rolling(&["a", "b", "c"]).await;
        for sale in &sales[..2] {
            world.ends(sale).await;
        }
        assert_eq!(world.keep_times().await, Progress::Moved(2));
        for (sale, units) in sales.iter().zip([0, 0, 30]) {
            assert_eq!(world.units(sale).await, (units, units, units), "{sale}");
        }
        assert_eq!(world.keep_times().await, Progress::Idle);
        assert_eq!(world.rows("stock_withdrawals", "name IN ('rollover-1', 'rollover-2')").await, 2);
        world.finish().await;
    });
}

#[test]
fn nothing_comes_to_a_closed_sale_or_goes_from_one() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let closed = world.releasing("closed", &[(60_000, 5)]).await;
        world.sale_control().warm(&closed).await.unwrap();
        world.sale_control().close(&closed).await.unwrap();
        world.sql("UPDATE sale_releases SET releases_at = NOW(3) - INTERVAL 1 SECOND").await;
        assert_eq!((world.keep_times().await, world.releases_given().await), (Progress::Idle, 0));

        let sales = world.rolling(&["from", "to"]).await;
        world.ends(&sales[0]).await;
        let mut follower = Timekeeper::new(world.sale_control(), Arc::default());
        assert_eq!(follower.step().await.unwrap(), Progress::Idle, "another process leads");
        world.cli(&["sale", "rebuild", "from"]).exits(0);
        let moves = async |world: &World| world.rows("stock_withdrawals", "TRUE").await;
        assert_eq!((world.keep_times().await, moves(&world).await), (Progress::Idle, 0), "frozen");
        world.start_roles(&[Reconcile]).await;
        eventually("rebuilt, and moved", async || world.units(&sales[1]).await == (20, 20, 20)).await;
        world.stop_roles().await;
        world.sale_control().top_up(&sales[0], "more", 3).await.unwrap();
        world.ends(&sales[1]).await;
        assert_eq!((world.keep_times().await, moves(&world).await), (Progress::Idle, 1), "its target has ended");
        world.sql("UPDATE sales SET ends_at = NOW(3) + INTERVAL 1 HOUR WHERE sale_id = 'to'").await;
        world.cli(&["drop", "close", "drop"]).exits(0);
        assert_eq!((world.keep_times().await, moves(&world).await), (Progress::Idle, 1), "closed");
        assert_eq!(world.units(&sales[0]).await.2, 3, "in its books, unsold");
        world.finish().await;
    });
}
