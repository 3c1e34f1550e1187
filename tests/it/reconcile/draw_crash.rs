//! The leader dies behind each step of a draw: the next one goes on with the same list, and the ranks are the same.

use crate::support::buyers::lines::ranks;
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::Api;

const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

async fn state(world: &World, sale: &SaleId, state: &str) -> bool {
    world.rows("sale_lines", &format!("sale_id = '{sale}' AND state = '{state}'")).await == 1
}

#[test]
fn a_leader_that_dies_at_any_step_of_a_draw_changes_no_rank() {
    run(async {
        let world = World::with(&[Api], QUICK).await;
        let sale = world.raffle("dies", |_, _| ()).await;
        let mut ids = Vec::new();
        for no in 0..9 {
            ids.push(world.entered(&sale, &format!("b{no}")).await.parse::<u64>().unwrap());
        }
        ids.sort_unstable();
        world.line_is_over(&sale).await;
        world.process("reconcile", "F82=return", QUICK).dies_at("F82").await;
        assert!(state(&world, &sale, "CLOSED").await);
        // Leaving a closed line changes no list.
        let left = world.entry_of(&sale, "b4").await.text("entry_id");
        assert_eq!(world.leave_line(&sale, "b4", &left).await.status, 204);
        assert_eq!(world.enter_line(&sale, "b4", 1).await.code(), "LINE_CLOSED");
        world.process("reconcile", "F83=return", QUICK).dies_at("F83").await;
        assert!(state(&world, &sale, "SEALED").await);
        let sealed = world.draw_once(&sale, "SEALED").await;
        let before = ranks(&sealed, &world.list_of(&sale).await);
        assert_eq!(before.ids(), ids);
        world.process("reconcile", "F84=return", QUICK).dies_at("F84").await;
        let drawn = world.draw_once(&sale, "DRAWN").await;
        for field in ["commitment", "seed", "digest", "entries", "sealed_at"] {
            assert_eq!(drawn.json[field], sealed.json[field], "{field}");
        }
        assert_eq!(ranks(&drawn, &world.list_of(&sale).await), before, "the same ranks");
        world.keep_lines().await;
        assert_eq!(world.draw_of(&sale).await.json, drawn.json, "and nothing more to do");
        world.finish().await;
    });
}

#[test]
fn two_leaders_at_once_draw_once() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.raffle("two", |_, _| ()).await;
        let ids: Vec<_> = [world.entered(&sale, "ann").await, world.entered(&sale, "bob").await].into();
        world.line_is_over(&sale).await;
        tokio::join!(world.keep_lines(), world.keep_lines(), world.keep_lines());
        let draw = world.draw_once(&sale, "DRAWN").await;
        assert_eq!((draw.json["entries"].as_u64(), ids.len()), (Some(2), 2));
        ranks(&draw, &world.list_of(&sale).await);
        world.finish().await;
    });
}
