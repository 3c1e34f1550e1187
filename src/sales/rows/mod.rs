//! Sales as the database knows them. Each write is one transaction, so a crash leaves all of it or nothing.

pub mod acts;
pub mod archived;
pub mod changes;
pub(crate) mod drops;
pub mod error;
pub mod grants;
pub(crate) mod import;
mod lines;
mod lists;
mod numbers;
pub mod timetable;

use crate::domain::challenge::Challenge;
use crate::domain::grant_names::FIRST_GRANT;
use crate::domain::ids::SaleId;
use crate::domain::line::LineKind;
use crate::domain::needs::Needs;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::{LimitBy, PurchasePolicy};
use crate::domain::sale::{Sale, SaleStatus};
use crate::domain::timetable::Timetable;
use crate::sales::forms::PAY_GRACE_S;
use crate::sales::rows::error::SaleError;
use crate::store::mysql::codes::{datetime, read_sale_id, unix_ms, unreadable};
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::sales;
use crate::store::mysql::transaction::transaction;
pub use acts::ActRows;
use archived as archive;
pub use archived::ArchivedRows;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
pub use grants::GrantRows;
use std::sync::Arc;

mysql_handle! {
    /// The sales: created, read and changed.
    SaleRows
}

/// The key that an id of a removed sale would double.
const ARCHIVED: &str = "archived_sales";
/// A row of `sales`.
#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = sales, treat_none_as_default_value = false)]
struct SaleRow {
    sale_id: Vec<u8>,
    product_id: String,
    title: String,
    price_cents: i64,
    currency: String,
    granted: i64,
    stock: i64,
    per_user_limit: Option<u32>,
    token_required: bool,
    waiting_room: bool,
    pay_within_s: Option<u32>,
    pay_grace_s: u32,
    limit_returns: bool,
    starts_at: NaiveDateTime,
    ends_at: NaiveDateTime,
    status: String,
    epoch: u32,
    hidden: bool,
    version: u32,
    drop_id: Option<Vec<u8>>,
    needs: Option<String>,
    limit_by: String,
    challenge: Option<String>,
    line_kind: Option<String>,
    by_line: bool,
}

fn read_line_kind(code: &str) -> Result<LineKind, DbError> {
    LineKind::from_code(code).ok_or_else(|| unreadable("sales.line_kind", code))
}

impl SaleRow {
    fn of(sale: &Sale) -> Result<Self, DbError> {
        Ok(Self {
            sale_id: sale.sale_id.as_str().as_bytes().to_vec(),
            product_id: sale.product_id.clone(),
            title: sale.title.clone(),
            price_cents: sale.price_cents,
            currency: sale.currency.clone(),
            granted: sale.granted,
            stock: sale.granted,
            per_user_limit: sale.policy.limit(),
            token_required: sale.token_required,
            waiting_room: sale.waiting_room,
            pay_within_s: sale.payment.map(|terms| terms.pay_within_s),
            pay_grace_s: sale.payment.map_or(PAY_GRACE_S, |terms| terms.pay_grace_s),
            limit_returns: sale.payment.is_some_and(|terms| terms.limit_returns),
            starts_at: datetime(sale.starts_at_ms)?,
            ends_at: datetime(sale.ends_at_ms)?,
            status: sale.status.code().to_owned(),
            epoch: sale.epoch,
            hidden: sale.hidden,
            version: sale.version,
            drop_id: sale.in_drop.as_ref().map(|drop| drop.drop_id.as_str().as_bytes().to_vec()),
            needs: sale.needs.as_ref().map(|needs| needs.text()),
            limit_by: sale.limit_by.code().to_owned(),
            challenge: sale.challenge.as_ref().map(ToString::to_string),
            line_kind: sale.line.map(|kind| kind.code().to_owned()),
            by_line: sale.by_line,
        })
    }

    /// A new sale: the units of a raffle go to its line from the beginning, those of a sale with a waiting list from the sell-out on.
    fn planned(sale: &Sale, plan: &Timetable) -> Result<Self, DbError> {
        let line = plan.line.map(|line| line.kind);
        let (line_kind, by_line) = (line.map(|kind| kind.code().to_owned()), line == Some(LineKind::Raffle));
        Ok(Self { line_kind, by_line, ..Self::of(sale)? })
    }

    /// Inside a transaction: the new sale, its first grant and its timetable. [`DbError::Duplicate`] of [`ARCHIVED`] when the id was one of a
    /// removed sale.
    async fn insert(&self, conn: &mut Conn, sale: &Sale, plan: &Timetable) -> Result<(), DbError> {
        diesel::insert_into(sales::table).values(self).execute(conn).await?;
        // After the insert: a removal of this id has committed by now, and its row in `archived_sales` can be read.
        if archive::is_there(conn, &self.sale_id).await? {
            return Err(DbError::Duplicate(ARCHIVED.to_owned()));
        }
        grants::insert(conn, &sale.sale_id, FIRST_GRANT, (sale.granted, sale.epoch)).await?;
        timetable::insert(conn, &sale.sale_id, plan).await
    }

    /// Reads rows; those of drops with what `drops` has, which only one query more knows ([`drops::of`]).
    async fn read_all(conn: &mut Conn, rows: Vec<Self>) -> Result<Vec<Sale>, DbError> {
        let of_drops = drops::of(conn, rows.iter().filter_map(|row| row.drop_id.as_deref())).await?;
        rows.into_iter().map(|row| row.read(&of_drops)).collect()
    }

    fn read(self, of_drops: &drops::KnownDrops) -> Result<Sale, DbError> {
        let sale_id = read_sale_id(&self.sale_id)?;
        let in_drop = self.drop_id.map(|drop_id| of_drops.get(&drop_id, &sale_id)).transpose()?;
        Ok(Sale {
            sale_id,
            product_id: self.product_id,
            title: self.title,
            price_cents: self.price_cents,
            currency: self.currency,
            granted: self.granted,
            stock: self.stock,
            policy: PurchasePolicy::from_limit(self.per_user_limit),
            limit_by: LimitBy::from_code(&self.limit_by).ok_or_else(|| unreadable("sales.limit_by", &self.limit_by))?,
            token_required: self.token_required,
            waiting_room: self.waiting_room,
            payment: PaymentTerms::of_columns(self.pay_within_s, self.pay_grace_s, self.limit_returns),
            starts_at_ms: unix_ms(self.starts_at),
            ends_at_ms: unix_ms(self.ends_at),
            status: SaleStatus::from_code(&self.status).ok_or_else(|| unreadable("sales.status", &self.status))?,
            epoch: self.epoch,
            hidden: self.hidden,
            version: self.version,
            needs: self.needs.map(|text| Arc::new(Needs::of_text(&text))),
            challenge: self.challenge.as_deref().map(Challenge::of_text),
            line: self.line_kind.as_deref().map(read_line_kind).transpose()?,
            by_line: self.by_line,
            in_drop,
        })
    }
}

impl SaleRows {
    /// Creates a sale with `sale.granted` units (`sale.stock` is not read) and its first grant, not yet applied to Redis.
    ///
    /// # Errors
    /// [`SaleError::Exists`] when the id is taken, [`SaleError::Archived`] when it was; nothing is written then.
    pub async fn create(&self, sale: &Sale) -> Result<(), SaleError> {
        self.create_planned(sale, &Timetable::default()).await
    }

    /// The same, with a timetable.
    pub async fn create_planned(&self, sale: &Sale, plan: &Timetable) -> Result<(), SaleError> {
        let row = SaleRow::planned(sale, plan)?;
        let created = self
            .db
            .run("sale_create", async |conn| {
                transaction(conn, async |conn| {
                    row.insert(conn, sale, plan).await?;
                    acts::insert_pending(conn, &sale.sale_id).await
                })
                .await
            })
            .await;
        match created {
            Ok(()) => {
                acts::pending_is_written();
                Ok(())
            }
            Err(DbError::Duplicate(key)) if key == ARCHIVED => Err(SaleError::Archived(sale.sale_id.clone())),
            Err(DbError::Duplicate(_)) => Err(SaleError::Exists(sale.sale_id.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// A sale, if it exists.
    pub async fn get(&self, sale_id: &SaleId) -> Result<Option<Sale>, DbError> {
        self.db
            .run("sale_get", async |conn| {
                let sale = sales::table.find(sale_id.as_str().as_bytes()).select(SaleRow::as_select());
                let row: Option<SaleRow> = sale.first(conn).await.optional()?;
                Ok(SaleRow::read_all(conn, row.into_iter().collect()).await?.pop())
            })
            .await
    }

    /// When a sale was created, Unix milliseconds by the database's clock; `None` if there is no such sale.
    pub(crate) async fn created_at_ms(&self, sale_id: &SaleId) -> Result<Option<i64>, DbError> {
        self.db
            .run("sale_created_at", async |conn| {
                let created_at = sales::table.find(sale_id.as_str().as_bytes()).select(sales::created_at);
                let created_at: Option<UnixMs> = created_at.first(conn).await.optional()?;
                Ok(created_at.map(Into::into))
            })
            .await
    }

    /// Sets the status to `to`, if it is one of `from` at this very moment: what the caller read before may have been overtaken,
    /// and a closed sale must stay closed.
    ///
    /// # Errors
    /// [`SaleError::Status`] with the status that holds when it is another one, [`SaleError::Unknown`] or [`SaleError::Db`].
    pub async fn set_status(&self, sale_id: &SaleId, to: SaleStatus, from: &[SaleStatus]) -> Result<(), SaleError> {
        let id = sale_id.as_str().as_bytes();
        let matched = self
            .db
            .run("sale_set_status", async |conn| {
                transaction(conn, async |conn| {
                    let allowed =
                        sales::table.find(id).filter(sales::status.eq_any(from.iter().map(|status| status.code())));
                    let matched = diesel::update(allowed).set(sales::status.eq(to.code())).execute(conn).await?;
                    if matched > 0 {
                        acts::insert_pending(conn, sale_id).await?;
                    }
                    Ok::<_, DbError>(matched)
                })
                .await
            })
            .await?;
        if matched > 0 {
            acts::pending_is_written();
            return Ok(());
        }
        let holds = self.get(sale_id).await?.map(|sale| sale.status);
        Err(holds.map_or_else(|| SaleError::Unknown(sale_id.clone()), |now| SaleError::Status(sale_id.clone(), now)))
    }
}
