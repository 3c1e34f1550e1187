//! The host of a consumer that has a sale's stock row in hand is frozen or gone: no packet reaches the database. The server ends
//! the session by itself, and the sale's orders land with another consumer.

use crate::support::basics::database_kind::connection_ids;
use crate::support::world::database_sessions::{Session, drained, lands};
use crate::support::world::parts::mysql_store::{fresh, url};
use crate::support::world::{World, eventually, run};
use diesel_async::{AsyncConnection, AsyncMysqlConnection};
use seckill::roles::Role::{Api, Consumer, Relay};

/// Stops and continues a process, as a host does that is frozen and comes back.
fn signal(pid: u32, signal: i32) {
    // SAFETY: no memory is involved; the process is a child of this one.
    assert_eq!(unsafe { libc::kill(pid.try_into().expect("a pid"), signal) }, 0);
}

#[test]
fn a_frozen_consumer_gives_the_stock_row_back() {
    run(async {
        let world = World::with(&[Api, Relay], &["p4_persist.attempts_max=100"]).await;
        seckill::store::rabbit::declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("frozen", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        // It rests between UPDATE sales and COMMIT for a moment, and is frozen there.
        let frozen = world.process("consumer", "F14=1*delay(5000)", &[]);
        let mut other = Session::open(&world).await;
        eventually("the stock row in its hand", async || {
            other.try_run("SELECT stock FROM sales WHERE sale_id = 'frozen' FOR UPDATE NOWAIT").await.is_err()
        })
        .await;
        signal(frozen.program.pid(), libc::SIGSTOP);
        let second = world.extra_roles(&[Consumer], |_| {});
        let bob = world.bought(&sale, "bob").await;
        lands(&world, &sale, "bob", bob).await;
        lands(&world, &sale, "alice", alice).await;
        // Back again: its session is gone, so what it had in hand is not committed twice.
        signal(frozen.program.pid(), libc::SIGCONT);
        let carol = world.bought(&sale, "carol").await;
        lands(&world, &sale, "carol", carol).await;
        eventually("a healthy process", async || frozen.is_alive().await).await;
        frozen.kill();
        assert_eq!(world.orders(&sale).await, 3);
        second.stop().await;
        drained(world).await;
    });
}

#[test]
fn idle_sessions_are_closed_before_the_server_does_it_and_cost_no_call() {
    run(async {
        let db = fresh("idle").await;
        let mut other = AsyncMysqlConnection::establish(&url("idle").await).await.unwrap();
        for _ in 0..2 {
            db.ping().await.unwrap();
            eventually("no idle session", async || {
                connection_ids(&mut other, "db = 'store_idle' AND id <> CONNECTION_ID()").await.is_empty()
            })
            .await;
        }
        db.ping().await.unwrap();
    });
}
