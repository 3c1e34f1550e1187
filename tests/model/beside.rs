//! The models beside the first one that are searched, judged and reported in the same way.

use crate::drops::{self, DropsSetup};
use crate::events::{self, EventsSetup};
use crate::lines::{self, LinesSetup};
use crate::neighbours::{self, NeighboursSetup};
use crate::report;
use crate::search::{Complete, Found, Lacking, Searched};
use crate::webhooks::{self, WebhooksSetup};
use crate::{complete, judge_complete, judge_lacking, judge_sights, lacking};
use std::fmt::Display;
use std::sync::LazyLock;

/// What the searches of a model have found.
pub struct BesideModel<M> {
    complete: Vec<(Complete<M>, Found)>,
    lacking: Vec<(Lacking<M>, Found)>,
}

impl<M: Searched + Display> BesideModel<M> {
    fn search(configurations: Vec<Complete<M>>, without: Vec<Lacking<M>>) -> Self {
        Self { complete: complete(configurations), lacking: lacking(without) }
    }

    /// Every law holds where it should, every situation is reached, and each mechanism breaks its laws when it is left out.
    fn judge(&self) {
        judge_complete(&self.complete);
        judge_sights(&self.complete);
        judge_lacking(&self.lacking);
    }

    /// Its section of the document.
    pub fn section(&self, head: &str) -> String {
        report::section(head, &self.complete, "each of these", &self.lacking)
    }
}

/// The events of orders.
pub static EVENTS: LazyLock<BesideModel<EventsSetup>> =
    LazyLock::new(|| BesideModel::search(events::configurations(), events::without()));

/// The deliveries of a webhook.
pub static WEBHOOKS: LazyLock<BesideModel<WebhooksSetup>> =
    LazyLock::new(|| BesideModel::search(webhooks::configurations(), webhooks::without()));

/// Two sales that share their queues.
pub static NEIGHBOURS: LazyLock<BesideModel<NeighboursSetup>> =
    LazyLock::new(|| BesideModel::search(neighbours::configurations(), neighbours::without()));

/// A drop with two sales.
pub static DROPS: LazyLock<BesideModel<DropsSetup>> =
    LazyLock::new(|| BesideModel::search(drops::configurations(), drops::without()));

/// A line.
pub static LINES: LazyLock<BesideModel<LinesSetup>> =
    LazyLock::new(|| BesideModel::search(lines::configurations(), lines::without()));

#[test]
fn the_laws_of_events_hold_and_each_mechanism_is_needed() {
    EVENTS.judge();
}

#[test]
fn the_laws_of_webhooks_hold_and_each_mechanism_is_needed() {
    WEBHOOKS.judge();
}

#[test]
fn the_laws_of_two_sales_hold_and_each_mechanism_is_needed() {
    NEIGHBOURS.judge();
}

#[test]
fn the_laws_of_a_drop_hold_and_each_mechanism_is_needed() {
    DROPS.judge();
}

#[test]
fn the_laws_of_a_line_hold_and_each_mechanism_is_needed() {
    LINES.judge();
}
