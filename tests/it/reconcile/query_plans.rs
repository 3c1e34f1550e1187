//! No statement of P5 reads a large table from end to end, or sorts a sale (E13, M7): whatever it really sent, as the server
//! wrote it down, is explained on tables in which one sale of several has thousands of rows.

use crate::support::world::parts::mysql_store::rows;
use crate::support::world::{World, run};
use diesel::QueryableByName;
use diesel::sql_types::{Nullable, Text};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use seckill::domain::fault::Progress;
use seckill::domain::ids::SaleId;
use seckill::orders::rows::purchases::{CountedLimit, DROP_PURCHASES, PURCHASES};
use seckill::p5_reconcile::rows::books::Series;
use seckill::p5_reconcile::rows::decided;
use seckill::p5_reconcile::{Window, audit_sale};
use seckill::runtime::Worker;
use seckill_bench::baseline::mysql_bulk::{self as bulk, Bulk};
use seckill_bench::baseline::redis;
use std::collections::BTreeMap;

/// Orders of each sale; more than one piece of the audit.
const ORDERS: u64 = 30_000;
/// Tables that grow with orders.
const LARGE: [&str; 5] = ["request_outcome", "orders", "failed_request", "stock_flow", "payments"];

#[derive(QueryableByName)]
struct Sent {
    #[diesel(sql_type = Text)]
    text: String,
}

#[derive(QueryableByName, Debug)]
struct Step {
    #[diesel(sql_type = Nullable<Text>)]
    table: Option<String>,
    #[diesel(sql_type = Nullable<Text>, column_name = "type")]
    access: Option<String>,
    #[diesel(sql_type = Nullable<Text>, column_name = "Extra")]
    extra: Option<String>,
}

async fn filled(world: &World, name: &str, first: u64) -> SaleId {
    let sale = world.sale(name, 100_000, Some(1)).await;
    let db = &world.servers.db;
    bulk::prepare(db, &sale).await.unwrap();
    let bulk = Bulk { sale: &sale, shard: 0, number: 1, request_id: first, count: ORDERS };
    bulk::write(db, bulk).await.unwrap();
    redis::settled(&world.servers.redis, &sale, 0, 30_000).await.unwrap();
    // Two thirds wait for a payment, a third is paid.
    world
        .sql(&format!(
            "UPDATE orders SET state = IF(request_id % 3 = 0, 'PAID', 'UNPAID'), expire_at = NOW(3) + INTERVAL 1 HOUR WHERE sale_id = '{sale}'; \
             INSERT INTO payments (payment_id, request_id, sale_id, amount_cents, currency, state) \
             SELECT request_id, request_id, sale_id, 100, 'CNY', 'APPLIED' FROM orders WHERE sale_id = '{sale}' AND state = 'PAID'"
        ))
        .await;
    // A register with as many rows that no process waits for, of requests that no outcome names.
    world
        .sql(&format!(
            "INSERT INTO failed_request (request_id, sale_id, user_id, quantity, source, reason, payload, status) \
             SELECT 500000000 + {first} + n, '{sale}', 'u', 1, 'audit', 'SOLD_OUT', '', 'resolved' FROM bench_numbers WHERE n < 5000"
        ))
        .await;
    sale
}

/// Everything that P5 asks the database about a sale.
async fn ask(world: &World, sale: &SaleId) {
    let db = &world.servers.db;
    let row = rows(db).sales.get(sale).await.unwrap().unwrap();
    let audit = audit_sale(&world.reconcile_context(), &row, Window::Now).await.unwrap();
    assert!(audit.consistent(), "{audit:#?}");
    let mut settings = world.settings.p5_reconcile.clone();
    settings.interval_ms = 0;
    let mut reconcile = world.servers.reconcile(&world.settings, settings);
    for _ in 0..3 {
        assert_eq!(reconcile.step().await.unwrap(), Progress::Idle);
        assert!(reconcile.leads());
    }
    let series = Series { epoch: 1, shard: 0 };
    assert_eq!(rows(db).decided.page(sale, series, 20_000).await.unwrap().requests.len(), decided::PAGE_MAX);
    assert!(rows(db).decided.unnumbered(sale, series, 0).await.unwrap().requests.is_empty());
    assert!(rows(db).books.ages_above_ms(sale, series, &[29_999, 30_000]).await.unwrap()[0] > Some(0));
    assert_eq!(rows(db).books.movements(std::slice::from_ref(sale)).await.unwrap().len(), 1);
    let other = SaleId::parse("plans-later").unwrap();
    for (counted_in, sales, ordered) in [(PURCHASES, vec![sale], 30_000), (DROP_PURCHASES, vec![sale, &other], 60_000)]
    {
        let limit = CountedLimit { counted_in, id: sale.as_str(), sales: &sales };
        let (owned, buyers) = rows(db).orders.compare(limit, 10).await.unwrap().unwrap();
        assert_eq!((owned.noted, owned.ordered, buyers.len()), (0, ordered, 10));
    }
    // An order whose outcome has no number: the units are summed in the orders' own table.
    world.sql(&format!("UPDATE request_outcome SET number = NULL WHERE sale_id = '{sale}' AND number = 77")).await;
    assert!(!world.audit(sale, Window::Now).await.consistent(), "a number has no outcome");
    world.sql(&format!("UPDATE request_outcome SET number = 77 WHERE sale_id = '{sale}' AND number IS NULL")).await;
}

/// The statements that name the sale, as text or as a literal, or carry a mark of their own, each sort once. The log has one row for each, with its values.
async fn sent(session: &mut AsyncMysqlConnection, sale: &SaleId) -> BTreeMap<String, String> {
    let literal: String = sale.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    let query = format!(
        "SELECT CONVERT(argument USING utf8mb4) AS text FROM mysql.general_log WHERE command_type = 'Execute' \
         AND (argument LIKE '%{sale}%' OR argument LIKE '%{literal}%' OR argument LIKE '%failed_requests::close_settled%') AND argument NOT LIKE '%general_log%'"
    );
    let all: Vec<Sent> = diesel::sql_query(query).load(session).await.expect("the general log");
    let mut kinds = BTreeMap::new();
    for Sent { text } in all {
        // Without its values.
        let mut kind: String = text.chars().filter(|c| !c.is_ascii_digit()).take(400).collect();
        if let Some((before, after)) = kind.split_once("WHERE") {
            kind = format!("{before}{}", after.replace('\'', ""));
        }
        kinds.entry(kind).or_insert(text);
    }
    kinds
}

#[test]
fn no_statement_of_p5_reads_a_table_from_end_to_end_or_sorts_a_sale() {
    run(async {
        let world = World::with(&[], &[]).await;
        filled(&world, "plans-before", 1_000_000).await;
        let sale = filled(&world, "plans-sale", 2_000_000).await;
        filled(&world, "plans-later", 3_000_000).await;
        bulk::finish(&world.servers.db).await.unwrap();
        let mut session = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        diesel::sql_query("ANALYZE TABLE failed_request").execute(&mut session).await.unwrap();
        session.batch_execute("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = 1").await.unwrap();
        ask(&world, &sale).await;
        session.batch_execute("SET GLOBAL general_log = 0").await.unwrap();

        let sent = sent(&mut session, &sale).await;
        let marks = [
            "books::tally",
            "books::numbers",
            "books::highest",
            "books::known",
            "books::journal",
            "books::grants",
            "books::failures",
            "books::orders",
            "books::age",
            "books::movements",
            "purchases::sums",
            "decided::page",
            "decided::unnumbered",
            "failed_requests::close_settled",
            "books::orders_count",
            "books::life",
            "books::payments",
        ];
        for mark in marks {
            assert!(sent.values().any(|text| text.contains(mark)), "{mark} was not sent: {:#?}", sent.keys());
        }
        // The row of an audit holds the names of its terms.
        let of_large = |text: &&String| !text.contains("audit_runs") && LARGE.iter().any(|table| text.contains(table));
        for text in sent.values().filter(of_large) {
            let steps: Vec<Step> =
                diesel::sql_query(format!("EXPLAIN FORMAT=TRADITIONAL {text}")).load(&mut session).await.expect(text);
            // Sent on a difference only, which it groups by buyers: of it, the tables' own steps count.
            let of_tables = |step: &&Step| {
                let table = step.table.as_deref().unwrap_or_default();
                // It has a row for each sale that is gone, here none: the server walks what is empty.
                !table.starts_with('<') && table != "archived_sales"
            };
            for step in steps.iter().filter(of_tables) {
                let access = step.access.as_deref().unwrap_or("none");
                assert!(!["ALL", "index", "index_merge"].contains(&access), "{text}\n{steps:#?}");
                let walks =
                    ["tally", "numbers", "journal", "books::age", "decided::"].iter().any(|walk| text.contains(walk));
                let joined = ["o", "f"].contains(&step.table.as_deref().unwrap_or_default());
                assert!(!walks || joined || access == "range", "all of a series is looked up: {text}\n{steps:#?}");
                assert!(
                    !text.contains("books::known") || step.extra.as_deref().unwrap_or_default().contains("group-by"),
                    "each number is read for the highest one: {text}\n{steps:#?}"
                );
                let extra = step.extra.as_deref().unwrap_or_default();
                // Those without a number are the few losers of numbers given twice.
                let sorts_few = text.contains("decided::unnumbered") && !extra.contains("temporary");
                assert!(sorts_few || !extra.contains("filesort") && !extra.contains("temporary"), "{text}\n{steps:#?}");
            }
        }
        world.finish().await;
    });
}
