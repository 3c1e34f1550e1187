//! Alerts about webhooks: a receiver that fails for long, deliveries that are dead, a receiver that is gone.

use crate::support::outside::hook_receiver::{ALL_EVENTS, HookReceiver, SECRET, webhook};
use crate::support::outside::prometheus::Prometheus;
use crate::support::world::{World, run_waiting};
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn receivers_that_fail_or_are_gone_are_reported() {
    run_waiting(async {
        let receiver = HookReceiver::start().await;
        receiver.answers("500 Internal Server Error", "");
        let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
        let world = World::with_config(&[Api, Relay, Consumer], &[], &text).await;
        let sale = world.sale("hooks", 10, Some(1)).await;
        let p5 = world.process("reconcile", "", &["webhook_delivery.retry_ms=600000"]);
        p5.until_metric(r#"seckill_p6_webhook_dead_count{webhook="shop"}"#, |count| count == 0.0).await;
        let tower = Prometheus::over("alerts-webhooks", &[&p5]).await;

        let late = tower.before("an event that waits for an hour", &["SeckillWebhookLate"]).await;
        world.ordered(&sale, "alice").await;
        world.sql("UPDATE webhook_deliveries SET created_at = NOW(3) - INTERVAL 1 HOUR").await;
        late.fires().await;

        // The second try is the last one.
        let dead = tower.before("tries that are spent", &["SeckillWebhookDead"]).await;
        world.sql("UPDATE webhook_deliveries SET next_at = NOW(3), attempts = 1").await;
        dead.fires().await;
        late.resolves().await;
        receiver.answers("200 OK", "");
        world.cli(&["webhook", "replay", "--dead"]).exits(0);
        dead.resolves().await;

        let gone = tower.before("a receiver that answers 410", &["SeckillWebhookDisabled"]).await;
        receiver.answers("410 Gone", "");
        world.ordered(&sale, "bob").await;
        gone.fires().await;
        world.finish().await;
    });
}
