//! The line of a sale from the buyer's side: entering, leaving, asking for one's rank; and what everybody may see of the draw.
//!
//! Input: a buyer, a sale, units. Output: an entry that is committed, with a signed receipt; or the problem to answer with. Entries are
//! judged as purchases are (blocked, needs, person, limit, rate) and written in groups. Keeps the public part of lines in memory. A crash
//! leaves entries that are in the database without an answer: their buyers enter again, and find them.

mod draws;
mod my_entry;
mod receipts;

pub(crate) use my_entry::MyEntry;
pub(crate) use receipts::Receipts;

use super::block_list::BuyerChecks;
use super::catalog::Catalog;
use super::entitlement::ShownFacts;
use super::request_ids::RequestIds;
use crate::domain::ids::{EntryId, SaleId, UserId};
use crate::domain::line::{EntryState, LineKind, LineState};
use crate::domain::policy::Quantity;
use crate::domain::sale::{Sale, SaleStatus};
use crate::domain::states::State;
use crate::faults::crash_point;
use crate::http::problem::{Kind, Problem};
use crate::lines::document::DrawDocument;
use crate::lines::rows::{Entered, LeftLine, Line, LineRows, NewEntry};
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::runtime::now_ms;
use crate::store::mysql::DbError;
use crate::telemetry::count;
use draws::{Draws, not_read};
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

const BOUNDS: Bounds = Bounds { group_max: 500, waiting_max: 8_192, in_flight_max: 2, idle_end: None };
/// Sales of one group that are written at once.
const SALES_AT_ONCE: usize = 4;
/// Calls at the database at once, of one process, beside the groups.
const CALLS_MAX: usize = 64;

type EnterAnswer = Result<Entered, DbError>;

/// Lines, of one process.
pub(crate) struct Lines {
    catalog: Catalog,
    buyers: BuyerChecks,
    ids: RequestIds,
    rows: LineRows,
    draws: Draws,
    entering: QuestionBatcher<NewEntry, EnterAnswer>,
    receipts: Receipts,
    calls: Semaphore,
}

impl Lines {
    /// Starts the grouped writes, on the runtime this is called in. `entries_max`: of one line.
    #[must_use]
    pub(crate) fn start(
        (catalog, buyers, ids): (Catalog, BuyerChecks, RequestIds),
        rows: LineRows,
        receipts: Receipts,
        entries_max: u64,
    ) -> Self {
        let writing = rows.clone();
        let entering = QuestionBatcher::start(BOUNDS, move |group: Vec<NewEntry>| {
            let rows = writing.clone();
            async move { enter_all(&rows, group, entries_max).await }
        });
        let (draws, calls) = (Draws::new(rows.clone()), Semaphore::new(CALLS_MAX));
        Self { catalog, buyers, ids, rows, draws, entering, receipts, calls }
    }

    /// Enters the line of a sale.
    ///
    /// # Errors
    /// The problem to answer with; after 503 the entry may be there, and entering again says so.
    pub(crate) async fn enter(
        &self,
        (user, shown): (UserId, Option<Box<ShownFacts>>),
        sale: &SaleId,
        quantity: Quantity,
    ) -> Result<MyEntry, Problem> {
        let view = self.catalog.view(sale).await?;
        let line = self.draws.line(sale).await?;
        let person = self.judge(&view.sale, (&user, shown.as_deref()), quantity)?;
        match line.state {
            LineState::Open => {}
            LineState::Awaited => return Err(awaited(sale)),
            LineState::Closed | LineState::Sealed | LineState::Drawn | LineState::Done => return Err(closed()),
        }
        self.buyers.limits.take(&user).await?;
        let id = EntryId::of(self.ids.next()?);
        let entry = NewEntry { id, sale_id: sale.clone(), user: user.clone(), person, quantity: quantity.get() };
        let answer = self.entering.ask(entry).await.map_err(|busy| Kind::Overloaded.because(busy.to_string()))?;
        match answer.map_err(|error| not_written(&error))? {
            Entered::Now(entered_at_ms, rank) => {
                count(State::P6(EntryState::Waiting.state()), 1);
                let receipt = self.receipts.sign((id, sale), &user, quantity.get(), entered_at_ms);
                let (quantity, state) = (quantity.get(), EntryState::Waiting);
                let before = self.before(sale, rank).await;
                let (request_id, lapse_reason) = (None, None);
                Ok(MyEntry { id, quantity, state, entered_at_ms, rank, before, request_id, lapse_reason, receipt })
            }
            Entered::Before(first, of) => Err(entered_before(first, of == user)),
            Entered::Closed => {
                self.draws.forget(sale).await;
                Err(closed())
            }
            Entered::Awaited => {
                self.draws.forget(sale).await;
                Err(awaited(sale))
            }
            Entered::Full => Err(Kind::LineFull.into()),
            Entered::NoLine => Err(Kind::NoLine.into()),
        }
    }

    /// Whether this buyer may be in the line, and as which person.
    fn judge(
        &self,
        sale: &Sale,
        (user, shown): (&UserId, Option<&ShownFacts>),
        quantity: Quantity,
    ) -> Result<Option<UserId>, Problem> {
        let now_ms = now_ms();
        if let Some(problem) = self.buyers.blocks.refusal(user, now_ms) {
            return Err(problem);
        }
        let is_past = sale.line == Some(LineKind::Waitlist) && now_ms >= sale.ends_at_ms;
        if sale.status == SaleStatus::Closed || is_past {
            return Err(Kind::Ended.into());
        }
        let person = self.buyers.entitled(sale, user, shown, now_ms)?;
        let of_drop = sale.in_drop.as_ref().and_then(|drop| drop.limit).map(std::num::NonZeroU32::get);
        let limit = sale.policy.limit().into_iter().chain(of_drop).min();
        match limit.filter(|limit| quantity.get() > *limit) {
            Some(limit) => Err(Kind::LimitExceeded.because_both(
                format!("quantity is {}, expected 1 to {limit}, the limit of the sale", quantity.get()),
                format!("quantity 为 {}，限购数量为 {limit}", quantity.get()),
            )),
            None => Ok(person),
        }
    }

    /// Takes an entry of this buyer out of the line. Repeating is safe.
    ///
    /// # Errors
    /// The problem to answer with.
    pub(crate) async fn leave(&self, user: &UserId, sale: &SaleId, id: EntryId) -> Result<(), Problem> {
        self.draws.line(sale).await?;
        self.buyers.limits.take_of_buyer(user).await?;
        match self.call(self.rows.leave(sale, id, user)).await? {
            LeftLine::Left => Ok(()),
            LeftLine::Offered(state) => Err(Kind::EntryOffered.because_both(
                format!("it is {}; cancel its order, or leave it unpaid", state.code()),
                format!("状态为 {}；请取消订单或不予支付", state.code()),
            )),
            LeftLine::Unknown => Err(Kind::EntryNotFound.into()),
        }
    }

    /// What is public of the draw.
    ///
    /// # Errors
    /// The problem to answer with.
    pub(crate) async fn draw(&self, sale: &SaleId) -> Result<DrawDocument, Problem> {
        // A hidden sale is none, in every word.
        self.catalog.view(sale).await?;
        Ok(DrawDocument::of(&*self.drawn(sale).await?))
    }

    /// The ids of the sealed list, ascending.
    ///
    /// # Errors
    /// The problem to answer with; 425 before the seal.
    pub(crate) async fn list(&self, sale: &SaleId) -> Result<impl AsRef<[u64]> + Clone + 'static, Problem> {
        self.catalog.view(sale).await?;
        let line = self.drawn(sale).await?;
        Ok(List(self.draws.ranks(&line).await?))
    }

    /// The line of a sale, if it has a draw.
    async fn drawn(&self, sale: &SaleId) -> Result<Arc<Line>, Problem> {
        let line = self.draws.line(sale).await?;
        match line.kind {
            LineKind::Raffle => Ok(line),
            LineKind::Waitlist => Err(Kind::NoLine.because_both("a waiting list is not drawn", "候补不抽签")),
        }
    }

    async fn call<T>(&self, work: impl Future<Output = Result<T, DbError>>) -> Result<T, Problem> {
        let place = self.calls.try_acquire();
        let _place = place
            .map_err(|_full| Kind::Overloaded.because_both("too many ask for their entries", "查询抽签的人过多"))?;
        work.await.map_err(|error| not_read(&error))
    }
}

/// The ids of a list, for as many answers as there are.
#[derive(Clone)]
struct List(Arc<crate::domain::draw::Ranks>);

impl AsRef<[u64]> for List {
    fn as_ref(&self) -> &[u64] {
        self.0.ids()
    }
}

/// Writes a group, sale by sale; one answer for each entry, in their order.
async fn enter_all(rows: &LineRows, group: Vec<NewEntry>, entries_max: u64) -> Vec<EnterAnswer> {
    let mut by_sale: HashMap<SaleId, (Vec<usize>, Vec<NewEntry>)> = HashMap::new();
    for (at, entry) in group.into_iter().enumerate() {
        let (places, entries) = by_sale.entry(entry.sale_id.clone()).or_default();
        places.push(at);
        entries.push(entry);
    }
    let mut answers: Vec<(usize, EnterAnswer)> = futures::stream::iter(by_sale)
        .map(|(sale, (places, entries))| async move {
            match rows.enter(&sale, &entries, entries_max).await {
                Ok(entered) => places.into_iter().zip(entered.into_iter().map(Ok)).collect::<Vec<_>>(),
                Err(error) => places.into_iter().map(|at| (at, Err(error.clone()))).collect(),
            }
        })
        .buffer_unordered(SALES_AT_ONCE)
        .collect::<Vec<_>>()
        .await
        .concat();
    crash_point!(EntriesCommitted);
    answers.sort_unstable_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn awaited(sale: &SaleId) -> Problem {
    Kind::LineAwaited.because_both(
        format!("units are there: buy with POST /v1/sales/{sale}/orders"),
        format!("商品有货，请通过 POST /v1/sales/{sale}/orders 购买"),
    )
}

fn closed() -> Problem {
    Kind::LineClosed.into()
}

/// For another account of the same person it is not said which one.
fn entered_before(first: EntryId, is_same_account: bool) -> Problem {
    if is_same_account {
        Kind::AlreadyEntered
            .because_both(format!("your entry is {first}"), format!("您的登记号为 {first}"))
            .about_entry(first)
    } else {
        Kind::AlreadyEntered.because_both("by another account of the same person", "同一人已用另一账号登记")
    }
}

fn not_written(error: &DbError) -> Problem {
    tracing::warn!(phase = "p1_entry", %error, "entries of a line");
    Kind::Unavailable.because_both(
        "whether you are in the line is not known; enter again, or ask for your entry",
        "尚不确定是否已登记；请重试，或查询您的登记",
    )
}
