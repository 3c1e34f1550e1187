//! Migrations, sales and grants, the register of failures.

use crate::support::basics::database_kind::numbers;
use crate::support::world::parts::mysql_store::{
    NOW_MS, assert_sound, books_of, config, crowd, fresh, rows as tables, sale, sale_id, session_of, url, verdicts,
};
use crate::support::world::parts::rows_read::{one_session, rows_read};
use crate::support::world::run;
use diesel_async::SimpleAsyncConnection;
use seckill::domain::ids::RequestId;
use seckill::domain::outcome::{FailReason, Outcome, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::{Sale, SaleStatus};
use seckill::orders::rows::failed_requests::{FailedRequestFilter, OpenFailure};
use seckill::runtime::now_ms;
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
        assert_eq!(ran.into_iter().map(Result::unwrap).sum::<usize>(), 61);
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

const HOUR_MS: i64 = 3_600_000;
/// Sales that were sold long ago.
const OVER: u32 = 5_000;

#[test]
fn what_is_read_to_find_drafts_open_and_new_sales_does_not_grow_with_those_that_are_over() {
    run(async {
        let url = url("many_sales").await;
        migrate::migrate(&url).await.unwrap();
        let mut session = session_of(&url).await;
        let over = format!(
            "INSERT INTO sales (sale_id, product_id, title, price_cents, currency, granted, stock, starts_at, ends_at, status, created_at) \
             SELECT CONCAT('over-', n), 'p', 't', 1, 'CNY', 1, 1, NOW(3) - INTERVAL 3 DAY, NOW(3) - INTERVAL 2 DAY, 'closed', \
             NOW(3) - INTERVAL 4 DAY FROM ({}) AS numbers",
            numbers(OVER)
        );
        session.batch_execute(&over).await.unwrap();
        session.batch_execute("ANALYZE TABLE sales").await.unwrap();
        let db = one_session(&url);
        let sales = tables(&db).sales;
        let of_now = |id: &str, starts_in_ms: i64| Sale {
            starts_at_ms: now_ms() + starts_in_ms,
            ends_at_ms: now_ms() + 2 * HOUR_MS,
            ..sale(id, 5, PurchasePolicy::OnePerUser)
        };
        for (id, starts_in_ms) in [("soon", 10_000), ("later", HOUR_MS), ("open", -HOUR_MS)] {
            sales.create(&of_now(id, starts_in_ms)).await.unwrap();
        }
        sales.set_status(&sale_id("open"), SaleStatus::Warmed, &[SaleStatus::Draft]).await.unwrap();
        let ended = Sale { ends_at_ms: now_ms() - 1_000, ..of_now("ended", -HOUR_MS) };
        sales.create(&ended).await.unwrap();
        let ids = |found: Vec<Sale>| found.into_iter().map(|sale| sale.sale_id.to_string()).collect::<Vec<_>>();

        let before = rows_read(&db).await;
        assert_eq!(ids(sales.drafts_due(60_000).await.unwrap()), ["soon"]);
        assert_eq!(ids(sales.live_sales(now_ms()).await.unwrap()), ["open"]);
        let mut new = sales.created_within(60).await.unwrap().unwrap();
        new.sort_unstable();
        assert_eq!(new, ["ended", "later", "open", "soon"].map(sale_id));
        let read = rows_read(&db).await - before;
        // Mostly what the server reads to answer the question for this count.
        assert!(read < u64::from(OVER) / 5, "{read} rows and entries");
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
        for name in ["first", "cancel-7", "reclaim-x", "rebuild-2", "return-1", "void-1-0-2", "withdraw-n", "move-n"] {
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
