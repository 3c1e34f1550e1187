//! The line of a sale: what keeps clicks out while somebody waits, and what gives each unit once.

use crate::harms_without;
use crate::scene::{PIPELINE, QUICK};
use crate::support::world::parts::reserve_model::Ask;
use crate::support::world::parts::script_model::reserve;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, scene::ROUNDS_MS};
use seckill::domain::line::LineKind;
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::Sale;
use seckill::faults::Mechanism;
use seckill::roles::Role::{Api, Reconcile, Relay};

/// The failpoints of a process that plays a scene, with one more.
fn failpoints(plays: Plays, mechanism: Mechanism, more: &str) -> String {
    match plays {
        Plays::With => more.to_owned(),
        Plays::Without => format!("{}=return;{more}", mechanism.code()),
    }
}

#[test]
fn a_click_gets_a_unit_of_the_line_when_the_script_has_no_door_for_it() {
    harms_without(Mechanism::DoorOfLine, async |_| {
        let world = World::with(&PIPELINE, QUICK).await;
        let sale = world.line_sale("raffle", 1, LineKind::Raffle, |_| ()).await;
        // A process that knows an older sale asks the script.
        let click = Ask { id: 1, user: 0, quantity: 1 };
        let answer = reserve(&world.servers.redis, &sale, 1, &[click]).await;
        world.stop().await;
        if answer == [Reserved::OnlyByLine] { Vec::new() } else { vec![format!("a click: {answer:?}")] }
    });
}

#[test]
fn a_process_that_slept_opens_the_door_when_terms_have_no_age() {
    harms_without(Mechanism::TermsReadLater, async |_| {
        let world = World::with(&[Api], QUICK).await;
        let sale = world.line_sale("slept", 1, LineKind::Waitlist, |_| ()).await;
        let keys = &world.servers.redis.sale_keys;
        let (read_at, read) = (keys.clock(0).await.unwrap(), world.stored(&sale).await);
        world.sql("UPDATE sales SET by_line = 1, version = version + 1").await;
        keys.set_terms(&world.stored(&sale).await, 0).await.unwrap();
        keys.set_terms_read_at(&read, 0, read_at).await.unwrap();
        let door = world.redis(&["HGET", &world.servers.redis.keys.meta(0, &sale), "door"]).await;
        world.stop().await;
        if door.as_str() == Some("line") { Vec::new() } else { vec![format!("the door is {door:?}")] }
    });
}

#[test]
fn a_click_is_before_who_waits_when_a_waiting_list_opens_before_its_door_is_shut() {
    harms_without(Mechanism::DoorBeforeLine, async |plays| {
        let world = World::with(&PIPELINE, QUICK).await;
        let sale = world.line_sale("list", 1, LineKind::Waitlist, |_| ()).await;
        world.ordered(&sale, "one").await;
        let dies = world.start_armed(&failpoints(plays, Mechanism::DoorBeforeLine, "F90=return"), "reconcile").await;
        dies.dies_at("F90").await;
        let waits = world.enter_line(&sale, "ann", 1).await.status == 201;
        // A unit comes back.
        assert!(world.servers.rows.grants.top_up(&sale, "more", 1).await.unwrap());
        assert!(world.sale_control().give_one(&sale, "more").await.unwrap());
        let click = Ask { id: 1, user: 0, quantity: 1 };
        let got = reserve(&world.servers.redis, &sale, 1, &[click]).await == [Reserved::Accepted];
        world.stop().await;
        if waits && got { vec!["ann waits, and a click got the unit".to_owned()] } else { Vec::new() }
    });
}

/// Whether clicks get the units of a line while an offer of it has no outcome.
async fn opened_beside_an_offer(id: &str) -> Vec<String> {
    let world = World::with(&[Api, Relay, Reconcile], QUICK).await;
    let sale = world.line_sale(id, 2, LineKind::Raffle, |_| ()).await;
    world.drawn(&sale, &["ann"]).await;
    eventually("an offer", async || world.entry_is(&sale, "ann", "OFFERED").await).await;
    // P5 may write the order meanwhile: then the door may open.
    let early = "by_line = 0 AND NOT EXISTS (SELECT 1 FROM request_outcome)";
    let mut opened = false;
    for _ in 0..ROUNDS_MS / 20 {
        opened |= world.rows("sales", early).await == 1;
        time_passes(20).await;
    }
    world.stop().await;
    if opened { vec!["the door is open, and an offer has no outcome".to_owned()] } else { Vec::new() }
}

#[test]
fn clicks_get_the_units_of_an_offer_without_an_outcome_when_no_entry_is_counted() {
    harms_without(Mechanism::NoEntryWaits, async |_| opened_beside_an_offer("early").await);
}

#[test]
fn clicks_get_the_units_of_an_offer_without_an_outcome_when_only_waiting_entries_are_counted() {
    harms_without(Mechanism::ForgottenWaits, async |_| opened_beside_an_offer("offered").await);
}

#[test]
fn who_left_gets_an_order_when_an_entry_in_hand_may_leave() {
    harms_without(Mechanism::InHandStays, async |plays| {
        let world = World::with(&PIPELINE, QUICK).await;
        let sale = world.line_sale("left", 1, LineKind::Raffle, |_| ()).await;
        let entry = world.entered(&sale, "ann").await;
        world.line_is_over(&sale).await;
        // P2 has accepted, and nothing is recorded.
        let dies = world.start_armed(&failpoints(plays, Mechanism::InHandStays, "F87=return"), "reconcile").await;
        dies.dies_at("F87").await;
        let left = world.leave_line(&sale, "ann", &entry).await.status == 204;
        world.settled(&sale).await;
        let orders = world.orders(&sale).await;
        world.stop().await;
        if left && orders == 1 { vec!["ann has left, and has an order".to_owned()] } else { Vec::new() }
    });
}

#[test]
fn an_entry_gets_two_orders_when_its_request_is_not_written_first() {
    harms_without(Mechanism::OfferRequestFirst, async |plays| {
        let world = World::with(&PIPELINE, QUICK).await;
        let unlimited = |sale: &mut Sale| sale.policy = PurchasePolicy::Unlimited;
        let sale = world.line_sale("twice", 3, LineKind::Raffle, unlimited).await;
        world.entered(&sale, "ann").await;
        world.line_is_over(&sale).await;
        let dies = world.start_armed(&failpoints(plays, Mechanism::OfferRequestFirst, "F87=return"), "reconcile").await;
        dies.dies_at("F87").await;
        let goes_on = world.start_armed(&failpoints(plays, Mechanism::OfferRequestFirst, ""), "reconcile").await;
        eventually("offered", async || world.entry_is(&sale, "ann", "OFFERED").await).await;
        eventually("the end", async || world.outbox().await == (0, 0)).await;
        goes_on.kill();
        world.settled(&sale).await;
        let orders = world.orders(&sale).await;
        world.stop().await;
        if orders == 1 { Vec::new() } else { vec![format!("one entry, {orders} orders")] }
    });
}
