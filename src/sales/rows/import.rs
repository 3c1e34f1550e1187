//! What the database has of the sales and drops of a file, and the creation of those that it lacks, all or nothing.
//!
//! Input: ids; then sales and drops. Output: what is there; then all of them, each with its grant, its timetable and its act. A crash leaves
//! all or none.

use super::drops::DropRow;
use super::{ARCHIVED, SaleRow, SaleRows, acts};
use crate::domain::drops::SalesDrop;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use crate::faults::crash_point;
use crate::sales::rows::error::SaleError;
use crate::sales::rows::timetable::KnownTimetable;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{archived_sales, drops, sales};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::{HashMap, HashSet};

/// What is there of the ids of a file.
#[derive(Default)]
pub(crate) struct KnownOfImport {
    /// Sales, each with its timetable.
    pub(crate) sales: HashMap<SaleId, (Sale, KnownTimetable)>,
    /// Sales that were removed, or are being removed.
    pub(crate) archived: HashSet<SaleId>,
    /// Drops.
    pub(crate) drops: HashMap<DropId, SalesDrop>,
}

/// What a file makes: the drop, if it is one, and its sales.
pub type NewSales<'a> = (Option<&'a SalesDrop>, &'a [(Sale, Timetable)]);

/// What an insert was about when it failed.
enum Reached {
    Drop(DropId),
    Sale(SaleId),
}

impl SaleRows {
    /// What is there of these ids: three questions, and one for the timetables.
    pub(crate) async fn known_of_import(
        &self,
        sale_ids: &[&SaleId],
        drop_ids: &[&DropId],
    ) -> Result<KnownOfImport, DbError> {
        let sale_keys: Vec<&[u8]> = sale_ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let drop_keys: Vec<&[u8]> = drop_ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let there = sales::table.filter(sales::sale_id.eq_any(&sale_keys)).select(SaleRow::as_select());
        let archived = archived_sales::table.filter(archived_sales::sale_id.eq_any(&sale_keys));
        let drops = drops::table.filter(drops::drop_id.eq_any(&drop_keys)).select(DropRow::as_select());
        let (sales, archived, drops) = self
            .db
            .run("import_known", async |conn| {
                let rows: Vec<SaleRow> = there.load(conn).await?;
                let archived: Vec<SaleId> = archived.select(archived_sales::sale_id).load(conn).await?;
                let drops: Vec<DropRow> = drops.load(conn).await?;
                Ok((SaleRow::read_all(conn, rows).await?, archived, drops))
            })
            .await?;
        let mut timetables = self.timetables(&sales.iter().map(|sale| &sale.sale_id).collect::<Vec<_>>()).await?;
        let with_its_own = sales.into_iter().map(|sale| {
            let timetable = timetables.remove(&sale.sale_id).unwrap_or_default();
            (sale.sale_id.clone(), (sale, timetable))
        });
        let drops = drops.into_iter().map(|row| row.read().map(|drop| (drop.drop_id.clone(), drop)));
        Ok(KnownOfImport {
            sales: with_its_own.collect(),
            archived: archived.into_iter().collect(),
            drops: drops.collect::<Result<_, _>>()?,
        })
    }

    /// Creates all of these, or nothing. With the longer deadline: a thousand sales are some thousand statements.
    ///
    /// # Errors
    /// [`SaleError::Exists`], [`SaleError::Archived`] or [`SaleError::DropExists`] names the first id that is taken. Nothing is written then.
    pub async fn create_all(&self, new: &[NewSales<'_>]) -> Result<(), SaleError> {
        let mut rows = Vec::with_capacity(new.len());
        for (drop, sales) in new {
            let of_sales = sales.iter().map(|(sale, plan)| Ok((SaleRow::planned(sale, plan)?, sale, plan)));
            let drop = drop.map(|drop| (DropRow::of(drop), &drop.drop_id));
            rows.push((drop, of_sales.collect::<Result<Vec<_>, DbError>>()?));
        }
        // Which of them is taken: the error of the database does not say.
        let mut reached = None;
        let created = self
            .db
            .patient()
            .run("import_create", async |conn| {
                transaction(conn, async |conn| {
                    for (drop, sales) in &rows {
                        if let Some((row, id)) = drop {
                            reached = Some(Reached::Drop((*id).clone()));
                            diesel::insert_into(drops::table).values(row).execute(conn).await?;
                        }
                        for (row, sale, plan) in sales {
                            reached = Some(Reached::Sale(sale.sale_id.clone()));
                            row.insert(conn, sale, plan).await?;
                            acts::insert_pending(conn, &sale.sale_id).await?;
                        }
                    }
                    crash_point!(ImportWritten);
                    Ok::<_, DbError>(())
                })
                .await
            })
            .await;
        match (created, reached) {
            (Ok(()), _) => {
                acts::pending_is_written();
                Ok(())
            }
            (Err(DbError::Duplicate(key)), Some(Reached::Sale(id))) if key == ARCHIVED => Err(SaleError::Archived(id)),
            (Err(DbError::Duplicate(_)), Some(Reached::Sale(id))) => Err(SaleError::Exists(id)),
            (Err(DbError::Duplicate(_)), Some(Reached::Drop(id))) => Err(SaleError::DropExists(id)),
            (Err(error), _) => Err(error.into()),
        }
    }
}
