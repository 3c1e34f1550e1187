//! What a buyer has bought: orders, units that count against limits, and purchases that came back. Found by the keys of buyers and sales.
//!
//! Input: the buyer and the pseudonym. Output: rows with the pseudonym, in small transactions. The sums of a sale and of a drop are the same
//! at each moment, whatever number of orders has which name, so no audit sees a difference. A crash leaves both names; a repeat does
//! the rest.

use crate::buyers::rows::forgotten::{Forgetting, ForgottenRows};
use crate::buyers::rows::walked::bytes;
use crate::buyers::spelling::{Names, Spelling};
use crate::domain::ids::{SaleId, UserId};
use crate::store::mysql::codes::read_sale_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::transaction::transaction;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};

/// Orders of one transaction.
const ORDERS: usize = 500;
/// Grants of one transaction.
const GRANTS: usize = 200;
/// Sales of one buyer that are asked for at once.
const SALES: usize = 1_000;

#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[derive(QueryableByName)]
struct SaleRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
}

/// A sale or a drop in which the buyer has units.
#[derive(QueryableByName)]
struct OwnedRow {
    #[diesel(sql_type = Binary)]
    id: Vec<u8>,
}

#[derive(QueryableByName)]
struct ReturnedRow {
    #[diesel(sql_type = Binary)]
    grant_id: Vec<u8>,
    #[diesel(sql_type = Binary)]
    buyers: Vec<u8>,
}

fn literal(user: &UserId) -> String {
    bytes(user.as_str().as_bytes())
}

impl ForgottenRows {
    /// Orders, and units in sales and drops, that have this name, together; a few at most.
    ///
    /// # Errors
    /// [`DbError`].
    pub(crate) async fn bought(&self, buyer: &UserId) -> Result<u64, DbError> {
        let of = literal(buyer);
        let some = |rows: &str| format!("(SELECT COUNT(*) FROM (SELECT 1 FROM {rows} LIMIT 1) AS few)");
        let counted = format!(
            "/* forget::bought */ SELECT {} + {} + {} + {} + {} AS n",
            some(&format!("orders WHERE user_id = {of}")),
            some(&format!("sales s JOIN purchases p ON p.sale_id = s.sale_id AND p.user_id = {of}")),
            some(&format!("drops d JOIN drop_purchases p ON p.drop_id = d.drop_id AND p.user_id = {of}")),
            some(&format!("sale_lines l JOIN line_entries e ON e.sale_id = l.sale_id AND e.user_id = {of}")),
            some(&format!("sale_lines l JOIN line_entries e ON e.sale_id = l.sale_id AND e.limit_key = {of}")),
        );
        let Counted { n } =
            self.db.run("forget_bought", async |conn| Ok(diesel::sql_query(&counted).get_result(conn).await?)).await?;
        Ok(n.unsigned_abs())
    }

    /// Orders of this name.
    ///
    /// # Errors
    /// [`DbError`].
    pub(crate) async fn orders_of(&self, buyer: &UserId) -> Result<u64, DbError> {
        let counted = format!("SELECT COUNT(*) AS n FROM orders WHERE user_id = {}", literal(buyer));
        let Counted { n } =
            self.db.run("forget_counted", async |conn| Ok(diesel::sql_query(&counted).get_result(conn).await?)).await?;
        Ok(n.unsigned_abs())
    }

    /// Renames the buyer of some orders; how many. 0: there are no more. Repeating is safe.
    ///
    /// # Errors
    /// [`DbError`].
    pub(crate) async fn rename_orders(&self, of: &Forgetting) -> Result<usize, DbError> {
        let (buyer, pseudonym) = (literal(&of.buyer), literal(&of.pseudonym));
        let renamed = format!(
            "/* forget::orders */ UPDATE orders SET user_id = {pseudonym}, \
             one_per_user_id = IF(one_per_user_id IS NULL, NULL, {pseudonym}) WHERE user_id = {buyer} LIMIT {ORDERS}"
        );
        self.db.run("forget_orders", async |conn| Ok(diesel::sql_query(&renamed).execute(conn).await?)).await
    }

    /// Renames the buyer in the units that count against limits, row by row along the key. Repeating is safe.
    ///
    /// # Errors
    /// [`DbError`]; a part is renamed by then.
    pub(crate) async fn rename_units(&self, of: &Forgetting) -> Result<(), DbError> {
        let (buyer, pseudonym) = (literal(&of.buyer), literal(&of.pseudonym));
        for (table, all, column) in [("purchases", "sales", "sale_id"), ("drop_purchases", "drops", "drop_id")] {
            let owned = format!(
                "/* forget::owned */ SELECT p.{column} AS id FROM {all} a JOIN {table} p \
                 ON p.{column} = a.{column} AND p.user_id = {buyer}"
            );
            let ids: Vec<OwnedRow> =
                self.db.run("forget_owned", async |conn| Ok(diesel::sql_query(&owned).load(conn).await?)).await?;
            for OwnedRow { id } in ids {
                let renamed = format!(
                    "/* forget::units */ UPDATE {table} SET user_id = {pseudonym} WHERE {column} = {} AND user_id = {buyer}",
                    bytes(&id)
                );
                self.db.run("forget_units", async |conn| Ok(conn.batch_execute(&renamed).await?)).await?;
            }
        }
        Ok(())
    }

    /// Renames the buyer in the lines of sales, who is an account or a person there. Repeating is safe.
    ///
    /// # Errors
    /// [`DbError`]; a part is renamed by then.
    pub(crate) async fn rename_entries(&self, of: &Forgetting) -> Result<(), DbError> {
        let (buyer, pseudonym) = (literal(&of.buyer), literal(&of.pseudonym));
        let entries = "UPDATE sale_lines l JOIN line_entries e ON e.sale_id = l.sale_id";
        let renamed = [
            format!("/* forget::entries */ {entries} AND e.user_id = {buyer} SET e.user_id = {pseudonym}"),
            format!(
                "/* forget::entries */ {entries} AND e.limit_key = {buyer} SET e.limit_key = {pseudonym}, \
                 e.person = IF(e.person = {buyer}, {pseudonym}, e.person)"
            ),
        ];
        for statement in renamed {
            self.db.run("forget_entries", async |conn| Ok(conn.batch_execute(&statement).await?)).await?;
        }
        Ok(())
    }

    /// Sales in which there are orders under one of these names, behind `after`; fewer than [`SALES`]: these were all.
    async fn sales_of(&self, of: &Forgetting, after: Option<&SaleId>) -> Result<Vec<SaleId>, DbError> {
        let (buyer, pseudonym) = (literal(&of.buyer), literal(&of.pseudonym));
        let after = bytes(after.map_or(&[][..], |sale| sale.as_str().as_bytes()));
        let sales = format!(
            "/* forget::sales */ SELECT DISTINCT sale_id FROM orders WHERE user_id IN ({buyer}, {pseudonym}) \
             AND sale_id > {after} ORDER BY sale_id LIMIT {SALES}"
        );
        let rows: Vec<SaleRow> =
            self.db.run("forget_sales", async |conn| Ok(diesel::sql_query(&sales).load(conn).await?)).await?;
        rows.iter().map(|row| read_sale_id(&row.sale_id)).collect()
    }

    /// Goes through the grants that carry purchases back, of the buyer's sales; with `rename` they get the pseudonym. How many name the
    /// buyer. Repeating is safe.
    ///
    /// # Errors
    /// [`DbError`]; a part is renamed by then.
    pub(crate) async fn returned(&self, of: &Forgetting, names: &Names, rename: bool) -> Result<u64, DbError> {
        let (mut found, mut after) = (0, None);
        loop {
            let sales = self.sales_of(of, after.as_ref()).await?;
            for sale in &sales {
                found += self.returned_in(sale, names, rename).await?;
            }
            let is_last = sales.len() < SALES;
            after = sales.into_iter().last();
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn returned_in(&self, sale: &SaleId, names: &Names, rename: bool) -> Result<u64, DbError> {
        let sale = bytes(sale.as_str().as_bytes());
        let (mut found, mut after) = (0, "X''".to_owned());
        loop {
            let page = Returned { sale: &sale, after: &after, names };
            let (count, next) = self
                .db
                .run("forget_returned", async |conn| {
                    transaction(conn, async |conn| page.renamed(conn, rename).await).await
                })
                .await?;
            found += count;
            let Some(next) = next else { return Ok(found) };
            after = next;
        }
    }
}

/// Grants of a sale that may name a buyer, behind one of them.
struct Returned<'a> {
    sale: &'a str,
    after: &'a str,
    names: &'a Names,
}

impl Returned<'_> {
    /// How many name the buyer, and where to go on; `None`: this was the last page.
    async fn renamed(&self, conn: &mut Conn, rename: bool) -> Result<(u64, Option<String>), DbError> {
        let finds = |text: &String| format!("LOCATE({}, CAST(buyers AS BINARY)) > 0", bytes(text.as_bytes()));
        let may_name = self.names.spelled().iter().map(finds).collect::<Vec<_>>().join(" OR ");
        let page = format!(
            "/* forget::returned */ SELECT grant_id, CAST(buyers AS BINARY) AS buyers FROM stock_grants \
             WHERE sale_id = {} AND grant_id > {} AND buyers IS NOT NULL AND ({may_name}) ORDER BY grant_id LIMIT {GRANTS}{}",
            self.sale,
            self.after,
            if rename { " FOR UPDATE" } else { "" }
        );
        let rows: Vec<ReturnedRow> = diesel::sql_query(page).load(conn).await?;
        let mut count = 0;
        for row in &rows {
            let Some(renamed) = self.names.renamed(Spelling::Body, &row.buyers) else { continue };
            count += 1;
            if rename {
                let renamed = format!(
                    "UPDATE stock_grants SET buyers = _utf8mb4 {} WHERE sale_id = {} AND grant_id = {}",
                    bytes(&renamed),
                    self.sale,
                    bytes(&row.grant_id)
                );
                conn.batch_execute(&renamed).await?;
            }
        }
        let next = rows.last().filter(|_| rows.len() == GRANTS).map(|row| bytes(&row.grant_id));
        Ok((count, next))
    }
}
