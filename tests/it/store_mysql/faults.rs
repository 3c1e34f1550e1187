//! Calls that are dropped, servers that die, hang or are not there, rows that are locked.

use super::super::hands::breakable;
use super::super::world::{eventually, pause, run};
use super::*;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::dev::ServerKind;
use seckill::domain::fate::Fate;
use seckill::store::mysql::{DbError, outcomes, sales};
use std::time::{Duration, Instant};

#[test]
fn a_database_that_is_away_or_empty_is_an_error_not_a_panic() {
    run(async {
        let away = Db::connect(config("mysql://root@127.0.0.1:1/x".into())).unwrap();
        assert!(matches!(away.ping().await, Err(DbError::Unavailable(_))));
        assert!(matches!(migrate::migrate("mysql://root@127.0.0.1:1/x").await, Err(DbError::Unavailable(_))));
        let missing = Db::connect(config(url("nowhere").await)).unwrap();
        assert!(matches!(missing.ping().await, Err(DbError::Unavailable(_))));
    });
}

#[test]
fn dropped_calls_never_lead_to_wrong_answers() {
    run(async {
        let db = fresh("dropped").await;
        sales::create(&db, &sale("s", 100_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let landed = crowd("s", 1..=500);
        verdicts(&db, &landed).await;
        let asker = {
            let db = db.clone();
            tokio::spawn(async move {
                let mut asked = 0u32;
                for round in 0..20_000u64 {
                    let rid = RequestId::new(round % 500 + 1).unwrap();
                    let answer = outcomes::fate_of(&db, rid).await.unwrap().unwrap();
                    assert_eq!((answer.request_id, answer.number), (rid, rid.get()));
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
                    land(&db, &group, Source::Relay).await;
                    outcomes::fate_of(&db, RequestId::new(n + 1).unwrap()).await.ok();
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
        assert!(again.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Fate::Ordered))));
        assert!(
            again.contains(&Verdict::Already(Fate::Ordered)),
            "some calls should have committed before they were dropped"
        );
        assert_sound(&db, "s", 4_500).await;
    });
}

#[test]
fn a_killed_server_heals_without_a_new_pool_and_loses_nothing_it_confirmed() {
    run(async {
        let mut servers = breakable().await;
        let url = servers.urls().mysql_url.replace("/seckill", "/store_killed");
        migrate::migrate(&url).await.unwrap();
        let db = Db::connect(config(url)).unwrap();
        sales::create(&db, &sale("s", 1_000_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let lander = {
            let db = db.clone();
            tokio::spawn(async move {
                let mut confirmed = 0u64;
                let mut outages = 0;
                let mut next = 1u64;
                while outages == 0 || confirmed < 3_000 {
                    let group = crowd("s", next..=next + 49);
                    let got = land(&db, &group, Source::Relay).await;
                    if got.iter().all(Result::is_ok) {
                        confirmed += 50;
                        next += 50;
                    } else {
                        outages += 1;
                        assert!(got.iter().all(|v| v.as_ref().is_ok_or_outage()), "{got:?}");
                        pause().await;
                    }
                    assert!(outages < 2_000, "never healed");
                }
                confirmed
            })
        };
        eventually("orders", async || outcomes::fate_of(&db, RequestId::new(500).unwrap()).await.unwrap().is_some())
            .await;
        servers.server(ServerKind::Mysql).unwrap().kill().await.unwrap();
        eventually("an outage seen by the others", async || db.ping().await.is_err()).await;
        servers.server(ServerKind::Mysql).unwrap().restart().await.unwrap();
        let back = Instant::now();
        while db.ping().await.is_err() {
            assert!(back.elapsed() < Duration::from_secs(5));
            pause().await;
        }
        let confirmed = lander.await.unwrap();
        assert_sound(&db, "s", i64::try_from(confirmed).unwrap()).await;
    });
}

trait OkOrOutage {
    fn is_ok_or_outage(&self) -> bool;
}

impl OkOrOutage for Result<&Verdict, &DbError> {
    fn is_ok_or_outage(&self) -> bool {
        self.is_ok() || self.is_err_and(DbError::is_outage)
    }
}

#[test]
fn a_server_that_hangs_is_a_timeout_and_heals() {
    run(async {
        let mut servers = breakable().await;
        let url = servers.urls().mysql_url.replace("/seckill", "/store_hung");
        migrate::migrate(&url).await.unwrap();
        let db = Db::connect(DbConfig { statement_timeout_ms: 500, connect_timeout_ms: 500, ..config(url) }).unwrap();
        sales::create(&db, &sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        servers.server(ServerKind::Mysql).unwrap().pause().unwrap();
        let started = Instant::now();
        let items = crowd("s", 1..=100);
        let got = land(&db, &items, Source::Relay).await;
        assert!(got.iter().all(|v| v.as_ref().is_err_and(DbError::is_outage)), "{got:?}");
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        servers.server(ServerKind::Mysql).unwrap().resume().unwrap();
        let got = verdicts(&db, &items).await;
        assert!(got.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Fate::Ordered))));
        assert_sound(&db, "s", 100).await;
    });
}

#[test]
fn a_locked_stock_row_rolls_everything_back_and_lands_later() {
    run(async {
        let db = fresh("locked").await;
        sales::create(&db, &sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let mut holder = AsyncMysqlConnection::establish(&url("locked").await).await.unwrap();
        holder.batch_execute("BEGIN; UPDATE sales SET title = 'x'").await.unwrap();
        let started = Instant::now();
        let items = crowd("s", 1..=100);
        let got = land(&db, &items, Source::Relay).await;
        assert!(got.iter().all(|v| matches!(v, Err(DbError::SaleLocked(_)))), "{got:?}");
        assert!(started.elapsed() < Duration::from_secs(9), "one wait, not one a row: {:?}", started.elapsed());
        assert!(outcomes::fate_of(&db, items[0].purchase.request_id).await.unwrap().is_none());
        assert_sound(&db, "s", 0).await;
        holder.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(verdicts(&db, &items).await, vec![Verdict::Ordered; 100]);
        assert_sound(&db, "s", 100).await;
    });
}

#[test]
fn a_locked_sale_in_a_group_leaves_the_other_sales_alone() {
    run(async {
        let db = fresh("neighbours").await;
        for id in ["stuck", "free"] {
            sales::create(&db, &sale(id, 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        }
        let mut holder = AsyncMysqlConnection::establish(&url("neighbours").await).await.unwrap();
        holder.batch_execute("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'stuck'").await.unwrap();
        let items: Vec<_> = (1..=60)
            .map(|rid| accepted(if rid % 3 == 0 { "stuck" } else { "free" }, rid, &format!("u{rid}"), 1))
            .collect();
        let locked = Err(DbError::SaleLocked(sale_id("stuck")));
        for (accepted, verdict) in items.iter().zip(land(&db, &items, Source::Relay).await) {
            let free = accepted.purchase.sale_id == sale_id("free");
            assert_eq!(verdict, if free { Ok(Verdict::Ordered) } else { locked.clone() });
        }
        holder.batch_execute("ROLLBACK").await.unwrap();
        let again = verdicts(&db, &items).await;
        assert!(again.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Fate::Ordered))));
        assert_sound(&db, "stuck", 20).await;
        assert_sound(&db, "free", 40).await;
    });
}
