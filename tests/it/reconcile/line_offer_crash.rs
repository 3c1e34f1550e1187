//! Leaders that die at each line of an offer and of the door: each unit is offered once, to the next rank, and to no click.

use super::line_offers::{QUICK, no_click};
use crate::support::world::{World, eventually, run};
use seckill::domain::line::LineKind;
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn a_leader_that_dies_at_any_line_of_an_offer_makes_it_once() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], QUICK).await;
        for point in ["F85", "F86", "F87", "F88", "F89"] {
            let sale = world.line_sale(&format!("dies-{point}"), 1, LineKind::Raffle, |_| ()).await;
            for buyer in ["ann", "bob", "cat"] {
                world.entered(&sale, buyer).await;
            }
            world.line_is_over(&sale).await;
            let dies = world.start_armed(&format!("{point}=return"), "reconcile").await;
            dies.dies_at(point).await;
            no_click(&world, &sale, "eager").await;
            let goes_on = world.start_armed("", "reconcile").await;
            let offered = format!("sale_id = '{sale}' AND state = 'OFFERED'");
            eventually("one offer", async || world.rows("line_entries", &offered).await == 1).await;
            eventually("one order", async || world.orders(&sale).await == 1).await;
            let of_entry = format!(
                "{offered} AND entry_rank = 1 AND request_id = (SELECT request_id FROM orders WHERE sale_id = '{sale}')"
            );
            assert_eq!(world.rows("line_entries", &of_entry).await, 1, "{point}");
            no_click(&world, &sale, "eager").await;
            let events = format!("event_key = 'line.offered' AND body LIKE '%{sale}%'");
            assert!(world.rows("order_events", &events).await <= 1, "{point}");
            goes_on.kill();
            assert!(world.settled(&sale).await.consistent(), "{point}");
            // Its line is done with for the next point.
            world.sql(&format!("UPDATE sale_lines SET state = 'DONE' WHERE sale_id = '{sale}'")).await;
        }
        world.finish().await;
    });
}

#[test]
fn a_leader_that_dies_while_it_moves_the_door_lets_in_no_click_while_somebody_waits() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], QUICK).await;
        for point in ["F90", "F91", "F92"] {
            let sale = world.line_sale(&format!("door-{point}"), 1, LineKind::Waitlist, |_| ()).await;
            let one = world.ordered(&sale, "one").await;
            let dies = world.start_armed(&format!("{point}=return"), "reconcile").await;
            if point == "F92" {
                // No entry waits: the door opens when the unit comes back.
                eventually("open", async || world.rows("sale_lines", "state = 'OPEN'").await == 1).await;
                world.cancel_mine("one", one).await;
            }
            dies.dies_at(point).await;
            let goes_on = world.start_armed("", "reconcile").await;
            if point == "F92" {
                eventually("a click", async || world.buy(&sale, "eager", 1, None).await.status == 202).await;
            } else {
                world.joined(&sale, "ann").await;
                no_click(&world, &sale, "eager").await;
                world.cancel_mine("one", one).await;
                world.offered(&sale, "ann").await;
                no_click(&world, &sale, "eager").await;
            }
            goes_on.kill();
            assert!(world.settled(&sale).await.consistent(), "{point}");
            world.sql(&format!("UPDATE sale_lines SET state = 'DONE' WHERE sale_id = '{sale}'")).await;
        }
        world.finish().await;
    });
}
