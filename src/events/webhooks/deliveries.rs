//! Deliveries of webhooks as the APIs and the command line show them, and their replay, which is an act on record.
//!
//! Input: which deliveries. Output: documents; replayed deliveries wait again, with their act. A crash in a replay of all dead ones
//! leaves its act, and the rest dead; a repeat takes them.

use super::cursor::after_delivery;
use super::forms::ReplayForm;
use crate::config::Webhook;
use crate::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use crate::domain::webhook::OF_A_SALE;
use crate::events::webhooks::rows::WebhookRows;
use crate::events::webhooks::rows::{DeliveriesFilter, ListedDelivery, ReplayedRows};
use crate::faults::crash_point;
use crate::http::cursors::last_of_full;
use crate::http::times::shown_time;
use crate::store::mysql::DbError;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Ids that the row of an act names; the rest is counted.
const IDS_RECORDED: usize = 100;

/// One delivery.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryDocument {
    pub(crate) delivery_id: u64,
    pub(crate) webhook: String,
    /// The order, a decimal string; null where the event is of a sale.
    #[schema(required = true)]
    pub(crate) request_id: Option<String>,
    /// The sale, where the event is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sale_id: Option<String>,
    /// The event.
    #[schema(example = "order.paid")]
    pub(crate) r#type: String,
    /// WAITING, DELIVERED or DEAD.
    #[schema(example = "DEAD")]
    pub(crate) state: String,
    /// Tries so far.
    pub(crate) attempts: u16,
    /// When the event happened.
    pub(crate) created_at: String,
    /// WAITING: the next try. DEAD: since when. DELIVERED: its row may be deleted from then on.
    pub(crate) next_at: String,
    /// What the last try met.
    pub(crate) problem: Option<String>,
    /// The event, where one delivery is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) data: Option<Box<RawValue>>,
}

impl DeliveryDocument {
    /// For a list.
    pub(crate) fn of(row: ListedDelivery) -> Self {
        let is_of_a_sale = row.request_id == OF_A_SALE;
        Self {
            delivery_id: row.delivery_id,
            webhook: row.webhook,
            request_id: (!is_of_a_sale).then(|| row.request_id.to_string()),
            sale_id: is_of_a_sale.then(|| sale_of(&row.body)).flatten(),
            r#type: row.event_key,
            state: row.state,
            attempts: row.attempts,
            created_at: shown_time(row.created_at_ms),
            next_at: shown_time(row.next_at_ms),
            problem: row.problem,
            data: None,
        }
    }

    /// With its event.
    pub(crate) fn with_data(row: ListedDelivery) -> Self {
        let body = String::from_utf8_lossy(&row.body).into_owned();
        Self { data: RawValue::from_string(body).ok(), ..Self::of(row) }
    }
}

/// The sale that an event of a sale names.
fn sale_of(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        sale_id: String,
    }
    serde_json::from_slice(body).ok().map(|Named { sale_id }| sale_id)
}

/// A page of deliveries.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct DeliveriesPage {
    /// By webhook, those that wait or are dead for longest first.
    pub(crate) deliveries: Vec<DeliveryDocument>,
    /// How many there are on all pages, counted up to 10,000.
    pub(crate) count: i64,
    /// Whether there are more than `count`.
    pub(crate) more_than_count: bool,
    /// `cursor` of the next page; null on the last one.
    pub(crate) next: Option<String>,
}

impl DeliveriesPage {
    /// The answer to `wanted`.
    pub(crate) async fn read(webhooks: &WebhookRows, wanted: &DeliveriesFilter) -> Result<Self, DbError> {
        let found = webhooks.list(wanted).await?;
        let next = last_of_full(&found.deliveries, wanted.limit).map(after_delivery);
        Ok(Self {
            deliveries: found.deliveries.into_iter().map(DeliveryDocument::of).collect(),
            count: found.count,
            more_than_count: found.has_more_than_count,
            next,
        })
    }
}

/// A webhook, and what of it waits or is dead.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookDocument {
    pub(crate) name: String,
    /// Whether it is in the configuration; else its rows are kept and not sent.
    pub(crate) configured: bool,
    /// Scheme and host.
    pub(crate) url: Option<String>,
    pub(crate) events: Vec<String>,
    pub(crate) waiting: i64,
    /// Age of the oldest event that waits, seconds.
    pub(crate) oldest_s: i64,
    pub(crate) dead: i64,
}

/// The webhooks of the configuration, and those that have rows only.
pub(crate) async fn webhooks_overview(
    webhooks: &WebhookRows,
    configured: &[Webhook],
) -> Result<Vec<WebhookDocument>, DbError> {
    // It counts.
    let mut figures = webhooks.patient().figures().await?;
    let mut documents = Vec::with_capacity(configured.len() + figures.len());
    for webhook in configured {
        let at = figures.iter().position(|of| of.webhook == webhook.name);
        let of = at.map(|at| figures.swap_remove(at));
        documents.push(WebhookDocument {
            name: webhook.name.clone(),
            configured: true,
            url: Some(webhook.url.shown()),
            events: webhook.events.clone(),
            waiting: of.as_ref().map_or(0, |of| of.waiting),
            oldest_s: of.as_ref().map_or(0, |of| of.oldest_ms / 1000),
            dead: of.map_or(0, |of| of.dead),
        });
    }
    documents.extend(figures.into_iter().map(|of| WebhookDocument {
        name: of.webhook,
        configured: false,
        url: None,
        events: Vec::new(),
        waiting: of.waiting,
        oldest_s: of.oldest_ms / 1000,
        dead: of.dead,
    }));
    Ok(documents)
}

/// What was sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct ReplayedDeliveries {
    /// How many.
    pub(crate) replayed: usize,
    /// Ids of no delivery; it may have been deleted after its time.
    pub(crate) unknown: Vec<u64>,
    /// Webhooks that were closed because their receivers answered 410, and that are open again: also what waits for them is sent.
    pub(crate) opened: Vec<String>,
}

impl ReplayForm {
    /// Sends them again: at once, with all their tries, under the same ids; `progress` gets how many of the dead ones so far. Repeating is
    /// safe.
    ///
    /// # Errors
    /// [`DbError`]; of dead ones perhaps after some wait again, with the act on record.
    pub(crate) async fn replay(
        self,
        webhooks: &WebhookRows,
        actor: &Actor,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<ReplayedDeliveries, DbError> {
        if self.dead {
            let of = self.webhook.as_deref().unwrap_or("all webhooks");
            let asked = json!({ "dead": true, "webhook": self.webhook });
            let act = act(actor, format!("dead deliveries of {of}"), asked);
            let opened = webhooks.begin_replay(self.webhook.as_deref(), &act).await?;
            crash_point!(WebhookReplayed);
            let replayed = webhooks.replay_dead(self.webhook.as_deref(), progress).await?;
            return Ok(ReplayedDeliveries { replayed, unknown: Vec::new(), opened });
        }
        let made = |rows: &ReplayedRows| {
            let named: Vec<&u64> = rows.known.iter().take(IDS_RECORDED).collect();
            let first = rows.known.first();
            let target = first.map_or_else(|| "no delivery".to_owned(), |first| format!("delivery {first}"));
            act(actor, target, json!({ "delivery_ids": named, "replayed": rows.known.len() }))
        };
        let ReplayedRows { known, opened } = webhooks.replay(&self.delivery_ids, &made).await?;
        crash_point!(WebhookReplayed);
        let unknown = self.delivery_ids.iter().copied().filter(|id| !known.contains(id)).collect();
        Ok(ReplayedDeliveries { replayed: known.len(), unknown, opened })
    }
}

fn act(actor: &Actor, target: String, after: Value) -> OperatorAct {
    let act = OperatorAct::new(actor, Operation::WebhookReplay, ActTarget::Entry(target));
    OperatorAct { after: Some(after), ..act }
}
