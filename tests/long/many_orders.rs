//! Tables with any number of orders of several sales, their payments and events, as their life leaves them.

use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use seckill::store::mysql::Db;

/// The first request id.
pub const FIRST: u64 = 1 << 40;
const PIECE: u64 = 50_000;

async fn sql(db: &Db, text: &str) {
    db.patient().run("test_sql", async |conn| Ok(conn.batch_execute(text).await?)).await.unwrap();
}

/// Five sales that sell at the same time: a large one, one that stands still with overdue orders, a small one with overdue orders
/// behind those, one without a payment step, and the rest, whose older half is cancelled. One buyer of a hundred orders is a
/// reseller with as many orders.
pub async fn filled(db: &Db, rows: u64) {
    let sale = |name: &str, within: &str| {
        format!(
            "INSERT INTO sales (sale_id, product_id, title, price_cents, currency, granted, stock, starts_at, ends_at, status, pay_within_s) \
             VALUES ('{name}', 'p', 't', 100, 'CNY', 100000000, 50000000, NOW(3), NOW(3) + INTERVAL 1 DAY, 'warmed', {within})"
        )
    };
    for (name, within) in [("big", "60"), ("locked", "60"), ("due", "60"), ("free", "NULL"), ("rest", "60")] {
        sql(db, &sale(name, within)).await;
    }
    sql(db, "CREATE TABLE numbers (n INT UNSIGNED NOT NULL PRIMARY KEY) ENGINE = InnoDB").await;
    let digits = "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
    sql(db, &format!(
        "INSERT INTO numbers SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d FROM {digits} a, {digits} b, {digits} c, {digits} e, {digits} f"
    )).await;
    for piece in 0..rows.div_ceil(PIECE) {
        let (first, count) = (FIRST + piece * PIECE, PIECE.min(rows - piece * PIECE));
        let (buyers, half) = ((rows / 5).max(1), FIRST + rows / 2);
        sql(db, &format!(
            "INSERT INTO orders (request_id, sale_id, user_id, quantity, amount_cents, source, accepted_at, state, state_at, pay_by, expire_at, created_at) \
             SELECT id, sale, IF(id % 100 = 7, 'reseller', CONCAT('buyer-', h % {buyers})), 1, 100, 'relay', at, \
             CASE WHEN sale = 'free' THEN NULL WHEN sale IN ('locked', 'due') THEN 'UNPAID' WHEN sale = 'rest' THEN IF(id < {half}, 'CANCELLED', 'PAID') ELSE \
               ELT(1 + h % 20, 'PAID','PAID','PAID','PAID','PAID','PAID','PAID','PAID','PAID','PAID','EXPIRED','EXPIRED','EXPIRED','EXPIRED','EXPIRED','CANCELLED','UNPAID','UNPAID','UNPAID','UNPAID') END, \
             at, at, CASE sale WHEN 'locked' THEN at WHEN 'due' THEN NOW(3) - INTERVAL 1 MINUTE ELSE NOW(3) + INTERVAL 1 DAY END, at FROM \
             (SELECT {first} + n AS id, CRC32({first} + n) AS h, NOW(3) - INTERVAL 1 HOUR AS at, \
              CASE WHEN n % 100 < 40 THEN 'big' WHEN n % 100 < 50 THEN 'locked' WHEN n % 100 = 50 THEN 'due' WHEN n % 100 < 71 THEN 'free' ELSE 'rest' END AS sale \
              FROM numbers WHERE n < {count} ORDER BY n) AS made"
        )).await;
        sql(db, &format!(
            "INSERT INTO request_outcome (request_id, kind, sale_id, shard, epoch, number, payload_hash) \
             SELECT request_id, 'ORDER', sale_id, request_id % 2, 1, request_id, REPEAT('h', 16) FROM orders WHERE request_id BETWEEN {first} AND {}",
            first + count - 1
        )).await;
        sql(db, &format!(
            "INSERT INTO payments (payment_id, request_id, sale_id, amount_cents, currency, state, reason) \
             SELECT CONCAT('pay-', request_id), request_id, sale_id, 100, 'CNY', IF(request_id % 50 = 3, 'REFUND_NEEDED', 'APPLIED'), IF(request_id % 50 = 3, 'ALREADY_PAID', NULL) \
             FROM orders WHERE request_id BETWEEN {first} AND {} AND state = 'PAID'",
            first + count - 1
        )).await;
    }
    sql(db, "INSERT INTO order_events (request_id, event_key, body) SELECT n + 1, 'order.expired', REPEAT('x', 200) FROM numbers").await;
    sql(db, "DROP TABLE numbers").await;
    for table in ["orders", "request_outcome", "payments", "order_events"] {
        db.patient()
            .run("test_analyze", async |conn| {
                Ok(diesel::sql_query(format!("ANALYZE TABLE {table}")).execute(conn).await?)
            })
            .await
            .unwrap();
    }
}
