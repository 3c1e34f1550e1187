//! One reconciler leads; another takes over when it dies and when it stands still (windows 93, 94). And one api process warms sales up.

use crate::support::processes::programs::{Folder, Program, signal};
use crate::support::world::{World, eventually, run_waiting, time_passes};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::sale::MetaState;
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

/// What an api process logs that warms sales up from now on.
const WARMS: &str = "this process leads work=WarmUp";

#[test]
fn drafts_and_unfinished_warm_ups_outlive_the_process_that_warms_sales_up() {
    run_waiting(async {
        let world = World::with(&[], &[]).await;
        let mut one = world.process("api", "", &[]);
        one.program.until_logged(WARMS).await;
        let mut two = world.process("api", "", &[]);
        two.serves_buyers().await;
        let is_open = async |sale: &SaleId| {
            let meta = world.servers.redis.sale_keys.meta(sale, 0).await.unwrap();
            meta.is_some_and(|meta| meta.state == MetaState::Open)
        };
        let first = world.draft("by-the-first", 5, |_| {}).await;
        eventually("the leader warms a draft", async || is_open(&first).await).await;
        // More than a try of the other one to lead.
        time_passes(3_000).await;
        assert!(!two.program.stderr().contains(WARMS), "one is enough: {}", two.program.stderr());

        one.program.kill();
        // As a warm-up leaves it that died before its last step.
        let half = world.servers.redis.keys.meta(0, &first);
        world.redis(&["HSET", &half, "state", "loaded"]).await;
        let second = world.draft("by-the-second", 5, |_| {}).await;
        two.program.until_logged(WARMS).await;
        eventually("the other one warms a draft", async || is_open(&second).await).await;
        eventually("it finishes a warm-up", async || is_open(&first).await).await;

        // Redis has another end: a change whose process died.
        world.redis(&["HSET", &half, "ends", "1"]).await;
        let ends = world.stored(&first).await.ends_at_ms.to_string();
        eventually("the end of the database", async || world.redis(&["HGET", &half, "ends"]).await == ends).await;
        world.finish().await;
    });
}
