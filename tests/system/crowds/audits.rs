//! Audits while a crowd buys: traffic raises no false alarm (window 87).

use crate::support::world::{World, eventually, pause, run_waiting};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::{AuditOptions, ReconcileContext, SaleAudit, Window, audit_sale};
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::sales::rows::SaleRows;
use seckill_bench::loadgen;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Audits one sale again and again; how often it read, and how many findings there were.
async fn audits(
    (context, sales): (ReconcileContext, SaleRows),
    sale: SaleId,
    until: tokio::task::AbortHandle,
) -> (u32, Vec<SaleAudit>) {
    let (mut rounds, mut wrong) = (0, Vec::new());
    while !until.is_finished() {
        let row = sales.get(&sale).await.unwrap().unwrap();
        let confirmed = AuditOptions::from(Window::Ms(5_000)).confirmed();
        let audit = audit_sale(&context, &row, confirmed).await.unwrap();
        rounds += 1;
        if !audit.findings.is_empty() || audit.false_alarms > 0 {
            wrong.push(audit);
        }
    }
    (rounds, wrong)
}

#[test]
fn audits_as_fast_as_they_can_raise_no_false_alarm_while_a_crowd_buys() {
    run_waiting(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("alarms", 20_000, None).await;
        let watched = world.busy_reconciler(&["p5_reconcile.interval_ms=10"]);
        let plan = loadgen::LoadPlan { requests_per_buyer: 3, rate_per_s: Some(1_200.0), ..world.crowd(&sale, 1_200) };
        let selling = tokio::spawn(loadgen::run(plan));
        let handle = selling.abort_handle();
        let rounds = [0; 3].map(|_| {
            tokio::spawn(audits(
                (world.reconcile_context(), world.servers.rows.sales.clone()),
                sale.clone(),
                handle.clone(),
            ))
        });
        for running in rounds {
            let (rounds, wrong) = running.await.unwrap();
            assert!(wrong.is_empty(), "{wrong:#?}");
            assert!(rounds >= 3, "{rounds}");
        }
        assert_eq!(selling.await.unwrap().unwrap().accepted, 3_600);
        let alarms = "seckill_p5_reconcile_false_alarms_total{sale=\"alarms\"}";
        eventually("the reconciler audits", async || watched.metric(alarms).await.is_some()).await;
        assert_eq!(watched.metric(alarms).await, Some(0.0));
        assert_eq!(watched.p5_state("P5-RC1").await, 0.0);
        world.finish().await;
    });
}

#[test]
fn there_is_no_false_alarm_while_traffic_runs() {
    run_waiting(async {
        let world = World::start().await;
        let sale = world.sale("busy", 20_000, None).await;
        let selling = tokio::spawn(loadgen::run(loadgen::LoadPlan {
            requests_per_buyer: 3,
            rate_per_s: Some(1_500.0),
            ..world.crowd(&sale, 1_500)
        }));
        let mut seen = BTreeSet::new();
        while !selling.is_finished() {
            let audit = world.audit(&sale, Window::Ms(5_000)).await;
            assert!(audit.consistent(), "{audit:#?}");
            seen.insert(audit.counted.accepted);
            let next = Instant::now() + Duration::from_millis(50);
            while Instant::now() < next {
                pause().await;
            }
        }
        assert!(seen.len() >= 5, "too few audits while it sold: {seen:?}");
        assert_eq!(selling.await.unwrap().unwrap().accepted, 4_500);
        world.finish().await;
    });
}
