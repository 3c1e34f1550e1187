//! The limit of a drop in the database alone: it holds over all its sales, whatever Redis let in.

use crate::support::world::parts::mysql_store::{
    accepted, assert_sound, fresh, rows, sale, sale_id, session_of, url, verdicts,
};
use crate::support::world::run;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use seckill::domain::drops::SalesDrop;
use seckill::domain::ids::DropId;
use seckill::domain::outcome::{FailReason, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::SaleStatus;
use seckill::orders::persist::GroupResult;
use seckill::p5_reconcile::rows::ended::GRACE_MS;
use seckill::sales::rows::error::SaleError;
use seckill::store::mysql::Db;
use seckill::store::mysql::codes::PersistSource;
use std::num::NonZeroU32;

fn drop_of(id: &str, limit: u32, sales: &[&str]) -> SalesDrop {
    SalesDrop {
        drop_id: DropId::parse(id).unwrap(),
        title: "尺码 sizes".into(),
        limit: NonZeroU32::new(limit),
        sale_ids: sales.iter().map(|id| sale_id(id)).collect(),
    }
}

/// With 1,000 units in each sale and no limit of their own.
async fn created(db: &Db, drop: &SalesDrop) -> Result<(), SaleError> {
    let sales: Vec<_> = drop
        .sale_ids
        .iter()
        .map(|id| {
            let sale = sale(id.as_str(), 1_000, PurchasePolicy::Unlimited);
            let sale = seckill::domain::sale::Sale { in_drop: Some(drop.clone().into()), ..sale };
            (sale, seckill::domain::timetable::Timetable::default())
        })
        .collect();
    rows(db).sales.create_all(&[(Some(drop), &sales)]).await
}

#[derive(diesel::QueryableByName)]
struct Owned {
    #[diesel(sql_type = diesel::sql_types::Unsigned<diesel::sql_types::BigInt>)]
    quantity: u64,
}

/// Units of a buyer by `drop_purchases`.
async fn owned(name: &str, user: &str) -> Option<u64> {
    let mut session = session_of(&url(name).await).await;
    let query = diesel::sql_query(format!("SELECT quantity FROM drop_purchases WHERE user_id = '{user}'"));
    let rows: Vec<Owned> = query.load(&mut session).await.unwrap();
    rows.into_iter().map(|owned| owned.quantity).next()
}

#[test]
fn a_drop_and_its_sales_are_created_together_or_not_at_all() {
    run(async {
        let db = fresh("drop_create").await;
        let drop = drop_of("sneaker", 1, &["m", "l", "xl"]);
        created(&db, &drop).await.unwrap();
        let sales = rows(&db).sales;
        assert_eq!(sales.drop_of(&drop.drop_id).await, Ok(Some(drop.clone())));
        for id in &drop.sale_ids {
            let read = sales.get(id).await.unwrap().unwrap();
            assert_eq!(read.in_drop.as_deref(), Some(&drop));
        }
        let listed = sales.list().await.unwrap();
        assert!(listed.len() == 3 && listed.iter().all(|sale| sale.in_drop.is_some()), "{listed:?}");
        assert_eq!(created(&db, &drop).await, Err(SaleError::DropExists(drop.drop_id.clone())));

        // The second of its sales is taken: nothing of the new drop is there.
        let other = drop_of("other", 1, &["s", "l"]);
        assert_eq!(created(&db, &other).await, Err(SaleError::Exists(sale_id("l"))));
        assert_eq!(sales.drop_of(&other.drop_id).await, Ok(None));
        assert_eq!(sales.get(&sale_id("s")).await, Ok(None));
    });
}

#[test]
fn the_limit_of_a_drop_holds_over_its_sales_within_and_across_groups() {
    run(async {
        let db = fresh("drop_limit").await;
        created(&db, &drop_of("d", 3, &["m", "l"])).await.unwrap();
        let refused = Verdict::Refused(FailReason::LimitExceeded);
        let first = [accepted("m", 1, "a", 1), accepted("l", 2, "a", 2), accepted("l", 3, "b", 3)];
        assert_eq!(rows(&db).persister.persist_group(&first, PersistSource::Relay).await, Ok(GroupResult::Committed));
        let second =
            [accepted("m", 4, "a", 1), accepted("m", 5, "b", 1), accepted("l", 6, "c", 4), accepted("m", 7, "c", 3)];
        assert_eq!(verdicts(&db, &second).await, [refused, refused, refused, Verdict::Ordered]);
        // Many writers in both sales, one buyer: exactly three units whatever the interleaving.
        let tasks: Vec<_> = (0..8u64)
            .map(|task| {
                let (db, sale) = (db.clone(), if task % 2 == 0 { "m" } else { "l" });
                tokio::spawn(async move {
                    rows(&db).persister.persist_one(&accepted(sale, 100 + task, "d", 1), PersistSource::Relay).await
                })
            })
            .collect();
        let mut ordered = 0;
        for task in tasks {
            ordered += i64::from(task.await.unwrap().unwrap() == Verdict::Ordered);
        }
        assert_eq!(ordered, 3);
        for user in ["a", "b", "c", "d"] {
            assert_eq!(owned("drop_limit", user).await, Some(3), "{user}");
        }
        let of_d = rows(&db).sales.list().await.unwrap().iter().map(|sale| sale.granted - sale.stock).sum::<i64>();
        assert_eq!(of_d, 12);
    });
}

#[test]
fn a_drop_without_a_limit_counts_and_refuses_nothing() {
    run(async {
        let db = fresh("drop_free").await;
        created(&db, &drop_of("d", 0, &["m", "l"])).await.unwrap();
        let items = [accepted("m", 1, "a", 7), accepted("l", 2, "a", 2)];
        assert_eq!(verdicts(&db, &items).await, [Verdict::Ordered; 2]);
        assert_eq!(owned("drop_free", "a").await, Some(9));
        assert_sound(&db, "m", 7).await;
        assert_sound(&db, "l", 2).await;
    });
}

#[test]
fn a_sale_of_a_drop_that_ended_is_compared_until_the_drop_is_closed() {
    run(async {
        let db = fresh("drop_live").await;
        let drop = drop_of("sneaker", 1, &["m", "l"]);
        created(&db, &drop).await.unwrap();
        let sales = rows(&db).sales;
        sales.create(&sale("plain", 1, PurchasePolicy::Unlimited)).await.unwrap();
        for id in ["m", "l", "plain"] {
            sales.set_status(&sale_id(id), SaleStatus::Warmed, &[SaleStatus::Draft]).await.unwrap();
        }
        let ids = async || {
            let long_after = sale("any", 1, PurchasePolicy::Unlimited).ends_at_ms + 30 * 86_400_000;
            let live = sales.live_sales(long_after).await.unwrap();
            live.into_iter().map(|sale| sale.sale_id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids().await, ["l", "m"]);
        // As long as one of them goes on, the other is not late with its close.
        let ended = async || {
            let at = sale("any", 1, PurchasePolicy::Unlimited).ends_at_ms + GRACE_MS + 1;
            let ended = rows(&db).books.ended_open(at, 0).await.unwrap();
            ended.named.into_iter().map(|sale| sale.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ended().await, ["l", "m", "plain"]);
        let mut session = session_of(&url("drop_live").await).await;
        session.batch_execute("UPDATE sales SET ends_at = ends_at + INTERVAL 1 DAY WHERE sale_id = 'm'").await.unwrap();
        assert_eq!(ended().await, ["plain"]);
        for id in ["m", "l"] {
            sales.set_status(&sale_id(id), SaleStatus::Closed, &[SaleStatus::Warmed]).await.unwrap();
        }
        assert!(ids().await.is_empty());
    });
}
