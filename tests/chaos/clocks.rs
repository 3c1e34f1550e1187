//! Processes whose clocks are wrong (windows 23, 95): ages are measured in one server's clock, so nothing may change.

use crate::checker;
use crate::clients::final_status::SETTLE_MAX_MS;
use crate::clients::{Clients, Load, SaleSpec};
use crate::deployment::{Deployment, Options, PREFIX};
use crate::dump::{DumpUrls, dump_with_published, published};
use crate::process::RoleEnv;
use crate::sampler::Sampler;
use crate::time::{run_waiting, time_passes};
use crate::wrong_clock::offset_by;
use seckill::roles::Role;
use std::time::Duration;

fn hours(role: Role, offset: &str) -> Vec<RoleEnv> {
    let env = offset_by(offset);
    env.map(|(name, value)| RoleEnv { role, name: name.to_owned(), value, first_life_only: false }).to_vec()
}

#[test]
fn processes_whose_clocks_are_hours_off_change_nothing() {
    run_waiting(async {
        let offsets = [(Role::Relay, "+2h"), (Role::Consumer, "-3h"), (Role::Reconcile, "+5h")];
        let env = offsets.iter().flat_map(|(role, offset)| hours(*role, offset)).collect();
        let deployment = Deployment::start("clocks", Options { env, ..Options::default() }).await;
        let dir = deployment.dir().to_owned();
        published::listen(&deployment.urls().amqp, PREFIX).await;
        let sales = [("one-each", 200, Some(1)), ("any", 10_000, None)];
        let sales = sales.map(|(id, stock, limit)| SaleSpec { id: id.to_owned(), stock, limit, pay_within_s: None });
        for sale in &sales {
            deployment.create_sale(sale).await;
        }
        let load = Load {
            apis: deployment.api_urls(),
            sales: sales.into(),
            users: 500,
            rate_per_s: 60.0,
            seed: 1,
            secret: deployment.secret(),
            backend: None,
            settle_max_ms: SETTLE_MAX_MS,
        };
        let clients = Clients::start(load, &dir.join("history.jsonl"));
        let sampler = Sampler::start(&deployment.urls().mysql, &dir.join("samples.jsonl"));
        // Longer than the window: what a wrong clock takes for old is old by then.
        time_passes(8_000).await;
        let totals = clients.stop().await;
        deployment.drained(Duration::from_secs(30)).await.expect("nothing is open");
        sampler.stop().await;
        assert!(totals.accepted > 200, "{totals:?}");
        let reconciler = deployment.of(Role::Reconcile).next().expect("one");
        let metrics = reconciler.metrics().await.expect("metrics");
        let alarms = metrics.lines().filter(|line| line.starts_with("seckill_p5_reconcile_false_alarms_total{"));
        assert!(alarms.clone().all(|line| line.ends_with(" 0")), "{:?}", alarms.collect::<Vec<_>>());
        let compensated = "seckill_state_total{phase=\"p5_reconcile\",code=\"P5-COMP0\"} 0";
        assert!(metrics.contains(compensated), "nothing was taken for a leak");
        let urls = deployment.urls().clone();
        let urls = DumpUrls {
            redis: urls.redis,
            amqp: urls.amqp,
            mysql: urls.mysql,
            prefix: PREFIX.to_owned(),
            damaged: false,
        };
        dump_with_published(&urls, &dir).await;
        let verdict = checker::check_with_published(&dir);
        assert!(verdict.is_green(), "{:#?}", verdict.violations);
        deployment.finish().await;
    });
}
