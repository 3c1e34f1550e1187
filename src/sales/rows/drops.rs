//! Drops as the database knows them. A drop and its sales come in one transaction: a crash leaves all of them or none.

use crate::domain::drops::SalesDrop;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::sale::{Sale, SaleStatus};
use crate::sales::rows::{SaleRow, SaleRows, acts};
use crate::sales::sale_change::START_SETTLED_S;
use crate::store::mysql::codes::{read_sale_id, unreadable};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{drops, sales};
use crate::store::mysql::transaction::transaction;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use diesel_async::RunQueryDsl;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Drops in one list.
const LISTED_MAX: i64 = 1_000;

/// A row of `drops`.
#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = drops, treat_none_as_default_value = false)]
pub(super) struct DropRow {
    drop_id: Vec<u8>,
    title: String,
    per_user_limit: Option<u32>,
    sale_ids: Vec<u8>,
}

impl DropRow {
    pub(super) fn of(drop: &SalesDrop) -> Self {
        let sale_ids: Vec<&str> = drop.sale_ids.iter().map(SaleId::as_str).collect();
        Self {
            drop_id: drop.drop_id.as_str().as_bytes().to_vec(),
            title: drop.title.clone(),
            per_user_limit: drop.limit.map(NonZeroU32::get),
            sale_ids: sale_ids.join(" ").into_bytes(),
        }
    }

    pub(super) fn read(self) -> Result<SalesDrop, DbError> {
        let text = String::from_utf8_lossy(&self.drop_id);
        Ok(SalesDrop {
            drop_id: DropId::parse(&text).map_err(|_ignored| unreadable("drop_id", &text))?,
            title: self.title,
            limit: self.per_user_limit.and_then(NonZeroU32::new),
            sale_ids: self.sale_ids.split(|byte| *byte == b' ').map(read_sale_id).collect::<Result<_, _>>()?,
        })
    }
}

/// The drops of some sales, by their ids.
#[derive(Default)]
pub(crate) struct KnownDrops(HashMap<Vec<u8>, Arc<SalesDrop>>);

impl KnownDrops {
    /// The drop of this sale.
    pub(crate) fn get(&self, drop_id: &[u8], sale: &SaleId) -> Result<Arc<SalesDrop>, DbError> {
        let missing = || DbError::Other(format!("sale {sale} is of a drop that has no row"));
        Ok(self.0.get(drop_id).ok_or_else(missing)?.clone())
    }
}

/// The drops with these ids; asks nothing where there are none.
pub(crate) async fn of<'a>(conn: &mut Conn, drop_ids: impl Iterator<Item = &'a [u8]>) -> Result<KnownDrops, DbError> {
    let drop_ids: BTreeSet<&[u8]> = drop_ids.collect();
    if drop_ids.is_empty() {
        return Ok(KnownDrops::default());
    }
    let query = drops::table.filter(drops::drop_id.eq_any(drop_ids)).select(DropRow::as_select());
    let rows: Vec<DropRow> = query.load(conn).await?;
    let known = rows.into_iter().map(|row| Ok::<_, DbError>((row.drop_id.clone(), Arc::new(row.read()?))));
    known.collect::<Result<_, _>>().map(KnownDrops)
}

impl SaleRows {
    /// A drop, if it exists.
    pub async fn drop_of(&self, drop_id: &DropId) -> Result<Option<SalesDrop>, DbError> {
        let query = drops::table.find(drop_id.as_str().as_bytes()).select(DropRow::as_select());
        let row: Option<DropRow> =
            self.db.run("drop_get", async |conn| Ok(query.first(conn).await.optional()?)).await?;
        row.map(DropRow::read).transpose()
    }

    /// The sales of a drop, in its order, by one query; without those whose rows are removed.
    pub(crate) async fn sales_of(&self, drop: &SalesDrop) -> Result<Vec<Sale>, DbError> {
        let keys: Vec<&[u8]> = drop.sale_ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let of_drop = sales::table.filter(sales::sale_id.eq_any(keys)).select(SaleRow::as_select());
        let mut found = self
            .db
            .run("drop_sales", async |conn| {
                let rows = of_drop.load(conn).await?;
                SaleRow::read_all(conn, rows).await
            })
            .await?;
        found.sort_by_key(|sale| drop.sale_ids.iter().position(|id| *id == sale.sale_id));
        Ok(found)
    }

    /// The newest drops, [`LISTED_MAX`] at most.
    pub async fn newest_drops(&self) -> Result<Vec<SalesDrop>, DbError> {
        let newest = drops::table.order((drops::created_at.desc(), drops::drop_id)).limit(LISTED_MAX);
        let rows: Vec<DropRow> =
            self.db.run("drop_list", async |conn| Ok(newest.select(DropRow::as_select()).load(conn).await?)).await?;
        rows.into_iter().map(DropRow::read).collect()
    }

    /// Writes the title and the limit of `drop`, if each of its sales starts more than [`START_SETTLED_S`] seconds from now by the
    /// database's clock; whether they were written. Its sales never change.
    pub(crate) async fn edit_drop(&self, drop: &SalesDrop) -> Result<bool, DbError> {
        let row = DropRow::of(drop);
        let keys: Vec<&[u8]> = drop.sale_ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let edited = self
            .db
            .run("drop_edit", async |conn| {
                transaction(conn, async |conn| {
                    // Locked, so that none of them moves its start meanwhile.
                    let settled = format!("starts_at <= NOW(3) + INTERVAL {START_SETTLED_S} SECOND");
                    let of_drop = sales::table.filter(sales::sale_id.eq_any(&keys)).order(sales::sale_id);
                    let settled: Vec<bool> = of_drop.select(sql::<Bool>(&settled)).for_update().load(conn).await?;
                    if settled.contains(&true) {
                        return Ok(false);
                    }
                    let terms = (
                        drops::title.eq(&row.title),
                        drops::per_user_limit.eq(row.per_user_limit),
                        drops::version.eq(drops::version + 1),
                    );
                    diesel::update(drops::table.find(&row.drop_id)).set(terms).execute(conn).await?;
                    for id in &drop.sale_ids {
                        acts::insert_pending(conn, id).await?;
                    }
                    Ok::<_, DbError>(true)
                })
                .await
            })
            .await?;
        if edited {
            acts::pending_is_written();
        }
        Ok(edited)
    }

    /// Closes these sales, all or none; `false`: one of them has not ended for `ended_since_s` seconds by the database's clock (none:
    /// whenever they end). Repeating is safe.
    pub(crate) async fn close_together(&self, ids: &[SaleId], ended_since_s: Option<u64>) -> Result<bool, DbError> {
        let keys: Vec<&[u8]> = ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let closed = self
            .db
            .run("drop_close", async |conn| {
                transaction(conn, async |conn| {
                    let open = || {
                        let of_drop = sales::table.filter(sales::sale_id.eq_any(&keys));
                        of_drop.filter(sales::status.ne(SaleStatus::Closed.code()))
                    };
                    let ends: Vec<bool> = match ended_since_s {
                        Some(seconds) => {
                            let is_over = sql::<Bool>(&format!("ends_at <= NOW(3) - INTERVAL {seconds} SECOND"));
                            open().order(sales::sale_id).select(is_over).for_update().load(conn).await?
                        }
                        None => Vec::new(),
                    };
                    if ends.contains(&false) {
                        return Ok(false);
                    }
                    diesel::update(open()).set(sales::status.eq(SaleStatus::Closed.code())).execute(conn).await?;
                    for id in ids {
                        acts::insert_pending(conn, id).await?;
                    }
                    Ok::<_, DbError>(true)
                })
                .await
            })
            .await?;
        if closed {
            acts::pending_is_written();
        }
        Ok(closed)
    }
}
