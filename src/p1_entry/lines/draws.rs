//! The draws of lines as the entry shows them: the public document, the list, and the rank of an entry.
//!
//! Input: a sale. Output: what the database says of its line, a second old at most; of a sealed one the ids, of a drawn one the ranks, both
//! from memory: 12 bytes an entry, of the few lines that were asked about last. They are read once, checked against the sealed digest, and
//! never change. A crash leaves nothing.

use crate::domain::draw::Ranks;
use crate::domain::ids::SaleId;
use crate::http::problem::{Kind, Problem};
use crate::lines::list::{ListFault, read_list};
use crate::lines::rows::{Line, LineRows};
use crate::store::mysql::DbError;
use moka::future::Cache;
use std::sync::Arc;
use std::time::Duration;

/// How old a line may be that is shown.
const LINE_TTL: Duration = Duration::from_secs(1);
/// Lines that are remembered.
const LINES_MAX: u64 = 10_000;
/// Lists that are remembered, of 5,000,000 entries at most.
const LISTS_MAX: u64 = 4;
/// Longest wait for a list; its reading goes on.
const LIST_WAIT: Duration = Duration::from_secs(20);

/// A sealed list; with the ranks of the seed alone, or of the seed and the beacon.
type ListKey = (SaleId, Option<String>);

/// Draws, of one process. Clones share what is remembered.
#[derive(Clone)]
pub(super) struct Draws {
    rows: LineRows,
    lines: Cache<SaleId, Option<Arc<Line>>>,
    lists: Cache<ListKey, Arc<Ranks>>,
}

impl Draws {
    pub(super) fn new(rows: LineRows) -> Self {
        Self {
            rows,
            lines: Cache::builder().max_capacity(LINES_MAX).time_to_live(LINE_TTL).build(),
            lists: Cache::builder().max_capacity(LISTS_MAX).build(),
        }
    }

    /// The line of a sale, a second old at most.
    ///
    /// # Errors
    /// 404 when the sale has none, 503 while the database does not answer.
    pub(super) async fn line(&self, sale: &SaleId) -> Result<Arc<Line>, Problem> {
        let read = async { Ok::<_, DbError>(self.rows.line(sale).await?.map(Arc::new)) };
        let found = self.lines.try_get_with(sale.clone(), read).await.map_err(|error| not_read(&error))?;
        found.ok_or_else(|| Kind::NoLine.into())
    }

    /// What was shown of a line is shown no more: it is another one by now.
    pub(super) async fn forget(&self, sale: &SaleId) {
        self.lines.invalidate(sale).await;
    }

    /// The list of a sealed line with its ranks; those of a line that is not drawn mean nothing yet.
    pub(super) async fn ranks(&self, line: &Line) -> Result<Arc<Ranks>, Problem> {
        let Some(sealed) = line.sealed.clone() else {
            return Err(Kind::LineNotSealed.because_both("its list is not sealed yet", "名单尚未封存"));
        };
        let (lists, rows, sale) = (self.lists.clone(), self.rows.clone(), line.sale_id.clone());
        let list_key: ListKey = (sale.clone(), line.beacon.clone());
        if let Some(ranks) = lists.get(&list_key).await {
            return Ok(ranks);
        }
        let reading = tokio::spawn(async move {
            let beacon = list_key.1.clone();
            let read = async { read_list(&rows, &sale, (sealed, beacon)).await };
            lists.try_get_with(list_key, read).await
        });
        match tokio::time::timeout(LIST_WAIT, reading).await {
            Ok(Ok(Ok(ranks))) => Ok(ranks),
            Ok(Ok(Err(fault))) => Err(no_list(&line.sale_id, &fault)),
            Ok(Err(_stopped)) => Err(no_list(&line.sale_id, &ListFault::Stopped)),
            Err(_elapsed) => {
                Err(Kind::Unavailable.because_both("the list is being read; ask again", "名单读取中，请稍后再试"))
            }
        }
    }
}

pub(super) fn not_read(error: &DbError) -> Problem {
    tracing::warn!(phase = "p1_entry", %error, "lines");
    Kind::Unavailable.because_both("lines cannot be read right now", "抽签暂时无法查询")
}

fn no_list(sale: &SaleId, fault: &ListFault) -> Problem {
    if let ListFault::Changed(_) = fault {
        tracing::error!(phase = "p1_entry", %sale, %fault, "the list of a line was changed behind its seal");
        return Kind::Internal.because_both(
            "the list in the database is not the one that was sealed; the shop has to examine it",
            "数据库中的名单与封存时不一致，商家须核查",
        );
    }
    tracing::warn!(phase = "p1_entry", %sale, %fault, "the list of a line");
    Kind::Unavailable.because_both("the list cannot be read right now", "名单暂时无法读取")
}
