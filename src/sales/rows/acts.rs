//! What people did (`operator_acts`): written once, never changed, never deleted.
//!
//! Input: an act that has ended, or one that is under way. Output: its row. What changes an order or a sale has its act in the same
//! transaction: a crash leaves both or neither. Elsewhere callers record an act before they remove the last trace of its subject (an
//! entry of a dead-letter queue), and report a row that could not be written.

use crate::domain::ids::SaleId;
use crate::domain::operator::{ActTarget, OperatorAct};
use crate::sales::rows::SaleRow;
use crate::store::mysql::codes::cut;
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{operator_acts, sales};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mysql_handle! {
    /// The record of what operators did.
    ActRows
}

/// Most acts a listing returns.
pub(crate) const PAGE_MAX: u32 = 1_000;
/// JSON in one statement, bytes; a single act may have more. Far below any `max_allowed_packet`.
const STATEMENT_BYTES: usize = 512 * 1024;

#[derive(Insertable)]
#[diesel(table_name = operator_acts, treat_none_as_default_value = false)]
struct ActRow<'a> {
    actor_kind: &'static str,
    actor_id: &'a str,
    actor_name: &'a str,
    roles: &'a str,
    auth_method: &'static str,
    ip: Option<&'a str>,
    action: &'static str,
    target_type: &'static str,
    target_id: &'a str,
    sale_id: Option<&'a [u8]>,
    outcome: &'static str,
    code: Option<&'a str>,
    reason: Option<&'a str>,
    before_json: Option<String>,
    after_json: Option<String>,
    request_id: Option<&'a str>,
}

impl<'a> ActRow<'a> {
    fn of(act: &'a OperatorAct) -> Self {
        let (actor, (target_type, target_id)) = (&act.actor, act.target.code_and_id());
        Self {
            actor_kind: actor.kind.code(),
            actor_id: cut(&actor.id, 64),
            actor_name: cut(&actor.name, 128),
            roles: cut(&actor.roles, 255),
            auth_method: actor.auth_method.code(),
            ip: actor.ip.as_deref().map(|ip| cut(ip, 45)),
            action: act.operation.code(),
            target_type,
            target_id: cut(target_id, 128),
            sale_id: act.sale_id.as_ref().map(|id| id.as_str().as_bytes()),
            outcome: act.outcome.code(),
            code: act.code.as_deref().map(|code| cut(code, 64)),
            reason: act.reason.as_deref().map(|reason| cut(reason, 1000)),
            before_json: act.before.as_ref().map(ToString::to_string),
            after_json: act.after.as_ref().map(ToString::to_string),
            request_id: actor.call_id.as_deref().map(|id| cut(id, 64)),
        }
    }

    fn bytes(&self) -> usize {
        [&self.before_json, &self.after_json].into_iter().flatten().map(String::len).sum()
    }
}

impl ActRows {
    /// Writes acts down, all or none. Names and words that are too long are cut; what was there before and after is not.
    ///
    /// # Errors
    /// [`DbError`]; after [`DbError::Unavailable`] and [`DbError::Timeout`] they may have been written.
    pub async fn record(&self, acts: &[OperatorAct]) -> Result<(), DbError> {
        let mut statements: Vec<Vec<ActRow<'_>>> = Vec::new();
        let mut bytes = 0;
        for row in acts.iter().map(ActRow::of) {
            bytes += row.bytes();
            match statements.last_mut() {
                Some(rows) if bytes <= STATEMENT_BYTES => rows.push(row),
                Some(_) | None => {
                    bytes = row.bytes();
                    statements.push(vec![row]);
                }
            }
        }
        self.db
            .run("acts_record", async |conn| {
                transaction(conn, async |conn| {
                    for rows in &statements {
                        diesel::insert_into(operator_acts::table).values(rows).execute(conn).await?;
                    }
                    Ok(())
                })
                .await
            })
            .await
    }
}

/// Writes one act in the caller's transaction: it is there if its change is.
pub(crate) async fn insert(conn: &mut Conn, act: &OperatorAct) -> Result<(), DbError> {
    diesel::insert_into(operator_acts::table).values(ActRow::of(act)).execute(conn).await?;
    Ok(())
}

/// An act that is under way, until the change that it makes writes it down.
pub(crate) struct PendingAct {
    act: OperatorAct,
    asked: Value,
    is_written: AtomicBool,
}

tokio::task_local! {
    /// The act of the work that this task does. By the task and not by an argument: a verb makes its change several calls deep, and
    /// what it does without a person (a warm-up that is due) has no act.
    static PENDING: Arc<PendingAct>;
}

impl PendingAct {
    /// `act` with what was there before; `asked`: what its operator asked for, `Null` for nothing more.
    pub(crate) fn new(act: OperatorAct, asked: Value) -> Arc<Self> {
        Arc::new(Self { act, asked, is_written: AtomicBool::new(false) })
    }

    /// Whether a committed change has it.
    pub(crate) fn is_written(&self) -> bool {
        AtomicBool::load(&self.is_written, Ordering::Acquire)
    }

    /// Does `work`, whose change of a sale writes this act in its own transaction.
    pub(crate) async fn beside<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        PENDING.scope(self.clone(), work).await
    }
}

/// Does `work`, whose changes are not what this task's act is about.
pub(crate) async fn off_record<T>(work: impl Future<Output = T>) -> T {
    let Ok(pending) = PENDING.try_with(Arc::clone) else { return work.await };
    let PendingAct { act, asked, .. } = &*pending;
    let written = PendingAct { act: act.clone(), asked: asked.clone(), is_written: AtomicBool::new(true) };
    PENDING.scope(Arc::new(written), work).await
}

/// Writes the act of this task in the caller's transaction, if it has one that is not written yet, with the sale as it is here.
pub(super) async fn insert_pending(conn: &mut Conn, sale_id: &SaleId) -> Result<(), DbError> {
    let Some(pending) = PENDING.try_with(Arc::clone).ok().filter(|pending| !pending.is_written()) else {
        return Ok(());
    };
    let sale = sales::table.find(sale_id.as_str().as_bytes()).select(SaleRow::as_select());
    let sale = vec![sale.first(conn).await?];
    let mut after = json!({ "sale": SaleRow::read_all(conn, sale).await?.pop() });
    if !pending.asked.is_null() {
        after["asked"] = pending.asked.clone();
    }
    // An act on a drop is one on each of its sales.
    let (target, of_sale) = (ActTarget::Sale(sale_id.clone()), Some(sale_id.clone()));
    insert(conn, &OperatorAct { after: Some(after), target, sale_id: of_sale, ..pending.act.clone() }).await
}

/// The transaction of [`insert_pending`] is committed.
pub(super) fn pending_is_written() {
    let _none = PENDING.try_with(|pending| AtomicBool::store(&pending.is_written, true, Ordering::Release));
}

impl ActRows {
    /// Writes the act of this task down before its work, which changes nothing in the database.
    pub(crate) async fn record_pending(&self, sale_id: &SaleId) -> Result<(), DbError> {
        self.db.run("act_pending", async |conn| insert_pending(conn, sale_id).await).await?;
        pending_is_written();
        Ok(())
    }
}

/// An act as it is on record. Codes are kept as they stand: another version may have written them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Queryable, Selectable)]
#[diesel(table_name = operator_acts)]
pub struct RecordedAct {
    /// Order of writing.
    pub act_id: u64,
    /// Unix milliseconds by the database's clock.
    #[diesel(column_name = at, deserialize_as = UnixMs)]
    pub at_ms: i64,
    /// `person` or `service`.
    pub actor_kind: String,
    /// The account that was proved.
    pub actor_id: String,
    /// Its name as it was then.
    pub actor_name: String,
    /// What the actor might do.
    pub roles: String,
    /// How the actor was known.
    pub auth_method: String,
    /// IP address of the trusted hop.
    pub ip: Option<String>,
    /// The operation, as `category.operation`.
    pub action: String,
    /// Sort of what it was about.
    pub target_type: String,
    /// Identity of what it was about, within its sort.
    pub target_id: String,
    /// The sale, if it was about one.
    pub sale_id: Option<SaleId>,
    /// `ok`, `denied` or `failed`.
    pub outcome: String,
    /// Stable code of what came of it.
    pub code: Option<String>,
    /// Why, in the actor's words.
    pub reason: Option<String>,
    /// What was there before, as JSON text.
    pub before_json: Option<String>,
    /// What was there after, as JSON text.
    pub after_json: Option<String>,
    /// `X-Request-Id` of the call.
    pub request_id: Option<String>,
}

/// Which acts a listing wants.
#[derive(Debug, Clone, Default)]
pub struct ActFilter {
    /// Only about this sale.
    pub sale_id: Option<SaleId>,
    /// Only acts before this one: the last act of the page before.
    pub before: Option<u64>,
    /// At most this many; capped at [`PAGE_MAX`].
    pub limit: u32,
}

impl ActRows {
    /// Acts, newest first.
    pub async fn list(&self, wanted: &ActFilter) -> Result<Vec<RecordedAct>, DbError> {
        self.db
            .run("acts_list", async |conn| {
                let mut query = operator_acts::table.select(RecordedAct::as_select()).into_boxed();
                if let Some(sale_id) = &wanted.sale_id {
                    query = query.filter(operator_acts::sale_id.eq(sale_id.as_str().as_bytes()));
                }
                if let Some(before) = wanted.before {
                    query = query.filter(operator_acts::act_id.lt(before));
                }
                let page = query.order(operator_acts::act_id.desc()).limit(i64::from(wanted.limit.min(PAGE_MAX)));
                Ok(page.load(conn).await?)
            })
            .await
    }
}
