//! The store for MySQL/MariaDB on databases of its own, without any role: requests to land, and the sums that must hold.

use crate::support::world::{eventually, shared};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::message::OrderMessage;
use seckill::domain::outcome::Verdict;
use seckill::domain::policy::{PurchasePolicy, Quantity};
use seckill::domain::request::Purchase;
use seckill::domain::sale::{Sale, SaleStatus};
use seckill::domain::webhook::WebhookSubscriptions;
use seckill::events::webhooks::rows::Subscriptions;
use seckill::p5_reconcile::rows::books;
use seckill::p5_reconcile::rows::books::{
    Books, BooksQuery, GrantsSum, JournalSum, KnownSeries, OrdersTurn, SeriesQuery,
};
use seckill::roles::DatabaseRows;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::mysql::{Db, DbConfig, DbError, migrate};

/// When everything here happens.
pub const NOW_MS: i64 = 1_763_720_000_123;

/// Settings of a pool.
pub fn config(url: String) -> DbConfig {
    DbConfig {
        address: url.into(),
        pool_max: 16,
        wait_timeout_ms: 5_000,
        connect_timeout_ms: 3_000,
        statement_timeout_ms: 5_000,
    }
}

/// The address of a database of this name on the shared server.
pub async fn url(name: &str) -> String {
    shared().await.urls().mysql_url.replace("/seckill", &format!("/store_{name}"))
}

/// A migrated database of its own.
pub async fn fresh(name: &str) -> Db {
    let url = url(name).await;
    migrate::migrate(&url).await.unwrap();
    Db::connect(config(url)).unwrap()
}

/// A sale's id.
pub fn sale_id(text: &str) -> SaleId {
    SaleId::parse(text).unwrap()
}

/// A sale, not warmed.
pub fn sale(id: &str, stock: i64, policy: PurchasePolicy) -> Sale {
    Sale {
        title: "限量 title".into(),
        price_cents: 9_900,
        policy,
        token_required: true,
        waiting_room: true,
        ..Sale::draft(sale_id(id), stock, NOW_MS, NOW_MS + 3_600_000)
    }
}

/// A request as Redis accepted it; its number is its id.
pub fn accepted(sale: &str, rid: u64, user: &str, quantity: u32) -> OrderMessage {
    OrderMessage {
        purchase: Purchase {
            request_id: RequestId::new(rid).unwrap(),
            sale_id: sale_id(sale),
            user_id: UserId::parse(user).unwrap(),
            person: None,
            quantity: Quantity::new(quantity).unwrap(),
        },
        shard: 0,
        epoch: 1,
        number: rid,
        accepted_at_ms: NOW_MS,
    }
}

/// One unit for each buyer of `rids`.
pub fn crowd(sale: &str, rids: std::ops::RangeInclusive<u64>) -> Vec<OrderMessage> {
    rids.map(|rid| accepted(sale, rid, &format!("u{rid}"), 1)).collect()
}

/// The handles on this database, for no webhook. They know nothing of it yet.
pub fn rows(db: &Db) -> DatabaseRows {
    DatabaseRows::new(db, Subscriptions::new(db.clone(), WebhookSubscriptions::default()))
}

/// Lands them; none may end in an error.
pub async fn verdicts(db: &Db, items: &[OrderMessage]) -> Vec<Verdict> {
    rows(db).persister.persist_all(items, PersistSource::Relay).await.into_iter().map(Result::unwrap).collect()
}

/// Lands them once no sale of theirs is left alone any more because its row was locked.
pub async fn verdicts_when_unlocked(db: &Db, items: &[OrderMessage]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    eventually("the sale is tried again", async || {
        verdicts = rows(db).persister.persist_all(items, PersistSource::Relay).await;
        !verdicts.iter().any(|verdict| matches!(verdict, Err(DbError::SaleLocked(_))))
    })
    .await;
    verdicts.into_iter().map(Result::unwrap).collect()
}

/// Every equation that the database alone can answer.
pub async fn assert_sound(db: &Db, sale: &str, ordered: i64) {
    let books = books_of(db, sale).await;
    let counted: i64 = books.series.iter().flat_map(|read| &read.pieces).map(|piece| piece.tally.ordered).sum();
    assert_eq!(counted - books.flow.returned(), ordered, "{books:?}");
    assert_eq!(books.granted, books.stock + ordered, "{books:?}");
    assert_eq!(books.stock, books.flow.sum, "{books:?}");
}

/// What the database says of a sale, counted from the beginning.
pub async fn books_of(db: &Db, sale: &str) -> Books {
    let known = rows(db).books.known(&sale_id(sale)).await.unwrap();
    let ask = |known: &KnownSeries| SeriesQuery {
        series: known.series,
        after: 0,
        to: known.number,
        holes: vec![],
        above: false,
    };
    let asked: Vec<SeriesQuery> = known.iter().map(ask).collect();
    rows(db)
        .books
        .read(
            &sale_id(sale),
            BooksQuery {
                asked: &asked,
                flow_before: JournalSum::default(),
                grants_before: GrantsSum::default(),
                orders: OrdersTurn::All { by_outcome: 0 },
            },
        )
        .await
        .unwrap()
        .unwrap()
}

/// A session of its own, which waits a second for locks.
pub async fn session_of(url: &str) -> AsyncMysqlConnection {
    let mut session = AsyncMysqlConnection::establish(url).await.unwrap();
    session.batch_execute("SET SESSION innodb_lock_wait_timeout = 1").await.unwrap();
    session
}

/// What an error was taken for, in a word.
pub fn class(error: &DbError) -> &'static str {
    match error {
        DbError::Duplicate(_) => "duplicate",
        DbError::Deadlock => "deadlock",
        DbError::LockWait => "lock wait",
        DbError::SaleLocked(_) => "sale locked",
        DbError::LeftUntried => "left untried",
        DbError::UnknownSale(_) => "unknown sale",
        DbError::Unavailable(_) => "unavailable",
        DbError::Timeout(_) => "timeout",
        DbError::WrongNode(_) => "wrong node",
        DbError::Damaged(_) => "damaged",
        DbError::Other(_) => "other",
    }
}
