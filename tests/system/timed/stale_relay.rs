//! A relay that slept through its own replacement wakes up and goes on where it was (windows 28 and 29).
//!
//! It is a process of its own, put to sleep by a fault point at exactly the line in question.

use crate::support::processes::programs::{Folder, Program, seckill};
use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::relay_state::{attempts, nothing_is_left, parked};
use crate::support::world::{QUICK, World, eventually, run_waiting};
use seckill::roles::Role::{Api, Consumer, Relay};

/// Short enough that the second relay takes over while the first one sleeps.
const SHORT_CLAIM: [&str; 2] = ["p3_relay.claim_idle_ms=1000", "p3_relay.confirm_timeout_ms=900"];

/// Once, for 6 s: the action of a fault point, not a wait of the test.
const ASLEEP: &str = concat!("1*sleep", "(6000)");

/// A relay process of this world, with these fault points and settings on top.
fn sleeper(folder: &Folder, world: &World, faults: &str, set: &[&str]) -> Program {
    let mut settings: Vec<String> = [&QUICK[..], &SHORT_CLAIM].concat().iter().map(|set| (*set).to_owned()).collect();
    settings.extend(world.own_sets());
    settings.extend(["admin.listen=127.0.0.1:0", "runtime.node=sleeper"].map(str::to_owned));
    settings.extend(set.iter().map(|set| (*set).to_owned()));
    let mut command = seckill(&["--role", "relay"]);
    command.args(settings.iter().flat_map(|set| ["--set", set]));
    command.env("FAILPOINTS", faults);
    Program::run(folder.path(), command)
}

#[test]
fn a_relay_that_slept_between_confirm_and_delete_does_no_harm_and_works_on() {
    run_waiting(async {
        for outbox in OUTBOX_KINDS {
            let folder = Folder::new("stale-confirm");
            let world = World::with(&[Api, Consumer], &[&SHORT_CLAIM[..], &[outbox]].concat()).await;
            let sale = world.sale("stale", 100, Some(1)).await;
            world.sell(&sale, 10).await;
            let mut stale = sleeper(&folder, &world, &format!("F7={ASLEEP}"), &[]);
            eventually("its confirms", async || world.orders(&sale).await == 10).await;
            let entries = world.entries_of(10).await;
            assert_eq!(world.outbox().await, (10, entries as u64), "it sleeps before it deletes");
            let awake = world.extra_roles(&[Relay], |settings| settings.runtime.node = "awake".into());
            nothing_is_left(&world).await;
            awake.stop().await;
            let last = world.bought(&sale, "last").await;
            eventually("the sleeper's own work", async || world.status_of(&sale, "last", last).await.0 == "CONFIRMED")
                .await;
            stale.must_run();
            nothing_is_left(&world).await;
            assert_eq!((world.orders(&sale).await, parked(&world).await), (11, 0));
            world.finish().await;
        }
    });
}

#[test]
fn a_relay_that_slept_before_parking_parks_nothing_that_another_one_has_finished() {
    run_waiting(async {
        for outbox in OUTBOX_KINDS {
            let folder = Folder::new("stale-park");
            let world = World::with(&[Api, Consumer], &[&SHORT_CLAIM[..], &[outbox]].concat()).await;
            let sale = world.sale("stale", 100, Some(1)).await;
            world.sell(&sale, 5).await;
            let entries = world.entries_of(5).await;
            let away = ["rabbitmq.url=amqp://guest:guest@127.0.0.1:1/%2f", "p3_relay.attempts_max=1"];
            let mut stale = sleeper(&folder, &world, &format!("F9={ASLEEP}"), &away);
            eventually("spent attempts", async || attempts(&world).await == vec![1; entries]).await;
            let awake = world.extra_roles(&[Relay], |settings| settings.runtime.node = "awake".into());
            eventually("all five, by the other one", async || world.orders(&sale).await == 5).await;
            nothing_is_left(&world).await;
            stale.until_logged("not parked: another relay has it by now").await;
            stale.kill();
            nothing_is_left(&world).await;
            assert_eq!((world.orders(&sale).await, parked(&world).await), (5, 0));
            awake.stop().await;
            world.finish().await;
        }
    });
}
