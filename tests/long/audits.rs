//! Every audit beside a crowd is consistent, for longer than anything that an audit remembers is young: the journal's minute, P5's
//! window, the scans of four windows, a hundred audits. `MINUTES` is how long (3), `RATE` how many purchases a second of each sale (60).

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, run_waiting};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::order_life::PaymentTerms;
use seckill::p5_reconcile::{SaleAudit, Window};
use seckill::roles::Role;
use seckill_bench::loadgen::{self, LoadPlan, OnLoadProgress};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Longer than a request is on its way, however busy the machine is: no audit takes one for lost.
const WINDOW: Window = Window::Ms(60_000);
/// Fewer units than there are buyers: most are sold again and again, after their orders expired.
const SCARCE: i64 = 400;
const SOON: PaymentTerms = PaymentTerms { pay_within_s: 3, pay_grace_s: 0, limit_returns: false };

fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a whole number"))
}

/// A crowd that buys at a steady rate until the time is over.
async fn crowd(world: &World, sale: &SaleId, until: Instant) -> u64 {
    let rate_per_s = asked("RATE", 60);
    let accepted = Arc::new(AtomicU64::new(0));
    let plan = world.crowd(sale, 100_000);
    let (shown, stop) = (accepted.clone(), plan.stop.clone());
    let progress: OnLoadProgress = Arc::new(move |progress| {
        shown.store(progress.accepted, Relaxed);
        if Instant::now() > until {
            stop.stop();
        }
    });
    let plan = LoadPlan {
        connections: 8,
        requests_per_buyer: 100,
        rate_per_s: Some(rate_per_s as f64),
        progress: Some(progress),
        ..plan
    };
    loadgen::run(plan).await.expect("a crowd");
    accepted.load(Relaxed)
}

/// Pays every third order of the sale that waits for its money.
async fn payer(world: &World, sale: &SaleId, over: &AtomicBool) -> u64 {
    let admin = world.admin_port();
    let (mut paid, mut after) = (0, 0);
    while !over.load(Relaxed) {
        let next = format!(
            "SELECT CAST(COALESCE(MIN(request_id), 0) AS SIGNED) AS n FROM orders WHERE sale_id = '{sale}' AND state = 'UNPAID' AND request_id > {after}"
        );
        let id = world.number(&next).await;
        if id > 0 && id % 3 == 0 {
            let request_id = RequestId::new(id.unsigned_abs()).expect("a request id");
            let answer = admin.pay(request_id, &format!("pay-{id}")).await;
            paid += u64::from(answer.status == 200);
        }
        after = if id == 0 { after } else { id };
        crate::support::world::pause().await;
    }
    paid
}

/// Audits both sales in turn, without a second reading: none may be wrong.
async fn auditor(world: &World, sales: &[SaleId], over: &AtomicBool) -> (u64, Vec<SaleAudit>) {
    let (mut audits, mut wrong) = (0, Vec::new());
    while !over.load(Relaxed) {
        for sale in sales {
            let audit = world.audit(sale, WINDOW).await;
            audits += 1;
            if !audit.consistent() && wrong.len() < 3 {
                wrong.push(audit);
            }
        }
    }
    (audits, wrong)
}

#[test]
fn every_audit_beside_a_plain_sale_and_one_whose_orders_expire_is_consistent() {
    run_waiting(async {
        let set = ["p5_reconcile.interval_ms=500", "p5_reconcile.window_ms=20000", "p1_entry.cache_ttl_ms=100"];
        let world = World::with(&Role::ALL, &set).await;
        let plain = world.sale("plain", 1_000_000, None).await;
        let scarce = world.paying_sale("scarce", SCARCE, None, SOON).await;
        let paying = world.paying_sale("paying", 1_000_000, None, LONG).await;
        let sales = [plain, scarce, paying];
        let until = Instant::now() + Duration::from_secs(60 * asked("MINUTES", 3));
        let over = AtomicBool::new(false);
        let selling = async {
            let accepted = tokio::join!(
                crowd(&world, &sales[0], until),
                crowd(&world, &sales[1], until),
                crowd(&world, &sales[2], until),
            );
            over.store(true, Relaxed);
            accepted
        };
        let (accepted, paid, (audits, wrong)) =
            tokio::join!(selling, payer(&world, &sales[2], &over), auditor(&world, &sales, &over));
        let expired = world.rows("orders", "state = 'EXPIRED'").await;
        eprintln!("accepted {accepted:?}, paid {paid}, expired {expired}, {audits} audits");
        assert!(wrong.is_empty(), "{} of {audits} audits: {wrong:#?}", wrong.len());
        assert!(audits > 20 && accepted.0 > 1_000 && accepted.1 > 1_000 && paid > 100 && expired > 1_000);
        // P5's own rounds, which remember what they have counted.
        assert_eq!(world.rows("audit_findings", "code <> 'P5-RC1'").await, 0);
        world.finish().await;
    });
}
