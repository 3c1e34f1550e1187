//! The checks of who gets events: webhooks as their leader has them and as this configuration has, and whether consumers publish.
//!
//! Input: this configuration, the rows of the leader. Output: a line each. Changes nothing.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::Settings;
use crate::events::webhooks::rows::WebhookRows;
use std::collections::BTreeMap;

/// Whether the leader of the webhooks has the webhooks of this configuration.
pub(super) async fn webhooks(webhooks: &WebhookRows, settings: &Settings) -> DoctorCheck {
    let stored = match webhooks.stored().await {
        Ok(stored) => stored,
        Err(error) => return DoctorCheck::away("mysql", &error),
    };
    let of_leader: BTreeMap<String, Vec<String>> = stored
        .into_iter()
        .filter(|row| !row.events.is_empty())
        .map(|row| (row.webhook, sorted(row.events.split_whitespace())))
        .collect();
    let own = settings.webhooks.iter().map(|of| (of.name.clone(), sorted(of.events.iter().map(String::as_str))));
    let own: BTreeMap<String, Vec<String>> = own.collect();
    let value = shown(&of_leader);
    DoctorCheck::new("mysql", "webhooks of the leader", value, shown(&own)).judged(
        of_leader == own,
        CheckVerdict::Warning,
        "every process writes events for the webhooks of both; those that only this configuration has are not sent",
        "give all processes the same [[webhooks]]; a reconcile role that starts writes its own into the database",
    )
}

fn sorted<'a>(events: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut events: Vec<String> = events.map(str::to_owned).collect();
    events.sort();
    events
}

fn shown(webhooks: &BTreeMap<String, Vec<String>>) -> String {
    if webhooks.is_empty() {
        return "none".to_owned();
    }
    let each: Vec<String> = webhooks.iter().map(|(name, events)| format!("{name} ({})", events.join(" "))).collect();
    each.join(", ")
}

/// Whether consumers with this configuration publish events.
pub(super) fn published(settings: &Settings) -> DoctorCheck {
    let events = settings.p4_persist.events;
    DoctorCheck::new("rabbitmq", "p4_persist.events", events.to_string(), "true").judged(
        events,
        CheckVerdict::Warning,
        "a single consumer with false deletes the waiting events of all others, which are published nowhere then",
        "set it to true for every consumer, or to false for every one when nothing reads <prefix>.events",
    )
}
