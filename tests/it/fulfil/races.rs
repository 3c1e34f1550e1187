//! Payment, deadline and cancellation at the same moment: one of them decides, the others learn it (L1).

use crate::support::buyers::orders::LONG;
use crate::support::world::parts::mysql_store::rows;
use crate::support::world::{World, run};
use seckill::domain::ids::RequestId;
use seckill::domain::payment::{PaymentState, Price};
use seckill::orders::rows::{CancelRequest, Cancelled, NewPayment, PaymentAnswer, PaymentRecorded};
use seckill::roles::Role::{Api, Consumer, Relay};

fn payment(id: &str, request_id: RequestId) -> NewPayment {
    NewPayment { payment_id: id.to_owned(), request_id, price: Price { amount_cents: 100, currency: "CNY".to_owned() } }
}

fn applied(answer: &PaymentAnswer) -> bool {
    answer.row.state == PaymentState::Applied
}

#[test]
fn of_a_payment_a_deadline_and_a_cancellation_at_once_one_wins_and_the_money_is_on_record() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("race", 100, None, LONG).await;
        let (mut paid, mut expired, mut cancelled) = (0, 0, 0);
        for n in 0..12 {
            let id = world.ordered(&sale, "alice").await;
            world.overdue(id).await;
            let (db, orders) = (&world.servers.db, &world.servers.rows.orders);
            let user = seckill::domain::ids::UserId::parse("alice").unwrap();
            let names = [format!("a{n}"), format!("b{n}")];
            let (one, two) = (payment(&names[0], id), payment(&names[1], id));
            let request = CancelRequest { request_id: id, buyer: Some(&user), reason: "r", by: "buyer", act: None };
            let mut due = rows(db).orders.overdue(&sale, None, 500).await.unwrap();
            due.retain(|order| order.request_id == id);
            let (one, two, gone, given_up) = tokio::join!(
                orders.receive(&one, None, None),
                orders.receive(&two, None, None),
                orders.expire(&sale, due),
                orders.cancel(request)
            );
            let (one, two) = (one.unwrap().unwrap(), two.unwrap().unwrap());
            let wins = [
                applied(&one),
                applied(&two),
                gone.unwrap().is_some(),
                matches!(given_up.unwrap(), Cancelled::Now(..)),
            ];
            assert_eq!(wins.iter().filter(|won| **won).count(), 1, "order {id}: {wins:?}");
            paid += i32::from(wins[0] || wins[1]);
            expired += i32::from(wins[2]);
            cancelled += i32::from(wins[3]);
        }
        assert_eq!(paid + expired + cancelled, 12);
        assert_eq!(world.rows("payments", "TRUE").await, 24, "no payment is lost");
        assert_eq!(world.rows("payments", "state = 'APPLIED'").await, i64::from(paid));
        let back = world.number("SELECT CAST(SUM(delta) AS SIGNED) AS n FROM stock_flow WHERE kind <> 'grant'").await;
        assert_eq!(back, i64::from(-paid), "every unit that is not paid is back, once");
        world.finish().await;
    });
}

#[test]
fn one_payment_told_many_times_at_once_is_one_payment() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("published", 100, None, LONG).await;
        let id = world.ordered(&sale, "alice").await;
        let same = payment("same", id);
        let answers =
            futures::future::join_all((0..8).map(|_| world.servers.rows.orders.receive(&same, None, None))).await;
        let answers: Vec<PaymentAnswer> = answers.into_iter().map(|answer| answer.unwrap().unwrap()).collect();
        assert!(answers.iter().all(applied), "{answers:?}");
        let new = answers.iter().filter(|answer| answer.recorded == PaymentRecorded::Now).count();
        assert_eq!((new, world.rows("payments", "TRUE").await), (1, 1));
        world.finish().await;
    });
}
