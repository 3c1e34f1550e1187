//! Questions about orders on tables of millions of rows: each is answered from an index, and reads no more rows than its answer
//! needs, however many there are. `ROWS` is their number (a million); `RECORD` is a file for what was measured.
//!
//! Rows are counted by the server itself, in the session that asked. Times are printed, never judged.

use super::many_orders::{FIRST, filled};
use super::measured::Measured;
use crate::support::world::parts::mysql_store::{config, fresh, rows as table_rows, url};
use crate::support::world::run;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::order_life::OrderState;
use seckill::domain::payment::Price;
use seckill::orders::rows::{
    self as life, CancelRequest, NewPayment, OrdersQuery, REFUNDS_PAGE_MAX, RefundPlace, RefundsFilter,
};
use seckill::store::mysql::{Db, DbConfig};
use serde_json::{Value, json};
use std::time::Instant;

/// Of a page.
const PAGE: u16 = 100;
/// Rows for a page of orders of a sale in one state, or of a buyer who has many: ten thousand entries of an index, or places of two shards,
/// are counted, sorted and looked up, or fifty thousand orders read over, however many there are.
const SEARCHED: u64 = 90_000;
/// Orders of one batch that expires.
const BATCH: u16 = 500;

impl Measured {
    async fn find(&mut self, name: &'static str, most: u64, query: OrdersQuery) {
        let query = OrdersQuery { limit: PAGE, ..query };
        self.ask(name, most, async |tables| Ok(tables.orders.find(&query).await?.unwrap().orders.len())).await;
    }
}

fn sale(name: &str) -> Option<SaleId> {
    Some(SaleId::parse(name).unwrap())
}

fn request(id: u64) -> RequestId {
    RequestId::new(id).unwrap()
}

/// Pages of orders: for each walk along an index a page, and for each row of it the order and its sale.
async fn pages(measured: &mut Measured, rows: u64) {
    let none = OrdersQuery::default;
    let walk = 4 * u64::from(PAGE);
    // Of each of two shards a page of places, sorted, and the orders of one page.
    let of_sale = 10 * u64::from(PAGE);
    let middle = Some(request(FIRST + rows / 2));
    let later = Some(request(FIRST + rows / 2 + 20_000));
    measured.find("orders: newest", walk, none()).await;
    // A part of the ids of the time, of all sales.
    let of_time = 10_000 + walk;
    measured.find("orders: of a time", of_time, OrdersQuery { from: middle, before: later, ..none() }).await;
    measured.find("orders: of a sale", of_sale, OrdersQuery { sale: sale("big"), ..none() }).await;
    measured
        .find(
            "orders: of a sale and a time",
            of_time,
            OrdersQuery { sale: sale("big"), from: middle, before: later, ..none() },
        )
        .await;
    measured
        .find("orders: of a sale, deep", of_sale, OrdersQuery { sale: sale("big"), before: middle, ..none() })
        .await;
    for state in OrderState::ALL {
        measured
            .find(
                "orders: of a sale in a state",
                SEARCHED,
                OrdersQuery { sale: sale("big"), state: Some(state), ..none() },
            )
            .await;
    }
    // None of its newest orders: the page is empty, and says where the next one begins.
    let long_ago = OrdersQuery { sale: sale("rest"), state: Some(OrderState::Cancelled), ..none() };
    measured.find("orders: of a sale in a state, long ago", SEARCHED, long_ago).await;
    measured
        .find("orders: of a sale without a payment step", of_sale, OrdersQuery { sale: sale("free"), ..none() })
        .await;
    pages_of_buyers(measured, rows).await;
}

async fn pages_of_buyers(measured: &mut Measured, rows: u64) {
    let none = OrdersQuery::default;
    let walk = 4 * u64::from(PAGE);
    let middle = Some(request(FIRST + rows / 2));
    let (reseller, buyer) = (Some(UserId::parse("reseller").unwrap()), Some(UserId::parse("buyer-77").unwrap()));
    measured.find("orders: of a buyer", walk, OrdersQuery { buyer: buyer.clone(), ..none() }).await;
    measured
        .find(
            "orders: of a buyer in a state",
            walk,
            OrdersQuery { buyer: buyer.clone(), state: Some(OrderState::Unpaid), ..none() },
        )
        .await;
    measured
        .find("orders: of a buyer and a sale", walk, OrdersQuery { buyer: buyer.clone(), sale: sale("big"), ..none() })
        .await;
    measured
        .find(
            "orders: of a buyer, a sale, a state",
            walk,
            OrdersQuery { buyer, sale: sale("big"), state: Some(OrderState::Paid), ..none() },
        )
        .await;
    measured.find("orders: of a reseller", SEARCHED, OrdersQuery { buyer: reseller.clone(), ..none() }).await;
    measured
        .find(
            "orders: of a reseller, deep",
            SEARCHED,
            OrdersQuery { buyer: reseller.clone(), before: middle, ..none() },
        )
        .await;
    measured
        .find(
            "orders: of a reseller in a state",
            SEARCHED,
            OrdersQuery { buyer: reseller.clone(), state: Some(OrderState::Paid), ..none() },
        )
        .await;
    measured
        .find(
            "orders: of a reseller and a sale",
            SEARCHED,
            OrdersQuery { buyer: reseller.clone(), sale: sale("rest"), ..none() },
        )
        .await;
    measured
        .find(
            "orders: of a reseller, none in this state",
            walk,
            OrdersQuery { buyer: reseller, sale: sale("free"), state: Some(OrderState::Cancelled), ..none() },
        )
        .await;
}

/// Single orders, payments, what waits.
async fn single(measured: &mut Measured, rows: u64) {
    let ids: Vec<RequestId> = (0..500).map(|n| request(FIRST + n * (rows / 500))).collect();
    measured.ask("one order", 10, async |tables| Ok(tables.orders.get(ids[7]).await?.iter().count())).await;
    measured.ask("500 orders", 2_500, async |tables| Ok(tables.orders.of_requests(&ids).await?.len())).await;
    measured
        .ask("payments of an order", 10, async |tables| {
            Ok(tables.requests.payments_of(request(FIRST + 1)).await?.len())
        })
        .await;
    overdue(measured, rows).await;
    measured
        .ask("events that wait", 1_100, async |tables| Ok(tables.order_events.waiting(0).await?.events.len()))
        .await;
    let counted = life::REFUNDS_COUNTED_MAX.unsigned_abs();
    measured
        .ask("refunds needed: the gauge", 2 * counted + 10, async |tables| {
            Ok(usize::try_from(tables.orders.refunds_needed_count().await?).unwrap())
        })
        .await;
    refunds(measured, rows).await;
}

/// What the sweep asks. The sales: a row of their own and an entry of the index each.
async fn overdue(measured: &mut Measured, rows: u64) {
    measured.ask("overdue: which sales", 40, async |tables| Ok(tables.orders.overdue_sales().await?.len())).await;
    let page = 3 * u64::from(BATCH);
    let still = SaleId::parse("locked").unwrap();
    measured
        .ask("overdue: the first", page, async |tables| Ok(tables.orders.overdue(&still, None, BATCH).await?.len()))
        .await;
    // Behind thousands that have the same deadline.
    let mut behind = None;
    for _ in 0..rows / 10 / 2 / u64::from(BATCH) {
        behind = measured.tables.orders.overdue(&still, behind.as_ref(), BATCH).await.unwrap().pop();
    }
    measured
        .ask("overdue: a later page", page, async |tables| {
            Ok(tables.orders.overdue(&still, behind.as_ref(), BATCH).await?.len())
        })
        .await;
}

/// Money that has to go back, for a person, who gets their number too.
async fn refunds(measured: &mut Measured, rows: u64) {
    let refunds = rows / 50;
    let first = RefundsFilter { limit: REFUNDS_PAGE_MAX, ..RefundsFilter::default() };
    let of_sale = RefundsFilter { sale: sale("big"), ..first.clone() };
    let found = measured.tables.orders.refunds_needed(&first).await.unwrap();
    let last = found.payments.last().unwrap();
    let place = RefundPlace { state_at_ms: last.state_at_ms, payment_id: last.payment_id.clone() };
    let second = RefundsFilter { after: Some(place), ..first.clone() };
    for (question, wanted) in
        [("refunds needed", &first), ("refunds needed: a later page", &second), ("refunds needed of a sale", &of_sale)]
    {
        measured
            .ask(question, refunds + 2_500, async |tables| {
                Ok(tables.orders.refunds_needed(wanted).await?.payments.len())
            })
            .await;
    }
}

/// Steps: an order is locked by its key.
async fn steps(measured: &mut Measured, rows: u64) {
    let unpaid = FIRST + rows / 2;
    let orders = measured
        .tables
        .orders
        .find(&OrdersQuery {
            sale: sale("big"),
            state: Some(OrderState::Unpaid),
            before: Some(request(unpaid)),
            ..OrdersQuery { limit: 100, ..OrdersQuery::default() }
        })
        .await
        .unwrap()
        .unwrap()
        .orders;
    let id = |at: usize| orders[at].row.request_id;
    measured.ask("a payment is started", 20, async |tables| tables.orders.start(id(0), None).await.map(|_| 1)).await;
    let payment = NewPayment {
        payment_id: "new-1".into(),
        request_id: id(1),
        price: Price { amount_cents: 100, currency: "CNY".into() },
    };
    measured.ask("a payment", 20, async |tables| tables.orders.receive(&payment, None, None).await.map(|_| 1)).await;
    let late = NewPayment { payment_id: "new-2".into(), ..payment.clone() };
    measured
        .ask("a payment too much", 20, async |tables| tables.orders.receive(&late, None, None).await.map(|_| 1))
        .await;
    let cancel = CancelRequest { request_id: id(1), buyer: None, reason: "r", by: "b", act: None };
    measured.ask("a paid order is cancelled", 60, async |tables| tables.orders.cancel(cancel).await.map(|_| 1)).await;
    measured
        .ask("money goes back", 20, async |tables| tables.orders.refunded(id(1), "new-2", None).await.map(|_| 1))
        .await;
    let due = SaleId::parse("locked").unwrap();
    let batch = measured.tables.orders.overdue(&due, None, BATCH).await.unwrap();
    measured
        .ask("a batch expires", 6 * u64::from(BATCH), async |tables| {
            Ok(tables.orders.expire(&due, batch.clone()).await?.map_or(0, |batch| batch.orders))
        })
        .await;
}

#[test]
fn no_question_about_orders_reads_more_rows_than_its_answer_needs() {
    run(async {
        let rows: u64 = std::env::var("ROWS").map_or(1_000_000, |rows| rows.parse().expect("ROWS is a number"));
        let db = fresh("orders_at_size").await;
        let begun = Instant::now();
        filled(&db, rows).await;
        eprintln!("{rows} orders written in {:.0} s", begun.elapsed().as_secs_f64());
        let url = url("orders_at_size").await;
        let db = Db::connect(DbConfig { pool_max: 1, statement_timeout_ms: 120_000, ..config(url) }).unwrap();
        let mut measured = Measured { tables: table_rows(&db), db, all: Vec::new() };
        pages(&mut measured, rows).await;
        single(&mut measured, rows).await;
        steps(&mut measured, rows).await;
        if let Some(file) = std::env::var_os("RECORD") {
            let questions: Vec<Value> = measured.all.iter().map(|one| json!({
                "question": one.name, "answers": one.answers, "rows_read": one.read, "first_ms": one.first_ms, "again_ms": one.again_ms,
            })).collect();
            std::fs::write(
                file,
                serde_json::to_string_pretty(&json!({ "rows": rows, "questions": questions })).unwrap(),
            )
            .unwrap();
        }
        let too_many: Vec<_> =
            measured.all.iter().filter(|one| one.read > one.most).map(|one| (one.name, one.read, one.most)).collect();
        assert!(too_many.is_empty(), "{too_many:#?}");
    });
}
