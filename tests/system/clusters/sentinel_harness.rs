//! The private Redis with sentinels does what the tests on it rely on: all know one another, and it fails over.

use crate::support::processes::redis_sets::{Node, SentinelSet};
use crate::support::world::{eventually, run_waiting};

async fn has(node: &Node, wanted: &str) {
    eventually("the write is there", async || node.try_call(&["GET", "key"]).await.is_ok_and(|value| value == wanted))
        .await;
}

#[test]
fn a_killed_primary_is_replaced_with_all_it_had() {
    run_waiting(async {
        let set = SentinelSet::start(2, 3, &[]).await;
        assert!(set.url().starts_with(&format!("redis-sentinel://127.0.0.1:{}?node=", set.sentinels()[0].port())));
        assert!(set.url().ends_with("&sentinelServiceName=seckill"), "{}", set.url());
        let old = set.master().await;
        assert_eq!(old.port(), set.nodes()[0].port(), "the first is the primary");
        old.call(&["SET", "key", "kept"]).await;
        for node in set.nodes() {
            has(node, "kept").await;
        }

        old.kill().await;
        let new = set.failed_over(old).await;
        new.call(&["SET", "key", "changed"]).await;
        old.restart().await;
        set.whole().await;
        has(old, "changed").await;
    });
}

#[test]
fn a_primary_is_replaced_by_command_and_when_it_is_frozen() {
    run_waiting(async {
        let set = SentinelSet::start(2, 3, &["requirepass secret"]).await;
        let first = set.master().await;
        let second = set.fail_over().await;
        set.whole().await;
        assert_ne!(second.port(), first.port());

        set.sentinels()[0].kill().await;
        second.freeze().await;
        let third = set.failed_over(second).await;
        second.thaw().await;
        set.sentinels()[0].restart().await;
        set.whole().await;
        assert_eq!(set.master().await.port(), third.port());
    });
}
