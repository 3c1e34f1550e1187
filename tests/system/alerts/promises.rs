//! Alerts about promises, fired by what they are about: damage done by hand to Redis and to the tables, settings that lose
//! accepts, no process that repairs.

use crate::support::outside::prometheus::Prometheus;
use crate::support::processes::killable::KillableProcess;
use crate::support::processes::own_redis;
use crate::support::processes::programs::signal;
use crate::support::world::{World, run_waiting, time_passes};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::p5_reconcile::{Window, compensate};
use seckill::roles::Role::Api;
use seckill::store::rabbit::declare;

/// Makes an accepted request seem to have been accepted ten minutes ago.
async fn backdate(world: &World, sale: &SaleId, id: RequestId) {
    let ledger = world.servers.redis.keys.ledger(0, sale);
    let record = world.redis(&["HGET", &ledger, &id.to_string()]).await;
    let mut fields: Vec<String> = record.as_str().unwrap().splitn(7, ' ').map(str::to_owned).collect();
    fields[4] = (fields[4].parse::<i64>().unwrap() - 600_000).to_string();
    world.redis(&["HSET", &ledger, &id.to_string(), &fields.join(" ")]).await;
}

fn reconciler(world: &World) -> KillableProcess {
    let set = ["p5_reconcile.compensate=manual", "p5_reconcile.interval_ms=300", "p5_reconcile.quiet_ms=8000"];
    world.process("reconcile", "", &set)
}

/// A sale that Redis has sold one of, and that the database does not know any more.
async fn sold_and_forgotten(world: &World) -> SaleId {
    let gone = world.sale("gone", 10, None).await;
    world.bought(&gone, "alice").await;
    world.lose_the_outbox().await;
    for table in ["stock_flow", "stock_grants", "sales"] {
        world.sql(&format!("DELETE FROM {table} WHERE sale_id = 'gone'")).await;
    }
    gone
}

#[test]
fn damage_to_redis_and_to_the_tables_is_paged() {
    run_waiting(async {
        let redis = own_redis::start("alerts-redis").await;
        let mut world = World::on_redis(&redis.url(), "alerts-damage", &[], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("damaged", 100, None).await;
        let (api, p5) = (world.api_process(&[]).await, reconciler(&world));
        let tower = Prometheus::over("alerts-damage", &[&api, &p5]).await;

        let unsafe_now = tower.before("appendfsync set to everysec", &["SeckillUnsafeSetting"]).await;
        world.config_set("appendfsync", "everysec").await;
        unsafe_now.fires().await;
        world.config_set("appendfsync", "always").await;
        unsafe_now.resolves().await;

        let lost = ["SeckillLeak", "SeckillUnresolvedTooOld"].as_slice();
        let lost = tower.before("an outbox entry deleted, compensation by hand", lost).await;
        let alice = world.bought(&sale, "alice").await;
        world.lose_the_outbox().await;
        backdate(&world, &sale, alice).await;
        lost.fires().await;
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(compensate(&world.reconcile_context(), &audit).await.unwrap(), 1);
        lost.resolves().await;

        let lost = tower.before("a ledger record overwritten by hand", &["SeckillKeysLost"]).await;
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        let record = world.redis(&["HGET", &ledger, &alice.to_string()]).await;
        world.redis(&["HSET", &ledger, &alice.to_string(), "what is this"]).await;
        lost.fires().await;
        world.redis(&["HSET", &ledger, &alice.to_string(), record.as_str().unwrap()]).await;
        lost.resolves().await;

        let unknown = tower.before("the row of a sale that sold is deleted", &["SeckillSaleUnknown"]).await;
        let gone = sold_and_forgotten(&world).await;
        unknown.fires().await;
        world.redis(&["UNLINK", &world.servers.redis.keys.meta(0, &gone)]).await;
        unknown.resolves().await;

        // Something that the audit cannot even read.
        let unread = tower.before("a ledger overwritten by hand", &["SeckillUnreconciled"]).await;
        world.redis(&["RENAME", &ledger, "away"]).await;
        world.redis(&["SET", &ledger, "what is this"]).await;
        unread.fires().await;
        world.redis(&["RENAME", "away", &ledger]).await;
        unread.resolves().await;

        let wrong = tower.before("an order written by hand", &["SeckillOverSell", "SeckillUnbalanced"]).await;
        world
            .sql(
                "INSERT INTO orders (request_id, sale_id, user_id, quantity, amount_cents, source, accepted_at) \
                 VALUES (7, 'damaged', 'z', 500, 800, 'replay', UTC_TIMESTAMP(3))",
            )
            .await;
        wrong.fires().await;
        world.sql("DELETE FROM orders WHERE request_id = 7").await;
        wrong.resolves().await;

        let idle = ["SeckillNobodyReconciles", "SeckillProcessDown"].as_slice();
        let idle = tower.before("the only reconciler killed", idle).await;
        drop(p5);
        idle.fires().await;
        let p5 = reconciler(&world);
        tower.scrape(&[&api, &p5]).await;
        idle.resolves().await;
        world.finish().await;
    });
}

/// What was damaged while everything stood still is found before anybody scrapes: no counter is seen to rise.
#[test]
fn a_redis_that_was_rewound_while_everything_stood_still_is_paged() {
    run_waiting(async {
        let redis = own_redis::start("alerts-rewound-redis").await;
        let mut world = World::on_redis(&redis.url(), "alerts-rewound", &[], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("rewound", 100, None).await;
        let api = world.api_process(&[]).await;
        world.bought(&sale, "alice").await;
        world.lose_the_outbox().await;
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(compensate(&world.reconcile_context(), &audit).await.unwrap(), 1);
        let tower = Prometheus::over("alerts-rewound", &[&api]).await;
        drop(api);

        let rewound = ["SeckillSaleFrozen", "SeckillOrphan"].as_slice();
        let rewound = tower.before("redis rewound while everything stood still", rewound).await;
        let keys = world.servers.redis.keys.clone();
        world.redis(&["HSET", &keys.meta(0, &sale), "number", "0"]).await;
        world.redis(&["SCRIPT", "FLUSH"]).await;
        let api = world.api_process(&[]).await;
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 423);
        let p5 = reconciler(&world);
        p5.until_metric("seckill_p5_reconcile_oldest_unresolved_seconds", |_| true).await;
        tower.scrape(&[&api, &p5]).await;
        rewound.fires().await;
        // The reconciler rebuilds the sale; that it was frozen is reported for a quarter of an hour.
        rewound.resolves().await;
        world.finish().await;
    });
}

#[test]
fn a_window_shorter_than_the_pipeline_takes_is_reported() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("hasty", 100_000, None).await;
        let hasty = ["p3_relay.confirm_timeout_ms=10", "p3_relay.claim_idle_ms=11", "p5_reconcile.window_ms=11"];
        // By hand: else the reconciler lands first what it takes for lost, and never learns that it was not.
        let set = [hasty.as_slice(), &["p5_reconcile.interval_ms=10", "p5_reconcile.compensate=manual"]].concat();
        let relay = world.process("relay", "", &[]);
        let (consumer, p5) = (world.process("consumer", "", &[]), world.process("reconcile", "", &set));
        let tower = Prometheus::over("alerts-hasty", &[&relay, &consumer, &p5]).await;
        let hasty = tower.before("a window of 11 ms and a consumer that stumbles", &["SeckillFalseAlarms"]).await;
        let selling = async {
            for n in 0u64.. {
                world.bought(&sale, &format!("buyer-{n}")).await;
            }
        };
        // An entry of the first read is persisted at the second, when the consumer goes on between the two.
        let stumbling = async {
            loop {
                signal(consumer.program.pid(), libc::SIGSTOP);
                time_passes(700).await;
                signal(consumer.program.pid(), libc::SIGCONT);
                time_passes(300).await;
            }
        };
        let harm = async {
            tokio::select! {
                () = selling => {}
                () = stumbling => {}
            }
        };
        hasty.fires_during(harm).await;
        signal(consumer.program.pid(), libc::SIGCONT);
        world.finish().await;
    });
}
