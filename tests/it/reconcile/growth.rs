//! A round of P5 reads what is new, however many orders, payments and grants there are (E13), and whatever a person has to live with.

use crate::support::basics::raw_commands::try_redis;
use crate::support::processes::own_redis;
use crate::support::world::parts::mysql_store::rows;
use crate::support::world::parts::rows_read::{one_session, rows_read};
use crate::support::world::{World, eventually, run};
use seckill::domain::fault::Progress;
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::rows::books::{Books, BooksQuery, GrantsSum, JournalSum, OrdersTurn};
use seckill::p5_reconcile::{Reconcile, Window};
use seckill::roles::Role::{Api, Consumer, Reconcile as ReconcileRole, Relay};
use seckill::roles::Servers;
use seckill::runtime::Worker;
use seckill::store::mysql::Db;
use seckill_bench::baseline::mysql_bulk::{self as bulk, Bulk};
use seckill_bench::baseline::redis::given_back;

/// Orders of a sale that is large for the audit, and how many it grows by: whole pieces, so that the last piece stays as large.
const ORDERS: u64 = 110_000;
const MORE: u64 = 100_000;
/// Rows that rounds differ by: what a round writes and reads again of its own.
const SLACK: u64 = 2_000;

/// A reconciler of this process that works whenever it is asked to, on sessions of its own.
struct Rounds<'a> {
    world: &'a World,
    db: Db,
    reconcile: Reconcile,
}

impl<'a> Rounds<'a> {
    async fn start(world: &'a World) -> Self {
        let db = one_session(world.settings.mysql.url.expose());
        let servers = Servers { db: db.clone(), rows: rows(&db), ..world.servers.clone() };
        let mut settings = world.settings.p5_reconcile.clone();
        (settings.interval_ms, settings.window_ms) = (0, 600_000);
        let mut rounds = Self { world, db, reconcile: servers.reconcile(&world.settings, settings) };
        eventually("it leads", async || {
            rounds.reconcile.step().await.expect("a step");
            rounds.reconcile.leads()
        })
        .await;
        rounds
    }

    /// What one round reads of the database: rows and index entries.
    async fn rows(&mut self) -> u64 {
        let before = rows_read(&self.db).await;
        assert_eq!(self.reconcile.step().await.expect("a round"), Progress::Idle);
        rows_read(&self.db).await - before
    }

    /// The most that one of three rounds reads.
    async fn most_rows(&mut self) -> u64 {
        let mut most = 0;
        for _ in 0..3 {
            most = most.max(self.rows().await);
        }
        most
    }

    /// How often ledgers and buyers were walked, by Redis' own count.
    async fn walks(&self) -> u64 {
        let url = self.world.settings.redis.url.expose();
        let stats = try_redis(url, &["INFO", "commandstats"]).await.expect("redis");
        let line =
            stats.as_str().unwrap_or_default().lines().find_map(|line| line.strip_prefix("cmdstat_hscan:calls="));
        line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().expect("a number"))
    }
}

/// Adds orders that landed, were trimmed, and ended: of three one expired, two are paid.
async fn grow(world: &World, sale: &SaleId, (before, count): (u64, u64)) {
    let (db, redis, mut at) = (&world.servers.db, &world.servers.redis, before);
    bulk::prepare(db, sale).await.unwrap();
    while at < before + count {
        let piece = bulk::PIECE.min(before + count - at);
        let bulk = Bulk { sale, shard: 0, number: at + 1, request_id: 1_000_000 + at, count: piece };
        bulk::write(db, bulk).await.unwrap();
        let (grant, units) = (format!("return-{}", bulk.request_id), bulk::end(db, bulk).await.unwrap());
        given_back(redis, sale, 0, (&grant, units)).await.unwrap();
        at += piece;
    }
    let (meta, total) = (redis.keys.meta(0, sale), (before + count).to_string());
    let fields = ["number", "accepted", "trimmed_count", "trimmed_ordered"];
    let counters: Vec<&str> = fields.iter().flat_map(|field| [*field, total.as_str()]).collect();
    world.redis(&[&["HSET", meta.as_str()][..], &counters].concat()).await;
    world.redis(&["DECRBY", &redis.keys.stock(0, sale), &count.to_string()]).await;
    // With statistics, as a server has them some time after.
    bulk::finish(db).await.unwrap();
}

#[test]
fn a_round_beside_a_sale_with_a_payment_step_reads_no_more_rows_when_it_has_twice_the_orders() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("grown", 1_000_000, Some(1)).await;
        grow(&world, &sale, (0, ORDERS)).await;
        let mut rounds = Rounds::start(&world).await;
        let first = rows_read(&rounds.db).await;
        assert!(first > 3 * ORDERS, "the first round counts everything: {first}");
        let few = rounds.most_rows().await;
        grow(&world, &sale, (ORDERS, MORE)).await;
        rounds.most_rows().await;
        let many = rounds.most_rows().await;
        assert!(many <= few + SLACK, "{few} rows beside {ORDERS} orders, {many} beside {}", ORDERS + MORE);
        assert_eq!(world.rows("audit_findings", "1 = 1").await, 0);
        assert_eq!(world.rows("audit_runs", "consistent = 0").await, 0);
        let sheet =
            "SELECT CAST(JSON_VALUE(sheet, '$.expired') AS SIGNED) AS n FROM audit_runs ORDER BY run_id DESC LIMIT 1";
        let expired = world.rows("orders", "state = 'EXPIRED'").await;
        assert_eq!(world.number(sheet).await, expired, "what ended is known each round");
        world.finish().await;
    });
}

#[test]
fn a_large_sale_is_counted_anew_in_each_round_while_an_equation_does_not_hold() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("uneven", 1_000_000, Some(1)).await;
        grow(&world, &sale, (0, ORDERS)).await;
        let mut rounds = Rounds::start(&world).await;
        let few = rounds.most_rows().await;
        assert!(few < ORDERS, "what is remembered is not counted: {few}");
        // The journal has units that the stock has not.
        world.sql("UPDATE sales SET stock = stock - 1").await;
        rounds.rows().await;
        assert!(world.rows("audit_findings", "code = 'UNBALANCED'").await > 0);
        for round in 0..2 {
            let rows = rounds.rows().await;
            assert!(rows > few + ORDERS, "round {round}: {rows} rows, {few} where all is well");
        }
        world.sql("UPDATE sales SET stock = stock + 1").await;
        rounds.rows().await;
        let again = rounds.most_rows().await;
        assert!(again <= few + SLACK, "{again} rows, {few} before");
        world.finish().await;
    });
}

async fn read(db: &Db, sale: &SaleId, grants_before: GrantsSum) -> (Books, u64) {
    let orders = OrdersTurn::All { by_outcome: 0 };
    let query = BooksQuery { asked: &[], flow_before: JournalSum::default(), grants_before, orders };
    let before = rows_read(db).await;
    let books = rows(db).books.read(sale, query).await.unwrap().expect("the sale");
    (books, rows_read(db).await - before)
}

#[test]
fn grants_that_redis_has_had_for_a_while_are_summed_once() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("granted", 100, Some(1)).await;
        let db = one_session(world.settings.mysql.url.expose());
        let grants = |from: u32, to: u32, applied: &str| {
            let rows: Vec<String> =
                (from..to).map(|no| format!("('granted', 'return-{no}', 'reclaim', 2, 1, {applied})")).collect();
            format!(
                "INSERT INTO stock_grants (sale_id, grant_id, kind, quantity, epoch, applied_at) VALUES {}",
                rows.join(",")
            )
        };
        world.sql(&grants(0, 3_000, "NOW(3) - INTERVAL 1 HOUR")).await;
        let (first, rows) = read(&db, &sale, GrantsSum::default()).await;
        assert_eq!(first.grants, 6_100);
        assert!(rows > 3_000, "{rows}");
        world.sql(&grants(3_000, 3_001, "NOW(3)")).await;
        world.sql(&grants(3_001, 3_002, "NULL")).await;
        let (second, rows) = read(&db, &sale, first.grants_settled).await;
        assert_eq!(second.grants, 6_104);
        assert!(rows < 500, "{rows}");
        // A mark that was young, and one that was not there: nothing is counted twice or left out.
        world.sql("UPDATE stock_grants SET applied_at = NOW(3) WHERE applied_at IS NULL").await;
        let (third, _) = read(&db, &sale, second.grants_settled).await;
        assert_eq!(third.grants, 6_104);
        // Another epoch has its own grants.
        world.sql("UPDATE sales SET epoch = 2").await;
        world.sql("INSERT INTO stock_grants (sale_id, grant_id, kind, quantity, epoch, applied_at) VALUES ('granted', 'rebuild-2', 'rebuild', 70, 2, NOW(3))").await;
        let (rebuilt, _) = read(&db, &sale, third.grants_settled).await;
        assert_eq!((rebuilt.grants, rebuilt.grants_known), (70, true));
        world.sql("DELETE FROM stock_grants WHERE grant_id <> 'first'; UPDATE sales SET epoch = 1").await;
        world.finish().await;
    });
}

/// A request that the database has lost and Redis has forgotten, as a restored backup leaves it; the units are in stock again.
pub(super) async fn lose(world: &World, sale: &SaleId, number: u32) {
    let of = format!("request_id = (SELECT request_id FROM request_outcome WHERE number = {number})");
    world
        .sql(&format!(
            "BEGIN; DELETE FROM orders WHERE {of}; DELETE FROM request_outcome WHERE number = {number}; \
             UPDATE sales SET stock = stock + 1; \
             INSERT INTO stock_flow (sale_id, delta, kind, ref) VALUES ('{sale}', 1, 'correction', 'x{number}'); COMMIT"
        ))
        .await;
}

/// Until the ledger has forgotten everything.
pub(super) async fn forgotten(world: &World, sale: &SaleId) {
    let forgets = world.extra_roles(&[ReconcileRole], |settings| settings.p5_reconcile.ledger_retention_s = 1);
    let ledger = world.servers.redis.keys.ledger(0, sale);
    eventually("an empty ledger", async || world.redis(&["HLEN", &ledger]).await.as_u64() == Some(1)).await;
    forgets.stop().await;
}

#[test]
fn a_gap_is_examined_once_and_costs_later_rounds_nothing() {
    run(async {
        let (_server, mut world) = own_redis::world("gapped", &[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("gapped", 100, Some(1)).await;
        for user in 0..30 {
            world.bought(&sale, &format!("u{user}")).await;
        }
        assert!(world.settled(&sale).await.consistent());
        forgotten(&world, &sale).await;
        world.stop_roles().await;

        let mut rounds = Rounds::start(&world).await;
        rounds.rows().await;
        let (walks, rows) = (rounds.walks().await, rounds.most_rows().await);
        assert_eq!(rounds.walks().await, walks, "nothing is new");

        let gaps = "code = 'P5-RC4'";
        lose(&world, &sale, 5).await;
        rounds.rows().await;
        assert!(world.rows("audit_findings", gaps).await > 0, "it is found");
        assert_eq!(world.rows("failed_request", "reason = 'GAP'").await, 1, "its buyer is named");
        rounds.rows().await;
        let walks = rounds.walks().await;
        let open = rounds.most_rows().await;
        assert_eq!(rounds.walks().await, walks, "the gap stands");
        assert!(open <= rows + 200, "{rows} rows a round without a gap, {open} with one");

        // Another one is news.
        lose(&world, &sale, 9).await;
        rounds.rows().await;
        assert_eq!(world.rows("failed_request", "reason = 'GAP'").await, 2, "its buyer is named, too");
        assert!(world.rows("audit_findings", &format!("{gaps} AND detail LIKE '%number 9 %'")).await > 0);

        for number in [5, 9] {
            let numbers = format!("1:0:{number}-{number}");
            world.cli(&["finding", "close", "gapped", "--gap", &numbers, "--reason", "refunded by the shop"]).exits(0);
        }
        rounds.rows().await;
        let walks = rounds.walks().await;
        let closed = rounds.most_rows().await;
        assert_eq!(rounds.walks().await, walks, "closed gaps are known");
        assert!(closed <= rows + 200, "{rows} rows a round without a gap, {closed} with closed ones");
        drop(rounds);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.sql("DELETE FROM failed_request").await;
        world.finish().await;
    });
}
