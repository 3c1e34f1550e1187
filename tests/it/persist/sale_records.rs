//! Migrations, sales and grants, the register of failures.

use crate::support::world::parts::mysql_store::{
    NOW_MS, assert_sound, books_of, config, crowd, fresh, rows as tables, sale, sale_id, url, verdicts,
};
use crate::support::world::run;
use seckill::domain::ids::RequestId;
use seckill::domain::outcome::{FailReason, Outcome, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::SaleStatus;
use seckill::orders::rows::failed_requests::{FailedRequestFilter, OpenFailure};
use seckill::sales::rows::changes;
use seckill::sales::rows::error::SaleError;
use seckill::store::mysql::codes::{FailureStatus, Reporter};
use seckill::store::mysql::{Db, checks, migrate};

#[test]
fn migrations_run_once_by_any_number_of_processes_and_the_server_is_checked() {
    run(async {
        let url = url("mi`gr%20ate").await;
        let racers: Vec<_> = (0..4)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { migrate::migrate(&url).await.unwrap().len() })
            })
            .collect();
        let ran = futures::future::join_all(racers).await;
        assert_eq!(ran.into_iter().map(Result::unwrap).sum::<usize>(), 39);
        assert!(migrate::migrate(&url).await.unwrap().is_empty());
        let db = Db::connect(config(url)).unwrap();
        let checks = checks::checks(&db).await.unwrap();
        assert!(checks.iter().all(|check| check.ok), "{checks:?}");
        assert!(checks.len() >= 7, "{checks:?}");
    });
}

#[test]
fn migrations_work_on_a_current_thread_runtime() {
    let mut url_of_it = String::new();
    run(async { url_of_it = url("current_thread").await });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        migrate::migrate(&url_of_it).await.unwrap();
        Db::connect(config(url_of_it)).unwrap().ping().await.unwrap();
    });
}

#[test]
fn a_sale_round_trips_and_its_grants_are_idempotent() {
    run(async {
        let db = fresh("sales").await;
        let wanted = sale("s", 10, PurchasePolicy::from_limit(Some(3)));
        tables(&db).sales.create(&wanted).await.unwrap();
        assert_eq!(tables(&db).sales.create(&wanted).await, Err(SaleError::Exists(sale_id("s"))));
        assert_eq!(tables(&db).sales.get(&sale_id("s")).await.unwrap(), Some(wanted.clone()));
        assert_eq!(tables(&db).sales.get(&sale_id("S")).await.unwrap(), None);

        assert!(tables(&db).sales.live_sales(NOW_MS).await.unwrap().is_empty());
        assert_eq!(tables(&db).sales.unfinished(NOW_MS).await.unwrap().len(), 1, "a draft waits for its start");
        assert!(tables(&db).sales.unfinished(NOW_MS + 3_600_001).await.unwrap().is_empty(), "until its end");
        tables(&db).sales.set_status(&sale_id("s"), SaleStatus::Warmed, &[SaleStatus::Draft]).await.unwrap();
        let again = tables(&db).sales.set_status(&sale_id("s"), SaleStatus::Warmed, &[SaleStatus::Draft]).await;
        assert_eq!(again, Err(SaleError::Status(sale_id("s"), SaleStatus::Warmed)), "judged by what holds now");
        let nowhere = tables(&db).sales.set_status(&sale_id("x"), SaleStatus::Warmed, &[SaleStatus::Draft]).await;
        assert_eq!(nowhere, Err(SaleError::Unknown(sale_id("x"))));
        assert_eq!(tables(&db).sales.live_sales(NOW_MS).await.unwrap().len(), 1);
        assert!(tables(&db).sales.live_sales(NOW_MS + 3_600_001).await.unwrap().is_empty());
        // An epoch belongs to the one who moved it there.
        let moves = [("s", 1, 3, true), ("s", 1, 3, false), ("s", 3, 2, false), ("s", 2, 4, false), ("x", 1, 2, false)];
        for (sale, from, to, moved) in moves {
            assert_eq!(
                tables(&db).sales.advance_epoch(&sale_id(sale), changes::EpochStep { from, to }).await,
                Ok(moved),
                "{sale} to {to}"
            );
        }

        assert_eq!(tables(&db).grants.top_up(&sale_id("s"), "g1", 5).await, Ok(true));
        assert_eq!(tables(&db).grants.top_up(&sale_id("s"), "g1", 5).await, Ok(false));
        assert_eq!(tables(&db).grants.top_up(&sale_id("s"), "g1", 6).await, Err(SaleError::GrantConflict("g1".into())));
        assert_eq!(tables(&db).grants.top_up(&sale_id("x"), "g1", 6).await, Err(SaleError::Unknown(sale_id("x"))));
        assert_eq!(
            tables(&db).grants.top_up(&sale_id("s"), "g2", 1_000_000_000).await,
            Err(SaleError::TooMuch(sale_id("s")))
        );
        let open: Vec<_> = tables(&db).grants.unapplied(&sale_id("s"), 1).await.unwrap();
        assert_eq!(open.iter().map(|g| (g.grant_id.as_str(), g.quantity)).collect::<Vec<_>>(), [("first", 10)]);
        assert!(tables(&db).grants.mark_applied(&sale_id("s"), "first").await.unwrap());
        assert!(!tables(&db).grants.mark_applied(&sale_id("s"), "first").await.unwrap());
        assert_eq!(tables(&db).grants.unapplied(&sale_id("s"), 1).await.unwrap().len(), 0);
        assert_eq!(
            tables(&db).grants.unapplied(&sale_id("s"), 3).await.unwrap().len(),
            1,
            "each is given in its own epoch"
        );
        assert_sound(&db, "s", 0).await;
        let books = books_of(&db, "s").await;
        // The first grant was made in epoch 1, the other one in epoch 3, which no rebuild opened.
        assert_eq!((books.granted, books.grants, books.grants_unapplied, books.grants_known), (15, 5, 5, false));
        for name in ["first", "cancel-7", "reclaim-x", "rebuild-2", "return-1", "void-1-0-2"] {
            let reserved = tables(&db).grants.top_up(&sale_id("s"), name, 5).await;
            assert_eq!(reserved, Err(SaleError::GrantReserved(name.to_owned())));
        }
    });
}

#[test]
fn the_register_opens_gives_up_and_closes_without_deciding_twice() {
    run(async {
        let db = fresh("register").await;
        tables(&db).sales.create(&sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
        let items = crowd("s", 1..=4);
        for item in &items {
            let payload = b"\xff raw bytes";
            let failure =
                OpenFailure { accepted: item, reporter: Reporter::RelayDlq, reason: "ATTEMPTS", detail: "x", payload };
            assert!(tables(&db).register.open(&failure).await.unwrap());
            assert!(!tables(&db).register.open(&failure).await.unwrap());
        }
        let given_up = Verdict::Refused(FailReason::GivenUp);
        assert_eq!(tables(&db).persister.give_up(&items[0], "customer called", "op").await, Ok(given_up));
        let already = Verdict::Already(Outcome::Failed(FailReason::GivenUp));
        assert_eq!(tables(&db).persister.give_up(&items[0], "again", "op").await, Ok(already));
        assert_eq!(verdicts(&db, &items[..2]).await, [already, Verdict::Ordered]);
        assert_eq!(
            tables(&db).persister.give_up(&items[1], "late", "op").await,
            Ok(Verdict::Already(Outcome::Ordered))
        );
        assert!(tables(&db).register.resolve(items[2].purchase.request_id, "op").await.unwrap());
        assert!(!tables(&db).register.resolve(items[2].purchase.request_id, "op").await.unwrap());
        assert_eq!(tables(&db).register.close_settled("reconcile").await, Ok(1));
        let open =
            FailedRequestFilter { status: Some(FailureStatus::Open), limit: 10, ..FailedRequestFilter::default() };
        let rows = tables(&db).register.list(&open).await.unwrap();
        assert_eq!(rows.iter().map(|r| r.request_id.get()).collect::<Vec<_>>(), [4]);
        assert_eq!(rows[0].payload, b"\xff raw bytes");
        let all = FailedRequestFilter {
            sale_id: Some(sale_id("s")),
            after: RequestId::new(1),
            limit: 10,
            ..FailedRequestFilter::default()
        };
        let all = tables(&db).register.list(&all).await.unwrap();
        assert_eq!(
            all.iter().map(|r| r.status).collect::<Vec<_>>(),
            [FailureStatus::Resolved, FailureStatus::Resolved, FailureStatus::Open]
        );
    });
}
