//! The rows that a transaction will write, worked out before it opens, so that it holds its locks only while it writes.

use crate::domain::ids::{DropId, SaleId};
use crate::domain::message::OrderMessage;
use crate::domain::order_life::{OrderState, PaymentTerms};
use crate::domain::outcome::{FailReason, Obstacle, Outcome};
use crate::domain::policy::PurchasePolicy;
use crate::domain::request::Purchase;
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::published::{PublishedEvent, WaitingEvents};
use crate::events::webhooks::rows::DeliveryRows;
use crate::faults::left_out;
use crate::orders::persist::sale_facts::SaleFacts;
use crate::store::mysql::codes::{PersistSource, datetime, outcome_columns};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::request_outcome;
use crate::store::mysql::values::Values;
use diesel::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// Opens the transaction: from here on nothing is committed without COMMIT, whatever becomes of the transaction.
const OPEN: &str = "SET autocommit = 0; BEGIN";
const OUTCOME_COLUMNS: &str = "/* landing */ INSERT INTO request_outcome \
    (request_id, kind, sale_id, shard, epoch, number, payload_hash) VALUES ";
const ORDER_COLUMNS: &str = "/* landing */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at) VALUES ";
/// The same where a sale of the group has a payment step; its deadlines are by the database's clock.
const PAYABLE_COLUMNS: &str = "/* landing */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at, \
    state, state_at, pay_by, expire_at) VALUES ";
/// The same where a sale of the group limits by person.
const ORDER_OF_PERSON_COLUMNS: &str = "/* landing */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at, person) VALUES ";
const PAYABLE_OF_PERSON_COLUMNS: &str = "/* landing */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at, person, \
    state, state_at, pay_by, expire_at) VALUES ";
const FLOW_COLUMNS: &str = "/* landing */ INSERT INTO stock_flow (sale_id, delta, kind, orders_count, ref) VALUES ";

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

/// What one sale gives to the group.
pub(crate) struct SaleShare {
    pub units: i64,
    pub orders_count: u32,
    pub(crate) first_request: u64,
    /// How often numbers of the sale were closed when its closed numbers were read.
    pub(crate) closings: u32,
    /// The limit and the units that each buyer gets now; only for sales whose units are counted. Sorted by buyer, so
    /// that two transactions lock buyers in the same order.
    pub buyers: Option<(u64, BTreeMap<Vec<u8>, u64>)>,
}

/// What one drop gives to the group, by all its sales.
pub(crate) struct DropShare {
    /// Most units of one buyer; none: they are only counted.
    pub(crate) limit: Option<u64>,
    /// The units that each buyer gets now, sorted by buyer as those of a sale are.
    pub(crate) buyers: BTreeMap<Vec<u8>, u64>,
}

/// The rows of one transaction. Sorted by request id and by sale: all such transactions take locks in one order.
pub(crate) struct WritePlan<'a> {
    /// The beginning and the INSERTs into `request_outcome`, `orders`, `stock_flow` and, where a webhook wants them, `webhook_deliveries`, as
    /// one message to the server. It executes them in order and stops at the first that fails.
    pub opening: String,
    /// The events to publish later; empty when the requests came as messages, whose consumer publishes them itself.
    pub events: Vec<WaitingEvents>,
    /// What each sale gives.
    pub shares: BTreeMap<&'a SaleId, SaleShare>,
    /// What each drop gives.
    pub(crate) drops: BTreeMap<DropId, DropShare>,
    /// Orders that have to be paid.
    pub(crate) unpaid_count: usize,
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
        webhooks: &WebhookSubscriptions,
    ) -> Result<Result<Self, Obstacle>, DbError> {
        let mut deliveries = DeliveryRows::new(webhooks, Outcome::Ordered.event_key(), group.len());
        let mut group = group.to_vec();
        group.sort_unstable_by_key(|accepted| accepted.purchase.request_id);
        let mut outcomes = Values::insert(OUTCOME_COLUMNS, group.len());
        let payable = facts.values().any(|facts| facts.payment.is_some());
        let of_persons = group.iter().any(|accepted| accepted.purchase.person.is_some());
        let columns = match (payable, of_persons) {
            (false, false) => ORDER_COLUMNS,
            (true, false) => PAYABLE_COLUMNS,
            (false, true) => ORDER_OF_PERSON_COLUMNS,
            (true, true) => PAYABLE_OF_PERSON_COLUMNS,
        };
        let mut orders = Values::insert(columns, group.len());
        let (mut shares, mut drops) = (BTreeMap::new(), BTreeMap::new());
        let mut events = Vec::new();
        let mut unpaid_count = 0;
        let mut of_sale: Option<(&SaleId, &SaleFacts)> = None;
        for accepted in group {
            let sale_id = &accepted.purchase.sale_id;
            // Most neighbours are of one sale.
            let known = of_sale.filter(|(known, _)| *known == sale_id).map(|(_, facts)| facts);
            let Some(facts) = known.or_else(|| facts.get(sale_id)) else {
                return Ok(Err(Obstacle::NoSuchSale));
            };
            of_sale = Some((sale_id, facts));
            if facts.closed.have(accepted) && !left_out!(ClosedNumbers) {
                return Ok(Err(Obstacle::NumberClosed));
            }
            if !facts.allow(accepted.purchase.quantity) {
                return Ok(Err(Obstacle::LimitPassed));
            }
            unpaid_count += usize::from(facts.payment.is_some());
            add_outcome(&mut outcomes, accepted);
            add_order(&mut orders, accepted, facts, source)?;
            if of_persons {
                add_person(&mut orders, accepted);
            }
            if payable {
                add_deadline(&mut orders, facts.payment);
            }
            add_share(&mut shares, accepted, facts);
            add_drop_share(&mut drops, accepted, facts);
            if !source.has_message() || deliveries.is_wanted() {
                let event = PublishedEvent::of_outcome(accepted, Outcome::Ordered, Some(&facts.unit_price)).encoded();
                deliveries.add(&event);
                events.extend((!source.has_message()).then_some(event));
            }
        }
        let mut opening = [OPEN, &outcomes.finish(), &orders.finish(), &flows(&shares)].join("; ");
        if left_out!(OutcomeKey) {
            opening = opening.replace("INSERT INTO", "INSERT IGNORE INTO");
        }
        deliveries.append_to(&mut opening);
        Ok(Ok(Self { opening, events, shares, drops, unpaid_count }))
    }
}

/// One journal row a sale.
fn flows(shares: &BTreeMap<&SaleId, SaleShare>) -> String {
    let mut flows = Values::insert(FLOW_COLUMNS, shares.len());
    for (sale_id, share) in shares {
        flows.row();
        flows.bytes(sale_id.as_str().as_bytes());
        flows.signed(-share.units);
        flows.code("order");
        flows.number(share.orders_count);
        flows.bytes(share.first_request.to_string().as_bytes());
    }
    flows.finish()
}

fn add_outcome(outcomes: &mut Values, accepted: &OrderMessage) {
    let (kind, _no_reason) = outcome_columns(Outcome::Ordered);
    outcomes.row();
    outcomes.number(accepted.purchase.request_id.get());
    outcomes.code(kind);
    outcomes.bytes(accepted.purchase.sale_id.as_str().as_bytes());
    outcomes.number(accepted.shard);
    outcomes.number(accepted.epoch);
    outcomes.number(accepted.number);
    outcomes.bytes(&accepted.payload_hash());
}

fn add_order(
    orders: &mut Values,
    accepted: &OrderMessage,
    facts: &SaleFacts,
    source: PersistSource,
) -> Result<(), DbError> {
    let purchase = &accepted.purchase;
    let user_id = purchase.user_id.as_str().as_bytes();
    let amount_cents = facts.unit_price.cents.checked_mul(i64::from(purchase.quantity.get())).ok_or_else(|| {
        DbError::Other(format!("the amount of request {} does not fit its column", purchase.request_id))
    })?;
    orders.row();
    orders.number(purchase.request_id.get());
    orders.bytes(purchase.sale_id.as_str().as_bytes());
    orders.bytes(user_id);
    match facts.policy {
        PurchasePolicy::OnePerUser if purchase.person.is_none() => orders.bytes(user_id),
        // The unique key of one per user is by account: one per person is counted as every other number is.
        PurchasePolicy::OnePerUser | PurchasePolicy::Cumulative(_) | PurchasePolicy::Unlimited => orders.null(),
    }
    orders.number(purchase.quantity.get());
    orders.signed(amount_cents);
    orders.code(source.code());
    orders.time(datetime(accepted.accepted_at_ms)?);
    Ok(())
}

/// Under which id the units of a purchase count.
fn limit_key(purchase: &Purchase) -> &[u8] {
    let key = if left_out!(PersonGuard) { &purchase.user_id } else { purchase.limit_key() };
    key.as_str().as_bytes()
}

fn add_person(orders: &mut Values, accepted: &OrderMessage) {
    match &accepted.purchase.person {
        Some(person) => orders.bytes(person.as_str().as_bytes()),
        None => orders.null(),
    }
}

fn add_deadline(orders: &mut Values, terms: Option<PaymentTerms>) {
    let Some(PaymentTerms { pay_within_s, pay_grace_s, .. }) = terms else {
        return (0..4).for_each(|_| orders.null());
    };
    orders.code(OrderState::Unpaid.code());
    orders.seconds_from_now(0);
    orders.seconds_from_now(pay_within_s.into());
    orders.seconds_from_now(u64::from(pay_within_s) + u64::from(pay_grace_s));
}

fn add_share<'a>(shares: &mut BTreeMap<&'a SaleId, SaleShare>, accepted: &'a OrderMessage, facts: &SaleFacts) {
    let purchase = &accepted.purchase;
    let share = shares.entry(&purchase.sale_id).or_insert_with(|| SaleShare {
        units: 0,
        orders_count: 0,
        first_request: purchase.request_id.get(),
        closings: facts.closings,
        buyers: None,
    });
    share.units += i64::from(purchase.quantity.get());
    share.orders_count += 1;
    let counted = match facts.policy {
        PurchasePolicy::Cumulative(limit) => Some(u64::from(limit.get())),
        PurchasePolicy::OnePerUser => purchase.person.is_some().then_some(1),
        PurchasePolicy::Unlimited => None,
    };
    if let Some(limit) = counted {
        let (_, buyers) = share.buyers.get_or_insert_with(|| (limit, BTreeMap::new()));
        let owned = buyers.entry(limit_key(purchase).to_vec()).or_default();
        *owned += u64::from(purchase.quantity.get());
    }
}

fn add_drop_share(drops: &mut BTreeMap<DropId, DropShare>, accepted: &OrderMessage, facts: &SaleFacts) {
    let Some(of) = &facts.in_drop else { return };
    let purchase = &accepted.purchase;
    let limit = of.limit.map(|limit| u64::from(limit.get()));
    let share = drops.entry(of.drop_id.clone()).or_insert_with(|| DropShare { limit, buyers: BTreeMap::new() });
    let owned = share.buyers.entry(limit_key(purchase).to_vec()).or_default();
    *owned += u64::from(purchase.quantity.get());
}
