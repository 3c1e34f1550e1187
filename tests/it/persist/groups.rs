//! Groups and single requests: each request is persisted once, gets its own exact verdict, and the sums hold.

use crate::support::world::parts::mysql_store::{
    NOW_MS, accepted, assert_sound, books_of, crowd, fresh, rows, sale, sale_id, url, verdicts,
};
use crate::support::world::run;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::ids::RequestId;
use seckill::domain::message;
use seckill::domain::outcome::{FailReason, Outcome, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::orders::persist::GroupResult;
use seckill::p5_reconcile::rows::books::{Series, SeriesQuery};
use seckill::sales::rows::error::SaleError;
use seckill::store::mysql::DbError;
use seckill::store::mysql::codes::{FailureStatus, PersistSource, Reporter};

#[test]
fn a_group_is_persisted_once_and_repeats_learn_their_outcome() {
    run(async {
        let db = fresh("group").await;
        rows(&db).sales.create(&sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let group = crowd("s", 1..=200);
        assert_eq!(rows(&db).persister.persist_group(&group, PersistSource::Relay).await, Ok(GroupResult::Committed));
        assert_eq!(rows(&db).persister.persist_group(&group, PersistSource::Relay).await, Ok(GroupResult::Surprise));
        assert_eq!(verdicts(&db, &group).await, vec![Verdict::Already(Outcome::Ordered); 200]);

        let mut mixed = crowd("s", 200..=260);
        mixed.reverse();
        mixed.push(mixed[3].clone());
        let got = verdicts(&db, &mixed).await;
        assert_eq!(got.iter().filter(|v| **v == Verdict::Ordered).count(), 60);
        assert_eq!(got[60], Verdict::Already(Outcome::Ordered));
        assert_eq!(got[61], Verdict::Already(Outcome::Ordered));
        assert_sound(&db, "s", 260).await;
        assert_eq!(rows(&db).sales.highest_number(&sale_id("s"), 0, 1).await, Ok(260));
        assert_eq!(rows(&db).sales.highest_number(&sale_id("s"), 1, 1).await, Ok(0));

        let story = rows(&db).requests.records_of(RequestId::new(7).unwrap()).await.unwrap();
        let order = story.order.unwrap();
        assert_eq!((order.amount_cents, order.accepted_at_ms, order.source.as_str()), (9_900, NOW_MS, "relay"));
        assert_eq!(story.decided.unwrap().payload_hash, group[6].payload_hash());
        assert!(story.failure.is_none());
    });
}

#[test]
fn a_second_request_of_a_buyer_is_refused_and_that_is_recorded_first() {
    run(async {
        let db = fresh("buyer").await;
        rows(&db).sales.create(&sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
        let items = [accepted("s", 1, "alice", 1), accepted("s", 2, "alice", 1), accepted("s", 3, "bob", 1)];
        let got = verdicts(&db, &items).await;
        let refused = Verdict::Refused(FailReason::DuplicateBuyer);
        assert_eq!(got, [Verdict::Ordered, refused, Verdict::Ordered]);
        let story = rows(&db).requests.records_of(RequestId::new(2).unwrap()).await.unwrap();
        assert_eq!(story.decided.unwrap().outcome, Outcome::Failed(FailReason::DuplicateBuyer));
        let failure = story.failure.unwrap();
        assert_eq!((failure.status, failure.reason.as_str()), (FailureStatus::Final, "DUPLICATE_BUYER"));
        assert_eq!(message::decode(&failure.payload).unwrap(), items[1]);
        assert!(story.order.is_none());
        // One unit each, also in one request.
        let two = accepted("s", 4, "carol", 2);
        let landed = rows(&db).persister.persist_one(&two, PersistSource::Relay).await;
        assert_eq!(landed, Ok(Verdict::Refused(FailReason::LimitExceeded)));
        assert_eq!(verdicts(&db, &[two]).await, [Verdict::Already(Outcome::Failed(FailReason::LimitExceeded))]);
        assert_sound(&db, "s", 2).await;
    });
}

#[test]
fn ids_that_differ_by_case_or_spaces_are_different_buyers() {
    run(async {
        let db = fresh("bytes").await;
        rows(&db).sales.create(&sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
        rows(&db).sales.create(&sale("S", 100, PurchasePolicy::from_limit(Some(2)))).await.unwrap();
        let users = ["alice", "Alice", "alice ", "alicé", "alice\u{301}"];
        let mut items = Vec::new();
        for (n, user) in (1u64..).zip(users) {
            items.push(accepted("s", n, user, 1));
            items.push(accepted("S", n + 100, user, 2));
        }
        assert_eq!(verdicts(&db, &items).await, vec![Verdict::Ordered; 10]);
        assert_sound(&db, "s", 5).await;
        assert_sound(&db, "S", 10).await;
    });
}

#[test]
fn a_cumulative_limit_holds_within_and_across_groups() {
    run(async {
        let db = fresh("limit").await;
        rows(&db).sales.create(&sale("s", 1_000, PurchasePolicy::from_limit(Some(5)))).await.unwrap();
        let refused = Verdict::Refused(FailReason::LimitExceeded);
        let first = [accepted("s", 1, "a", 2), accepted("s", 2, "a", 3), accepted("s", 3, "b", 5)];
        assert_eq!(rows(&db).persister.persist_group(&first, PersistSource::Relay).await, Ok(GroupResult::Committed));
        let second =
            [accepted("s", 4, "a", 1), accepted("s", 5, "b", 1), accepted("s", 6, "c", 6), accepted("s", 7, "c", 5)];
        assert_eq!(verdicts(&db, &second).await, [refused, refused, refused, Verdict::Ordered]);
        // Many landers, one buyer: exactly five units whatever the interleaving.
        let tasks: Vec<_> = (0..8u64)
            .map(|task| {
                let db = db.clone();
                tokio::spawn(async move {
                    rows(&db).persister.persist_one(&accepted("s", 100 + task, "d", 1), PersistSource::Relay).await
                })
            })
            .collect();
        let mut ordered = 0;
        for task in tasks {
            ordered += i64::from(task.await.unwrap().unwrap() == Verdict::Ordered);
        }
        assert_eq!(ordered, 5);
        assert_sound(&db, "s", 20).await;
    });
}

#[test]
fn short_stock_inside_a_group_sells_exactly_what_is_there() {
    run(async {
        let db = fresh("short").await;
        rows(&db).sales.create(&sale("s", 37, PurchasePolicy::OnePerUser)).await.unwrap();
        rows(&db).sales.create(&sale("t", 1_000, PurchasePolicy::Unlimited)).await.unwrap();
        let mut items = crowd("s", 1..=100);
        items.extend((101..=150).map(|rid| accepted("t", rid, "same", 3)));
        let got = verdicts(&db, &items).await;
        assert_eq!(got[..100].iter().filter(|v| **v == Verdict::Ordered).count(), 37);
        assert_eq!(got[..100].iter().filter(|v| **v == Verdict::Refused(FailReason::SoldOut)).count(), 63);
        assert_eq!(got[100..], vec![Verdict::Ordered; 50]);
        assert_sound(&db, "s", 37).await;
        assert_sound(&db, "t", 150).await;
        let again = verdicts(&db, &items).await;
        assert!(again.iter().all(|v| matches!(v, Verdict::Already(_))));
        // Who ended SOLD_OUT never had a unit: there is nothing to offer again.
        assert_eq!(rows(&db).grants.reclaim(&sale_id("s")).await, Ok(None));
        let books = books_of(&db, "s").await;
        assert_eq!((books.held, books.refused), (0, 63));
    });
}

#[test]
fn units_of_final_failures_are_offered_again_once_and_never_more_than_there_are() {
    run(async {
        let db = fresh("reclaim").await;
        rows(&db).sales.create(&sale("s", 10, PurchasePolicy::OnePerUser)).await.unwrap();
        assert!(rows(&db).grants.mark_applied(&sale_id("s"), "first").await.unwrap());
        verdicts(&db, &crowd("s", 1..=5)).await;
        // One of them buys again, and two are given up.
        assert_eq!(verdicts(&db, &[accepted("s", 6, "u1", 1)]).await, [Verdict::Refused(FailReason::DuplicateBuyer)]);
        for rid in [7, 8] {
            let given_up = rows(&db).persister.give_up(&accepted("s", rid, &format!("u{rid}"), 1), "why", "who").await;
            assert_eq!(given_up, Ok(Verdict::Refused(FailReason::GivenUp)));
        }
        assert_eq!(books_of(&db, "s").await.held, 3);
        let made = rows(&db).grants.reclaim(&sale_id("s")).await.unwrap().unwrap();
        assert_eq!((made.requests, made.units), (3, 3));
        assert_eq!(rows(&db).grants.reclaim(&sale_id("s")).await, Ok(None), "once");
        let open = rows(&db).grants.unapplied(&sale_id("s"), 1).await.unwrap();
        assert_eq!(open.iter().map(|g| (&g.grant_id, g.quantity)).collect::<Vec<_>>(), [(&made.grant_id, 3)]);
        let books = books_of(&db, "s").await;
        assert_eq!((books.held, books.grants_unapplied, books.stock), (0, 3, 5), "and the stock does not move");
        // Two units are left that no buyer was promised; three more failures would take units that are not there.
        for rid in 9..=11 {
            rows(&db).persister.give_up(&accepted("s", rid, &format!("u{rid}"), 1), "why", "who").await.unwrap();
        }
        let refused = rows(&db).grants.reclaim(&sale_id("s")).await;
        assert_eq!(refused, Err(SaleError::BooksDisagree(sale_id("s"))));
        assert_eq!(books_of(&db, "s").await.held, 3, "and nothing was written");
    });
}

#[test]
fn the_loser_of_a_number_given_twice_gets_an_outcome_without_it() {
    run(async {
        let db = fresh("reused").await;
        rows(&db).sales.create(&sale("s", 10, PurchasePolicy::OnePerUser)).await.unwrap();
        let mut loser = accepted("s", 2, "b", 1);
        loser.number = 1;
        assert_eq!(
            verdicts(&db, &[accepted("s", 1, "a", 1), loser.clone()]).await,
            [Verdict::Ordered, Verdict::Conflict]
        );
        let outcome = rows(&db).persister.fail_reused(&loser, Reporter::Audit, "test").await;
        assert_eq!(outcome, Ok(Some(Verdict::Refused(FailReason::NumberReused))));
        let decided = rows(&db).requests.outcome_of(loser.purchase.request_id).await.unwrap().unwrap();
        assert_eq!((decided.number, decided.outcome), (None, Outcome::Failed(FailReason::NumberReused)));
        assert_eq!(rows(&db).persister.fail_reused(&loser, Reporter::Audit, "test").await, Ok(None), "once");
        // A request that has its number is not touched by it, and a person who gives a loser up gets the same answer.
        let third = accepted("s", 3, "c", 1);
        assert_eq!(rows(&db).persister.fail_reused(&third, Reporter::Audit, "test").await, Ok(None));
        let mut other = accepted("s", 4, "d", 1);
        other.number = 1;
        let given_up = rows(&db).persister.give_up(&other, "why", "who").await;
        assert_eq!(given_up, Ok(Verdict::Refused(FailReason::NumberReused)));
        assert_eq!(rows(&db).grants.reclaim(&sale_id("s")).await, Ok(None), "it has no unit");
        assert_sound(&db, "s", 1).await;
    });
}

#[test]
fn unknown_sales_forged_repeats_and_reused_numbers_are_distinguished() {
    run(async {
        let db = fresh("strange").await;
        rows(&db).sales.create(&sale("s", 100, PurchasePolicy::OnePerUser)).await.unwrap();
        let unknown = accepted("nowhere", 1, "a", 1);
        let good = accepted("s", 2, "a", 1);
        let mut forged = accepted("s", 2, "mallory", 1);
        forged.number = 9;
        let mut reused = accepted("s", 3, "c", 1);
        reused.number = 2;
        let items = [unknown.clone(), good, forged, reused, accepted("s", 4, "d", 1)];
        let got = rows(&db).persister.persist_all(&items, PersistSource::Relay).await;
        let (parked, ordered, conflict) =
            (Err(DbError::UnknownSale(sale_id("nowhere"))), Ok(Verdict::Ordered), Ok(Verdict::Conflict));
        assert_eq!(got, [parked, ordered.clone(), conflict.clone(), conflict, ordered]);
        // Nothing was decided about it. It is persisted when the sale has its row, and is not haunted by a cached absence.
        rows(&db).sales.create(&sale("nowhere", 5, PurchasePolicy::Unlimited)).await.unwrap();
        assert_eq!(verdicts(&db, &[unknown]).await, [Verdict::Ordered]);
        assert_eq!(verdicts(&db, &[accepted("nowhere", 10, "a", 1)]).await, [Verdict::Ordered]);
        assert_sound(&db, "s", 2).await;
    });
}

#[test]
fn one_impossible_row_does_not_fail_its_neighbours() {
    run(async {
        let db = fresh("poison").await;
        rows(&db).sales.create(&sale("s", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let mut items = crowd("s", 1..=100);
        items[57].accepted_at_ms = 253_402_300_800_000; // the year 10000
        items[12].accepted_at_ms = i64::MAX;
        let got = rows(&db).persister.persist_all(&items, PersistSource::Relay).await;
        for (at, verdict) in got.iter().enumerate() {
            match at {
                12 | 57 => assert!(matches!(verdict, Err(DbError::Other(_))), "{verdict:?}"),
                _ => assert_eq!(*verdict, Ok(Verdict::Ordered)),
            }
        }
        assert_sound(&db, "s", 98).await;
        let series = Series { shard: 0, epoch: 1 };
        let asked = SeriesQuery { series, after: 0, to: 102, holes: vec![(58, 58), (7, 7)], above: true };
        let read = rows(&db).books.count(&sale_id("s"), &asked).await.unwrap();
        assert_eq!(read.pieces[0].missing, [(13, 13), (58, 58), (101, 102)]);
        assert_eq!((read.highest, read.filled, read.above.count), (100, Some(7), 0));
    });
}

#[test]
fn an_order_without_its_outcome_is_named_and_its_neighbours_are_persisted() {
    run(async {
        let db = fresh("half").await;
        rows(&db).sales.create(&sale("s", 100, PurchasePolicy::Unlimited)).await.unwrap();
        let mut by_hand = AsyncMysqlConnection::establish(&url("half").await).await.unwrap();
        let columns = "request_id, sale_id, user_id, quantity, amount_cents, source, accepted_at";
        let row = format!("INSERT INTO orders ({columns}) VALUES (7, 's', 'x', 1, 1, 'replay', NOW(3))");
        by_hand.batch_execute(&row).await.unwrap();
        let got = rows(&db).persister.persist_all(&crowd("s", 1..=9), PersistSource::Relay).await;
        let no_outcome = DbError::Other("request 7 has an order and no outcome".to_owned());
        for (rid, verdict) in (1..).zip(got) {
            assert_eq!(verdict, if rid == 7 { Err(no_outcome.clone()) } else { Ok(Verdict::Ordered) });
        }
    });
}

#[test]
fn concurrent_writers_of_the_same_requests_persist_each_once() {
    run(async {
        let db = fresh("race").await;
        rows(&db).sales.create(&sale("s", 10_000, PurchasePolicy::from_limit(Some(5)))).await.unwrap();
        let items: Vec<_> = (1..=200).map(|rid| accepted("s", rid, &format!("u{}", rid % 70), 1)).collect();
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (db, mut items) = (db.clone(), items.clone());
                items.rotate_left(task * 25);
                tokio::spawn(async move {
                    let mut got = Vec::new();
                    for group in items.chunks(40 + task) {
                        got.extend(rows(&db).persister.persist_all(group, PersistSource::Relay).await);
                    }
                    got
                })
            })
            .collect();
        let mut ordered = 0;
        for task in tasks {
            for verdict in task.await.unwrap() {
                match verdict.unwrap() {
                    Verdict::Ordered => ordered += 1,
                    Verdict::Already(Outcome::Ordered) => {}
                    other @ (Verdict::Already(Outcome::Failed(_)) | Verdict::Refused(_) | Verdict::Conflict) => {
                        panic!("{other:?}")
                    }
                }
            }
        }
        assert_eq!(ordered, 200);
        assert_sound(&db, "s", 200).await;
    });
}
