//! What of a buyer is on its way in the database: whatever will still be written, sent or paid under the buyer's id. Reads only.

use crate::buyers::rows::forgotten::ForgottenRows;
use crate::buyers::rows::walked::bytes;
use crate::buyers::spelling::Names;
use crate::domain::ids::{RequestId, UserId};
use crate::store::mysql::fault::DbError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// Rows of one kind that are read; with more, the rest is read when these are done.
const READ_MAX: usize = 1_000;

/// Something of a buyer that is on its way in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowUnderWay {
    /// An order that waits for its payment.
    Unpaid(u64),
    /// Money of an order that has to go back.
    Refund(u64),
    /// A failed request that a person or P5 still decides.
    Failed(u64),
    /// An event of an outcome that the broker does not have yet.
    OutcomeEvent(u64),
    /// The same of an order.
    OrderEvent(u64),
    /// A delivery that its receiver does not have yet: the webhook, and the delivery.
    Delivery(String, u64),
    /// A grant that Redis does not have yet: the sale, and the grant.
    Grant(String, String),
}

#[derive(QueryableByName)]
struct NumberRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    n: u64,
}

#[derive(QueryableByName)]
struct BodyRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    n: u64,
    #[diesel(sql_type = Text)]
    place: String,
    #[diesel(sql_type = Text)]
    named: String,
    #[diesel(sql_type = Binary)]
    body: Vec<u8>,
}

/// A statement, and what a row of it is.
type Searched<Row> = (String, fn(Row) -> RowUnderWay);

/// Whether this column may name the buyer.
fn may_name(column: &str, names: &Names) -> String {
    let finds = |text: &String| format!("LOCATE({}, CAST({column} AS BINARY)) > 0", bytes(text.as_bytes()));
    names.spelled().iter().map(finds).collect::<Vec<_>>().join(" OR ")
}

impl ForgottenRows {
    /// One of each kind, at most.
    ///
    /// # Errors
    /// [`DbError`].
    pub(crate) async fn under_way(&self, buyer: &UserId, names: &Names) -> Result<Vec<RowUnderWay>, DbError> {
        let id = bytes(buyer.as_str().as_bytes());
        let mut found = Vec::new();
        for (statement, kind) in Self::numbers(&id) {
            found.extend(self.first(&statement).await?.map(kind));
        }
        for (statement, kind) in Self::bodies(&id, names) {
            let rows: Vec<BodyRow> = self
                .db
                .run("forget_under_way", async |conn| Ok(diesel::sql_query(&statement).load(conn).await?))
                .await?;
            found.extend(rows.into_iter().find(|row| names.are_in_body(&row.body)).map(kind));
        }
        Ok(found)
    }

    /// What is found by a number, one at most.
    fn numbers(id: &str) -> [Searched<u64>; 3] {
        [
            (
                format!(
                    "SELECT request_id AS n FROM orders WHERE user_id = {id} AND state = 'UNPAID' UNION ALL \
                     SELECT o.request_id AS n FROM sales s JOIN orders o ON o.sale_id = s.sale_id AND o.state = 'UNPAID' \
                     WHERE s.limit_by = 'person' AND o.person = {id} LIMIT 1"
                ),
                RowUnderWay::Unpaid,
            ),
            (
                format!(
                    "SELECT p.request_id AS n FROM orders o JOIN payments p ON p.request_id = o.request_id \
                     WHERE o.user_id = {id} AND p.state = 'REFUND_NEEDED' LIMIT 1"
                ),
                RowUnderWay::Refund,
            ),
            (
                format!(
                    "SELECT request_id AS n FROM failed_request WHERE status = 'open' AND {id} IN (user_id, person) LIMIT 1"
                ),
                RowUnderWay::Failed,
            ),
        ]
    }

    /// What is found by a body that names the buyer.
    fn bodies(id: &str, names: &Names) -> [Searched<BodyRow>; 4] {
        [
            (Self::events("outcome_event", "request_id", names), |row| RowUnderWay::OutcomeEvent(row.n)),
            (Self::events("order_events", "request_id", names), |row| RowUnderWay::OrderEvent(row.n)),
            (
                format!(
                    "SELECT delivery_id AS n, CAST(webhook AS CHAR) AS place, '' AS named, body FROM webhook_deliveries \
                     WHERE state = 'WAITING' AND ({}) LIMIT {READ_MAX}",
                    may_name("body", names)
                ),
                |row| RowUnderWay::Delivery(row.place, row.n),
            ),
            (
                format!(
                    "SELECT CAST(0 AS UNSIGNED) AS n, CAST(g.sale_id AS CHAR) AS place, CAST(g.grant_id AS CHAR) AS named, \
                     CAST(g.buyers AS BINARY) AS body \
                     FROM (SELECT DISTINCT sale_id FROM orders WHERE user_id = {id}) AS o \
                     JOIN sales s ON s.sale_id = o.sale_id AND s.status <> 'closed' \
                     JOIN stock_grants g ON g.sale_id = o.sale_id AND g.epoch = s.epoch AND g.applied_at IS NULL \
                     WHERE g.buyers IS NOT NULL AND ({}) LIMIT {READ_MAX}",
                    may_name("g.buyers", names)
                ),
                |row| RowUnderWay::Grant(row.place, row.named),
            ),
        ]
    }

    fn events(table: &str, number: &str, names: &Names) -> String {
        format!(
            "SELECT {number} AS n, '' AS place, '' AS named, body FROM {table} WHERE {} LIMIT {READ_MAX}",
            may_name("body", names)
        )
    }

    async fn first(&self, statement: &str) -> Result<Option<u64>, DbError> {
        let rows: Vec<NumberRow> =
            self.db.run("forget_under_way", async |conn| Ok(diesel::sql_query(statement).load(conn).await?)).await?;
        Ok(rows.into_iter().next().map(|row| row.n))
    }

    /// Which of these requests are the buyer's, by the database.
    ///
    /// # Errors
    /// [`DbError`].
    pub(crate) async fn own_requests(&self, buyer: &UserId, ids: &[RequestId]) -> Result<Option<u64>, DbError> {
        let id = bytes(buyer.as_str().as_bytes());
        let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
        if list.is_empty() {
            return Ok(None);
        }
        let list = list.join(", ");
        self.first(&format!(
            "SELECT request_id AS n FROM orders WHERE request_id IN ({list}) AND user_id = {id} UNION ALL \
             SELECT request_id AS n FROM failed_request WHERE request_id IN ({list}) AND user_id = {id} LIMIT 1"
        ))
        .await
    }
}
