//! One reconciler leads; another takes over when it dies and when it stands still (windows 93, 94).

use crate::support::processes::programs::{Folder, Program, signal};
use crate::support::world::{World, eventually, run_waiting, time_passes};
use seckill::domain::ids::RequestId;
use seckill::roles::Role::Api;

/// What a process logs that reconciles from now on; another one may lead the expiry of orders.
const LEADS: &str = "this process leads work=Reconcile";

/// The connection that holds the leader's lock, 0 for none.
async fn leader(world: &World) -> i64 {
    let lock = "CONCAT('seckill.', LEFT(SHA2(CONCAT(DATABASE(), '.', 'reconcile'), 256), 40))";
    world.number(&format!("SELECT CAST(COALESCE(IS_USED_LOCK({lock}), 0) AS SIGNED) AS n")).await
}

fn reconciler(world: &World, folder: &Folder) -> Program {
    let mut args = world.sets();
    args.truncate(args.len() - 2);
    args.extend(["--set", "admin.listen=127.0.0.1:0", "--role", "reconcile"].map(str::to_owned));
    Program::start(folder.path(), &args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A leak that only a working reconciler repairs.
async fn leak_is_repaired(world: &World, user: &str) {
    let sale = seckill::domain::ids::SaleId::parse("led").unwrap();
    let id: RequestId = world.bought(&sale, user).await;
    world.lose_the_outbox().await;
    eventually("the leak is repaired", async || world.status_of(&sale, user, id).await.0 == "CONFIRMED").await;
}

#[test]
fn a_dead_and_a_frozen_leader_are_followed_by_another() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        world.sale("led", 10, Some(1)).await;
        let folder = Folder::new("leaders");
        let mut one = reconciler(&world, &folder);
        one.until_logged(LEADS).await;
        let first = leader(&world).await;
        let mut two = reconciler(&world, &folder);
        two.until_logged("role starts").await;
        // The one that leads goes on leading, run after run.
        time_passes(4_000).await;
        assert_eq!(leader(&world).await, first);
        assert!(!two.stderr().contains(LEADS));
        leak_is_repaired(&world, "alice").await;

        // Killed: its connection dies with it.
        one.kill();
        two.until_logged(LEADS).await;
        let second = leader(&world).await;
        assert!(second != 0 && second != first);
        leak_is_repaired(&world, "bob").await;

        // Frozen: the connection stays, the lease does not.
        let mut three = reconciler(&world, &folder);
        three.until_logged("role starts").await;
        signal(two.pid(), libc::SIGSTOP);
        three.until_logged(LEADS).await;
        leak_is_repaired(&world, "carol").await;
        signal(two.pid(), libc::SIGCONT);
        two.until_logged("leadership lost, its connection is gone work=Reconcile").await;

        // Its connection killed by the server: it or the other one leads again.
        let third = leader(&world).await;
        world.sql(&format!("KILL {third}")).await;
        eventually("someone leads", async || ![0, third].contains(&leader(&world).await)).await;
        leak_is_repaired(&world, "dave").await;
        world.finish().await;
    });
}
