//! The store for MySQL/MariaDB where time is the subject: calls that are dropped, locks that are waited for, a leader that goes.

use crate::support::world::parts::mysql_store::{
    NOW_MS, assert_sound, crowd, fresh, rows, sale, sale_id, url, verdicts, verdicts_when_unlocked,
};
use crate::support::world::run;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::ids::RequestId;
use seckill::domain::outcome::{Outcome, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::p5_reconcile::rows::findings as audit;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::mysql::{DbError, leader};
use std::time::{Duration, Instant};

#[test]
fn dropped_calls_never_lead_to_wrong_answers() {
    run(async {
        let db = fresh("dropped").await;
        rows(&db).sales.create(&sale("s", 100_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let landed = crowd("s", 1..=500);
        verdicts(&db, &landed).await;
        let asker = {
            let db = db.clone();
            tokio::spawn(async move {
                let mut asked = 0u32;
                for round in 0..20_000u64 {
                    let rid = RequestId::new(round % 500 + 1).unwrap();
                    let answer = rows(&db).requests.outcome_of(rid).await.unwrap().unwrap();
                    assert_eq!((answer.request_id, answer.number), (rid, Some(rid.get())));
                    asked += 1;
                    if asked >= 3_000 {
                        break;
                    }
                }
            })
        };
        for n in 0..200u64 {
            let db = db.clone();
            let mut task = tokio::spawn(async move {
                loop {
                    let group = crowd("s", 1_000 + n * 20..=1_019 + n * 20);
                    rows(&db).persister.persist_all(&group, PersistSource::Relay).await;
                    rows(&db).requests.outcome_of(RequestId::new(n + 1).unwrap()).await.ok();
                }
            });
            // From too early for anything to late enough for a commit, also on a crowded machine with a slow disk.
            let late = if n < 195 { Duration::ZERO } else { Duration::from_secs(1) };
            let moment = Duration::from_micros(300 + 120 * n) + late;
            if tokio::time::timeout(moment, &mut task).await.is_err() {
                task.abort();
            }
        }
        asker.await.unwrap();
        let again = verdicts(&db, &crowd("s", 1_000..=4_999)).await;
        assert!(again.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Outcome::Ordered))));
        assert!(
            again.contains(&Verdict::Already(Outcome::Ordered)),
            "some calls should have committed before they were dropped"
        );
        assert_sound(&db, "s", 4_500).await;
    });
}

#[test]
fn a_locked_stock_row_rolls_everything_back_and_is_persisted_later() {
    run(async {
        let db = fresh("locked").await;
        rows(&db).sales.create(&sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let mut holder = AsyncMysqlConnection::establish(&url("locked").await).await.unwrap();
        holder.batch_execute("BEGIN; UPDATE sales SET title = 'x'").await.unwrap();
        let started = Instant::now();
        let items = crowd("s", 1..=100);
        let got = rows(&db).persister.persist_all(&items, PersistSource::Relay).await;
        assert!(got.iter().all(|v| matches!(v, Err(DbError::SaleLocked(_)))), "{got:?}");
        assert!(started.elapsed() < Duration::from_secs(9), "one wait, not one a row: {:?}", started.elapsed());
        assert!(rows(&db).requests.outcome_of(items[0].purchase.request_id).await.unwrap().is_none());
        assert_sound(&db, "s", 0).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(verdicts_when_unlocked(&db, &items).await, vec![Verdict::Ordered; 100]);
        assert_sound(&db, "s", 100).await;
    });
}

#[test]
fn audits_are_kept_and_one_leads_at_a_time() {
    run(async {
        let db = fresh("audit").await;
        let finding = audit::StoredFinding {
            sale_id: Some(sale_id("s")),
            request_id: RequestId::new(5),
            code: "P5-RC1".into(),
            detail: "d".into(),
        };
        for n in 0..3 {
            let run = audit::StoredRun {
                sale_id: None,
                started_at_ms: NOW_MS + n,
                ended_at_ms: NOW_MS + n + 10,
                consistent: n == 0,
                examined_count: 7,
                sheet: "{}".into(),
                findings: vec![finding.clone(); usize::try_from(n).unwrap()],
            };
            rows(&db).findings.record(&run).await.unwrap();
        }
        let runs = rows(&db).findings.last_runs(2).await.unwrap();
        assert_eq!(
            runs.iter().map(|r| (r.started_at_ms - NOW_MS, r.findings.len())).collect::<Vec<_>>(),
            [(2, 2), (1, 1)]
        );
        assert_eq!(runs[0].findings[0], finding);
        let later = |kept_ms: i64| NOW_MS + kept_ms + 1_000;
        assert_eq!(rows(&db).findings.prune(later(0)).await, Ok(0));
        assert_eq!(rows(&db).findings.prune(later(audit::QUIET_KEPT_MS)).await, Ok(1), "the one that found nothing");
        assert_eq!(rows(&db).findings.last_runs(10).await.unwrap().len(), 2);
        assert_eq!(rows(&db).findings.prune(later(audit::NEWS_KEPT_MS)).await, Ok(2));
        assert!(rows(&db).findings.last_runs(10).await.unwrap().is_empty());

        let mut leader = leader::try_lead(&db, "reconcile").await.unwrap().unwrap();
        assert!(leader::try_lead(&db, "reconcile").await.unwrap().is_none());
        assert!(leader::try_lead(&db, "other").await.unwrap().is_some());
        assert!(leader.holds().await.unwrap());
        drop(leader);
        let started = Instant::now();
        while leader::try_lead(&db, "reconcile").await.unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(2));
        }
    });
}
