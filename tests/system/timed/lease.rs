//! A leader keeps its lease while a single audit takes longer than the lease lasts (window 93).

use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role::Api;
use seckill::store::mysql::leader::LEASE_S;

#[test]
fn an_audit_that_outlasts_the_lease_costs_no_leadership() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("long", 10, None).await;
        world.bought(&sale, "alice").await;
        // One audit takes a third longer than the lease.
        let mut one = world.process("reconcile", "slow_audit=1*return(20000)", &[]);
        one.program.until_logged("this process leads").await;
        let mut two = world.process("reconcile", "", &["p5_reconcile.interval_ms=300"]);
        two.program.until_logged("role starts").await;

        let slow = format!("TIMESTAMPDIFF(SECOND, started_at, ended_at) >= {LEASE_S}");
        eventually("an audit longer than the lease", async || {
            assert!(!two.program.stderr().contains("this process leads"), "two lead: {}", two.program.stderr());
            one.program.must_run();
            world.rows("audit_runs", &slow).await > 0
        })
        .await;
        assert!(!one.program.stderr().contains("leadership lost"), "{}", one.program.stderr());

        // No process keeps it for a leader that is gone.
        one.program.kill();
        two.program.until_logged("this process leads").await;
        world.finish().await;
    });
}
