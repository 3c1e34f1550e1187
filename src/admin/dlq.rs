//! The dead-letter queues over HTTP (E5): the same service as `seckill dlq`, with the operator's name from the body.
//!
//! A browser that disconnects does not stop an action half-way: it runs as a task of its own. Killing the process does; the
//! service is made for that (see `p5_reconcile::dlq`).

use super::act_body::ActBody;
use super::calls::{OperateCall, ViewCall};
use super::json_api::{AdminAnswer, JsonBody, ReadProblems, WriteProblems, answer, message_text};
use super::state::Admin;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::operator::Actor;
use crate::http::problem::{Kind, Problem};
use crate::p5_reconcile::dlq::forms::{DlqActionForm, source};
use crate::p5_reconcile::dlq::{
    self, DlqAction, DlqEntry, DlqListing, DlqReportLine, DlqSelection, DlqService, DlqSource, code_of,
};
use actix_web::web;
use serde::{Deserialize, Serialize};

/// Entries of one answer; the counts are of all.
const SHOWN_MAX: usize = 500;
/// Entries named in one action.
const NAMED_MAX: usize = 1_000;
/// Longest reason, characters.
const REASON_CHARS_MAX: usize = 500;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DlqQuery {
    /// `relay` or `mq`; both when left out.
    source: Option<String>,
    /// Only this request or entry, with its whole message.
    named: Option<String>,
}

/// List what is parked in both dead-letter queues and among the failed requests.
#[utoipa::path(
    get, path = "/admin/v1/dlq", operation_id = "list_parked", tag = "dead letters",
    params(DlqQuery),
    responses((status = 200, description = "Counts and entries", body = ParkedList), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<DlqQuery>) -> AdminAnswer {
    let wanted = source(query.source.as_deref())?;
    // Always both queues: reading one takes as long, and all screens share the answer.
    let read = async { dlq::list(&admin.context, None).await.map_err(Problem::from) };
    let listing = admin.parked.try_get(read).await?;
    answer(ParkedList::of(&listing, wanted, query.named.as_deref()))
}

/// The place of an entry, by its name.
fn place(entry: &DlqEntry) -> &str {
    entry.entry.split('/').next().unwrap_or("")
}

/// How many entries each place has.
#[derive(Serialize, utoipa::ToSchema)]
struct ParkedCounts {
    /// Of the relay DLQ.
    relay: usize,
    /// Of the MQ DLQ.
    mq: usize,
    /// Open failed requests.
    register: usize,
}

/// One parked entry.
#[derive(Serialize, utoipa::ToSchema)]
struct ParkedEntry {
    /// Its name, `relay/<shard>/<stream id>`, `mq/<fingerprint>` or `register/<request id>`.
    entry: String,
    /// Null, as are the next three, where the message cannot be read.
    #[schema(value_type = Option<String>)]
    request_id: Option<RequestId>,
    #[schema(value_type = Option<String>)]
    sale_id: Option<SaleId>,
    #[schema(value_type = Option<String>)]
    user_id: Option<UserId>,
    quantity: Option<u32>,
    /// Why it was parked.
    reason: String,
    /// Attempts that failed, where they were counted.
    attempts: Option<u32>,
    /// Since when, Unix milliseconds, where it is known.
    parked_at_ms: Option<i64>,
    /// What the database decided about the request meanwhile: its state code.
    fate: Option<&'static str>,
    /// The message as text, its beginning in a list.
    payload: String,
}

/// What is parked.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ParkedList {
    /// Of all entries, whatever was asked for.
    counts: ParkedCounts,
    /// At most 500.
    entries: Vec<ParkedEntry>,
    /// Whether there are more.
    more: bool,
}

impl ParkedList {
    fn of(listing: &DlqListing, source: Option<DlqSource>, named: Option<&str>) -> Self {
        let count = |wanted: &str| listing.entries.iter().filter(|entry| place(entry) == wanted).count();
        let wanted = |entry: &&DlqEntry| {
            named.is_none_or(|word| entry.is(word))
                && match source {
                    None => true,
                    Some(DlqSource::Relay) => place(entry) == "relay",
                    Some(DlqSource::Mq) => place(entry) == "mq",
                }
        };
        let all: Vec<&DlqEntry> = listing.entries.iter().filter(wanted).collect();
        Self {
            counts: ParkedCounts { relay: count("relay"), mq: count("mq"), register: count("register") },
            entries: all.iter().take(SHOWN_MAX).map(|entry| ParkedEntry::of(entry, named.is_some())).collect(),
            more: listing.more || all.len() > SHOWN_MAX,
        }
    }
}

impl ParkedEntry {
    fn of(entry: &DlqEntry, whole: bool) -> Self {
        let message = &entry.payload;
        Self {
            entry: entry.entry.clone(),
            request_id: entry.request_id,
            sale_id: entry.sale_id.clone(),
            user_id: entry.user_id.clone(),
            quantity: entry.quantity,
            reason: entry.reason.clone(),
            attempts: entry.attempts,
            parked_at_ms: entry.parked_at_ms,
            fate: entry.outcome.map(code_of),
            payload: if whole { String::from_utf8_lossy(message).into_owned() } else { message_text(message) },
        }
    }
}

type DlqActionBody = ActBody<DlqActionForm>;

/// What an action came to.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DlqDone {
    /// Nothing was changed: it is what would be done.
    dry_run: bool,
    /// One of each request.
    done: Vec<DlqReportLine>,
    /// A place has more entries than are read at once: repeat it.
    more: bool,
    /// Requests about which a person still has to decide.
    trouble: usize,
}

fn selection(form: &DlqActionForm) -> Result<DlqSelection, Problem> {
    if form.named.len() > NAMED_MAX {
        return Err(Kind::Unprocessable
            .because_both(format!("named: expected at most {NAMED_MAX}"), format!("named：最多 {NAMED_MAX} 个")));
    }
    Ok(form.selection()?)
}

/// Write the orders of parked requests; the database is read first.
#[utoipa::path(
    post, path = "/admin/v1/dlq/replay", operation_id = "replay_parked", tag = "dead letters",
    request_body = DlqActionBody, responses((status = 200, description = "What became of each", body = DlqDone), WriteProblems)
)]
pub(super) async fn replay(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<DlqActionBody>,
) -> AdminAnswer {
    if body.form.reason.is_some() {
        return Err(Kind::Unprocessable.because_both("reason: only for giving up", "reason：仅用于放弃"));
    }
    answer(admin.apply_to_dlq(DlqAction::Replay, &body, call.actor(body.by.as_deref())?).await?)
}

/// Record that parked requests will never be orders.
#[utoipa::path(
    post, path = "/admin/v1/dlq/give-up", operation_id = "give_up_parked", tag = "dead letters",
    request_body = DlqActionBody, responses((status = 200, description = "What became of each", body = DlqDone), WriteProblems)
)]
pub(super) async fn give_up(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<DlqActionBody>,
) -> AdminAnswer {
    let reason = body.form.reason.as_deref().map_or("", str::trim);
    if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
        return Err(Kind::Unprocessable.because_both(
            format!("reason: expected 1 to {REASON_CHARS_MAX} characters"),
            format!("reason：应为 1 至 {REASON_CHARS_MAX} 个字符"),
        ));
    }
    let giving_up = DlqAction::GiveUp(reason.to_owned());
    answer(admin.apply_to_dlq(giving_up, &body, call.actor(body.by.as_deref())?).await?)
}

impl Admin {
    async fn apply_to_dlq(&self, action: DlqAction, body: &DlqActionBody, actor: Actor) -> Result<DlqDone, Problem> {
        let selection = selection(&body.form)?;
        let busy = |_| {
            Kind::Conflict.because_both(
                "another replay or give-up is under way in this process; wait for its end",
                "本进程正在执行另一次重放或放弃，请等待其结束",
            )
        };
        let turn = self.acting.clone().try_lock_owned().map_err(busy)?;
        let service = DlqService { context: self.context.clone(), actor };
        let (dry_run, acting) = (selection.dry_run, async move {
            let report = service.apply(&action, &selection, &|_, _| {}).await;
            drop(turn);
            report
        });
        let report = tokio::spawn(acting).await.map_err(|_| Problem::from(Kind::Internal))??;
        if !dry_run {
            self.parked.forget().await;
            self.snapshot.forget().await;
        }
        let trouble = report.done.iter().filter(|done| done.result.is_trouble()).count();
        Ok(DlqDone { dry_run, done: report.done, more: report.more, trouble })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_names_at_most_a_thousand() {
        let of = |count| DlqActionForm { named: vec!["1".to_owned(); count], ..DlqActionForm::default() };
        assert!(selection(&of(NAMED_MAX)).is_ok());
        assert_eq!(selection(&of(NAMED_MAX + 1)).unwrap_err().kind(), Kind::Unprocessable);
    }
}
