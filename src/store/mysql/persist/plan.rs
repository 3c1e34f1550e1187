//! The rows that a transaction will write, worked out before it opens, so that it holds its locks only while it writes.

use super::super::codes::{PersistSource, datetime, outcome_columns};
use super::super::fault::DbError;
use super::super::sale_facts::SaleFacts;
use super::super::schema::{outcome_event, request_outcome, stock_flow};
use super::text::Values;
use crate::domain::ids::SaleId;
use crate::domain::message::{self, OrderMessage};
use crate::domain::outcome::{FailReason, Obstacle, Outcome};
use crate::domain::policy::PurchasePolicy;
use diesel::prelude::*;
use std::collections::{BTreeMap, HashMap};

const OUTCOME_COLUMNS: &str = "/* landing */ INSERT INTO request_outcome \
    (request_id, kind, sale_id, shard, epoch, number, payload_hash) VALUES ";
const ORDER_COLUMNS: &str = "/* landing */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at) VALUES ";

#[derive(Insertable)]
#[diesel(table_name = request_outcome, treat_none_as_default_value = false)]
pub(crate) struct NewOutcomeRow<'a> {
    pub request_id: u64,
    pub kind: &'static str,
    pub reason: Option<&'static str>,
    pub sale_id: &'a [u8],
    pub shard: u16,
    pub epoch: u32,
    pub number: Option<u64>,
    pub payload_hash: Vec<u8>,
}

impl<'a> NewOutcomeRow<'a> {
    pub(crate) fn of(accepted: &'a OrderMessage, outcome: Outcome) -> Self {
        let (kind, reason) = outcome_columns(outcome);
        Self {
            request_id: accepted.purchase.request_id.get(),
            kind,
            reason,
            sale_id: accepted.purchase.sale_id.as_str().as_bytes(),
            shard: accepted.shard,
            epoch: accepted.epoch,
            number: (outcome != Outcome::Failed(FailReason::NumberReused)).then_some(accepted.number),
            payload_hash: accepted.payload_hash().to_vec(),
        }
    }
}

#[derive(Insertable)]
#[diesel(table_name = stock_flow)]
pub(crate) struct NewFlowRow<'a> {
    pub sale_id: &'a [u8],
    pub delta: i64,
    pub kind: &'static str,
    pub orders_count: u32,
    pub reference: Vec<u8>,
}

/// An event that a consumer will publish; written in one transaction with its outcome.
#[derive(Insertable)]
#[diesel(table_name = outcome_event)]
pub(crate) struct NewEventRow {
    pub request_id: u64,
    pub(crate) event_key: &'static str,
    pub body: Vec<u8>,
}

impl NewEventRow {
    pub(crate) fn of(accepted: &OrderMessage, outcome: Outcome) -> Self {
        Self {
            request_id: accepted.purchase.request_id.get(),
            event_key: message::event_key(outcome),
            body: message::event(accepted, outcome).into_bytes(),
        }
    }
}

/// What one sale gives to the group.
pub(crate) struct SaleShare {
    pub units: i64,
    pub orders_count: u32,
    pub(crate) first_request: u64,
    /// The cumulative limit and the units that each buyer gets now; only for sales that have one. Sorted by buyer, so
    /// that two transactions lock buyers in the same order.
    pub buyers: Option<(u64, BTreeMap<Vec<u8>, u64>)>,
}

/// The rows of one transaction. Sorted by request id and by sale: all such transactions take locks in one order.
pub(crate) struct WritePlan<'a> {
    /// The INSERT into `request_outcome`.
    pub outcomes: String,
    /// The INSERT into `orders`.
    pub orders: String,
    /// The events to publish later; empty when the requests came as messages, whose consumer publishes them itself.
    pub events: Vec<NewEventRow>,
    /// What each sale gives.
    pub shares: BTreeMap<&'a SaleId, SaleShare>,
}

impl<'a> WritePlan<'a> {
    /// The plan, or the obstacle that shows already now.
    ///
    /// # Errors
    /// [`DbError::Other`] when a value does not fit its column; such a request can never be persisted and is for a person.
    pub(crate) fn of(
        group: &[&'a OrderMessage],
        facts: &HashMap<SaleId, SaleFacts>,
        source: PersistSource,
    ) -> Result<Result<Self, Obstacle>, DbError> {
        let mut group = group.to_vec();
        group.sort_unstable_by_key(|accepted| accepted.purchase.request_id);
        let mut outcomes = Values::insert(OUTCOME_COLUMNS, group.len());
        let mut orders = Values::insert(ORDER_COLUMNS, group.len());
        let mut shares = BTreeMap::new();
        let mut events = Vec::new();
        for accepted in group {
            let Some(facts) = facts.get(&accepted.purchase.sale_id) else {
                return Ok(Err(Obstacle::NoSuchSale));
            };
            if !facts.policy.allows(0, accepted.purchase.quantity) {
                return Ok(Err(Obstacle::LimitPassed));
            }
            add_outcome(&mut outcomes, accepted);
            add_order(&mut orders, accepted, facts, source)?;
            add_share(&mut shares, accepted, facts.policy);
            if !source.has_message() {
                events.push(NewEventRow::of(accepted, Outcome::Ordered));
            }
        }
        Ok(Ok(Self { outcomes: outcomes.finish(), orders: orders.finish(), events, shares }))
    }

    /// One journal row a sale.
    pub(crate) fn flow_rows(&self) -> Vec<NewFlowRow<'a>> {
        let row = |(sale_id, share): (&&'a SaleId, &SaleShare)| NewFlowRow {
            sale_id: sale_id.as_str().as_bytes(),
            delta: -share.units,
            kind: "order",
            orders_count: share.orders_count,
            reference: share.first_request.to_string().into_bytes(),
        };
        self.shares.iter().map(row).collect()
    }
}

fn add_outcome(outcomes: &mut Values, accepted: &OrderMessage) {
    let row = NewOutcomeRow::of(accepted, Outcome::Ordered);
    outcomes.row();
    outcomes.number(row.request_id);
    outcomes.code(row.kind);
    outcomes.bytes(row.sale_id);
    outcomes.number(row.shard);
    outcomes.number(row.epoch);
    outcomes.number(accepted.number);
    outcomes.bytes(&row.payload_hash);
}

fn add_order(
    orders: &mut Values,
    accepted: &OrderMessage,
    facts: &SaleFacts,
    source: PersistSource,
) -> Result<(), DbError> {
    let purchase = &accepted.purchase;
    let user_id = purchase.user_id.as_str().as_bytes();
    let amount_cents = facts.price_cents.checked_mul(i64::from(purchase.quantity.get())).ok_or_else(|| {
        DbError::Other(format!("the amount of request {} does not fit its column", purchase.request_id))
    })?;
    orders.row();
    orders.number(purchase.request_id.get());
    orders.bytes(purchase.sale_id.as_str().as_bytes());
    orders.bytes(user_id);
    match facts.policy {
        PurchasePolicy::OnePerUser => orders.bytes(user_id),
        PurchasePolicy::Cumulative(_) | PurchasePolicy::Unlimited => orders.null(),
    }
    orders.number(purchase.quantity.get());
    orders.number(amount_cents);
    orders.code(source.code());
    orders.time(datetime(accepted.accepted_at_ms)?);
    Ok(())
}

fn add_share<'a>(shares: &mut BTreeMap<&'a SaleId, SaleShare>, accepted: &'a OrderMessage, policy: PurchasePolicy) {
    let purchase = &accepted.purchase;
    let share = shares.entry(&purchase.sale_id).or_insert_with(|| SaleShare {
        units: 0,
        orders_count: 0,
        first_request: purchase.request_id.get(),
        buyers: match policy {
            PurchasePolicy::Cumulative(limit) => Some((u64::from(limit.get()), BTreeMap::new())),
            PurchasePolicy::OnePerUser | PurchasePolicy::Unlimited => None,
        },
    });
    share.units += i64::from(purchase.quantity.get());
    share.orders_count += 1;
    if let Some((_, buyers)) = share.buyers.as_mut() {
        let owned = buyers.entry(purchase.user_id.as_str().as_bytes().to_vec()).or_default();
        *owned += u64::from(purchase.quantity.get());
    }
}
