//! `lua/reserve.lua` against a model, over random sequences of groups, pauses, freezes and top-ups, of plain sales and of one of a drop.

use crate::support::basics::resp::{RawRedis, Reply};
use crate::support::world::outbox_kinds::{LIST, STREAM, orders_of, sent};
use crate::support::world::parts::reserve_model::{Ask, EPOCH, Model, Step, step};
use crate::support::world::parts::script_model::{limit_key, redis_sale, request_id, reserve_for, user_id};
use crate::support::world::{World, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use seckill::config::OutboxKind;
use seckill::domain::drops::SalesDrop;
use seckill::domain::ids::{DropId, RequestId, SaleId};
use seckill::domain::message;
use seckill::domain::policy::LimitBy;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::{MetaState, Sale};
use seckill::domain::sale_door::SaleDoor;
use seckill::store::redis::{Granted, LocatedEntry, SentEntry, Withdrawn};
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

struct Bench<'a> {
    world: &'a World,
    sale: SaleId,
    /// As it was activated.
    terms: Sale,
    model: Model,
    /// Orders that left the outbox.
    gone: usize,
}

impl Bench<'_> {
    async fn take(&mut self, no: usize, step: &Step) -> Result<(), TestCaseError> {
        let store = &self.world.servers.redis;
        let mut redis = RawRedis::of(self.world).await;
        match step {
            Step::Group(group, epoch) => self.group(no, group, *epoch).await?,
            Step::Crowd(group) => self.group(no, group, EPOCH).await?,
            Step::State(state) => {
                store.sale_keys.set_state(&self.sale, 0, *state, &MetaState::ALL).await.unwrap();
                self.model.state = *state;
            }
            Step::Door(door) => {
                let (token_required, by_line) = (*door == SaleDoor::Token, *door == SaleDoor::Line);
                let terms = Sale { token_required, by_line, ..self.terms.clone() };
                prop_assert!(store.sale_keys.set_terms(&terms, 0).await.unwrap());
                self.model.door = *door;
            }
            Step::Grant(units) => {
                let is_frozen = self.model.state == MetaState::Frozen;
                for expected in if is_frozen { [Granted::Frozen; 2] } else { [Granted::Now, Granted::Before] } {
                    let given = store
                        .sale_keys
                        .grant(&self.sale, 0, EPOCH, (&format!("g{no}"), i64::from(*units)))
                        .await
                        .unwrap();
                    prop_assert_eq!(given, expected, "step {}", no);
                }
                if !is_frozen {
                    self.model.stock += u64::from(*units);
                    self.model.granted += u64::from(*units);
                }
            }
            Step::Withdraw(units) => self.withdraw(no, *units).await?,
            Step::Relay(count) => {
                let read = store.outbox.new_entries(0, "relay-1", *count).await.unwrap();
                let sent: Vec<SentEntry> = read.iter().map(sent).collect();
                if !sent.is_empty() {
                    let done = store.outbox.done(0, "relay-1", &sent).await.unwrap();
                    prop_assert_eq!(done.unsigned_abs(), sent.len() as u64);
                }
                let gone: usize = sent.iter().map(|entry| entry.orders).sum();
                prop_assert!(gone <= self.model.outbox && (gone > 0 || self.model.outbox == 0));
                self.model.outbox -= gone;
                self.gone += gone;
            }
            Step::Emptied => {
                let keys = &store.keys;
                match self.world.settings.redis.outbox {
                    OutboxKind::Stream => redis.call(&["XTRIM", &keys.outbox(0), "MAXLEN", "0"]).await,
                    OutboxKind::List => redis.call(&["DEL", &keys.outbox_list(0)]).await,
                };
                self.gone += std::mem::take(&mut self.model.outbox);
            }
        }
        self.compare(&mut redis).await
    }

    async fn withdraw(&mut self, no: usize, units: u32) -> Result<(), TestCaseError> {
        let is_frozen = self.model.state == MetaState::Frozen;
        let taken = if is_frozen { 0 } else { self.model.stock.min(u64::from(units)) };
        let expected = if is_frozen { Withdrawn::Frozen } else { Withdrawn::Units(taken.try_into().unwrap()) };
        // What a repeat asks for does not matter.
        for asked in [i64::from(units), 1_000] {
            let keys = &self.world.servers.redis.sale_keys;
            let withdrawn = keys.withdraw(&self.sale, (0, EPOCH, 0), (&format!("w{no}"), asked)).await.unwrap();
            prop_assert_eq!(withdrawn, expected, "step {}", no);
        }
        self.model.stock -= taken;
        self.model.granted -= taken;
        Ok(())
    }

    async fn group(&mut self, no: usize, group: &[Ask], epoch: u32) -> Result<(), TestCaseError> {
        let sale = (&self.sale, self.model.by_person);
        let answers = reserve_for(&self.world.servers.redis, sale, epoch, group).await;
        let expected: Vec<Reserved> = group.iter().map(|ask| self.model.decide(*ask, epoch)).collect();
        prop_assert_eq!(answers, expected, "step {}", no);
        Ok(())
    }

    /// Everything in Redis is what the model has, and the sums hold.
    async fn compare(&self, redis: &mut RawRedis) -> Result<(), TestCaseError> {
        let (keys, model) = (&self.world.servers.redis.keys, &self.model);
        let ids: Vec<RequestId> = model.ledger.keys().map(|id| request_id(*id)).collect();
        prop_assert_eq!(
            redis.call(&["HLEN", &keys.ledger(0, &self.sale)]).await.int().unsigned_abs(),
            1 + ids.len() as u64
        );
        let records = self.world.servers.redis.ledger.lookup(&self.sale, 0, &ids).await.unwrap();
        let (mut numbers, mut units) = (BTreeSet::new(), 0);
        let mut of_buyer: HashMap<String, u64> = HashMap::new();
        for ((user, quantity, number), record) in model.ledger.values().zip(records) {
            let record = record.expect("a ledger record");
            prop_assert_eq!(
                (&record.user_id, record.quantity.get(), record.number),
                (&user_id(*user), *quantity, *number)
            );
            prop_assert!(numbers.insert(record.number));
            units += u64::from(record.quantity.get());
            let key = limit_key(model.key(*user), model.by_person);
            prop_assert_eq!(record.person.as_ref(), model.by_person.then_some(&key));
            *of_buyer.entry(key.to_string()).or_default() += u64::from(record.quantity.get());
        }
        prop_assert!(numbers.iter().copied().eq(1..=model.number), "numbers without gaps: {:?}", numbers);
        prop_assert_eq!(
            redis.call(&["HGET", &keys.meta(0, &self.sale), "number"]).await.text(),
            model.number.to_string()
        );
        let stock: u64 = redis.call(&["GET", &keys.stock(0, &self.sale)]).await.text().parse().unwrap();
        prop_assert_eq!((stock, model.granted - stock), (model.stock, units), "given minus left is the ledger's sum");
        prop_assert_eq!(self.world.servers.redis.outbox.depth(0).await.unwrap(), (model.outbox as u64, 0));
        prop_assert_eq!(model.outbox + self.gone, ids.len(), "one order for each accepted request");
        let mut buyers = redis.hash(&keys.buyers(0, &self.sale)).await;
        prop_assert!(buyers.remove("").is_some());
        prop_assert_eq!(buyers.len(), of_buyer.len());
        for (no, (owned, first)) in &model.buyers {
            let name = limit_key(*no, model.by_person).to_string();
            prop_assert_eq!(&buyers[&name], &format!("{owned} {}", request_id(*first)));
            prop_assert_eq!(of_buyer[&name], *owned);
        }
        Ok(())
    }

    /// The messages in the outbox are the ledger's requests, readable by the consumer.
    async fn messages(&self) -> Result<(), TestCaseError> {
        let store = &self.world.servers.redis;
        for LocatedEntry { entry, .. } in store.outbox.scan(0, "-", 1_000).await.unwrap().entries {
            let orders = orders_of(&entry);
            prop_assert_eq!(orders.len(), entry.orders());
            for accepted in orders {
                let (id, sale) = (accepted.purchase.request_id, accepted.purchase.sale_id.clone());
                if let Some(message) = entry.field("p") {
                    prop_assert_eq!(String::from_utf8_lossy(entry.field("r").unwrap()), id.to_string());
                    prop_assert_eq!(String::from_utf8_lossy(message), message::encode(&accepted), "one spelling");
                }
                let record = store.ledger.lookup(&sale, 0, &[id]).await.unwrap().remove(0).expect("a ledger record");
                prop_assert_eq!(record.order_message(id, &sale, 0), accepted, "message and ledger say the same");
            }
        }
        Ok(())
    }
}

/// The limit of a drop with two other sales, and what buyers have in them, by their small numbers.
type OtherSales = Option<(u32, Vec<(u8, u32)>)>;

/// Warms the other sales of the drop; buyers in turn have their units in one and in the other.
async fn others_of(
    world: &World,
    (limit, owned): (u32, Vec<(u8, u32)>),
    by_person: bool,
) -> (SalesDrop, HashMap<u8, u64>) {
    let store = &world.servers.redis;
    let others = ["model-2", "mo"].map(|id| redis_sale(id, 0));
    for other in &others {
        store.sale_keys.activate(other, 0, 1, ("g", 0)).await.unwrap();
        store.sale_keys.set_state(&other.sale_id, 0, MetaState::Paused, &[MetaState::Loaded]).await.unwrap();
    }
    let (mut redis, mut elsewhere) = (RawRedis::of(world).await, HashMap::new());
    for (at, (user, units)) in owned.into_iter().enumerate() {
        let key = store.keys.buyers(0, &others[at % 2].sale_id);
        let name = limit_key(user, by_person);
        let before = redis.call(&["HGET", &key, name.as_str()]).await;
        // A buyer who stands twice may have both in one sale: the later counts.
        if !matches!(before, Reply::Nil) {
            continue;
        }
        redis.call(&["HSET", &key, name.as_str(), &format!("{units} {}", request_id(900))]).await;
        *elsewhere.entry(user).or_default() += u64::from(units);
    }
    let drop_id = DropId::parse("drop").unwrap();
    let mut sale_ids = others.map(|other| other.sale_id).to_vec();
    sale_ids.push(SaleId::parse("model").unwrap());
    (SalesDrop { drop_id, title: "drop".into(), limit: NonZeroU32::new(limit), sale_ids }, elsewhere)
}

async fn sequence(world: &World, sizes: (u32, usize, u64), steps: &[Step]) -> Result<(), TestCaseError> {
    sequence_in(world, sizes, (false, None), steps).await
}

async fn sequence_in(
    world: &World,
    (limit, cap, stock): (u32, usize, u64),
    (by_person, others): (bool, OtherSales),
    steps: &[Step],
) -> Result<(), TestCaseError> {
    RawRedis::of(world).await.clear().await;
    let store = &world.servers.redis;
    let mut sale = redis_sale("model", limit);
    if by_person {
        sale.limit_by = LimitBy::Person;
    }
    let mut drop = None;
    if let Some(others) = others {
        let limit = u64::from(others.0);
        let (in_drop, elsewhere) = others_of(world, others, by_person).await;
        sale.in_drop = Some(in_drop.into());
        drop = Some((limit, elsewhere));
    }
    store.sale_keys.activate(&sale, 0, cap as u64, ("g", i64::try_from(stock).unwrap())).await.unwrap();
    store.sale_keys.set_state(&sale.sale_id, 0, MetaState::Open, &[MetaState::Loaded]).await.unwrap();
    let model = Model { drop, by_person, ..Model::new(u64::from(limit), cap, stock) };
    let mut bench = Bench { world, sale: sale.sale_id.clone(), terms: sale, model, gone: 0 };
    for (no, step) in steps.iter().enumerate() {
        bench.take(no, step).await?;
    }
    bench.messages().await
}

/// They go the long way beside others who go the short one: at the ends of entries, and between them.
#[test]
fn known_buyers_at_any_place_of_a_group_are_decided_as_if_they_came_alone() {
    run(async {
        let world = World::with(&[], &[STREAM]).await;
        let ask = |id: u64, user: u8| Ask { id, user, quantity: 1 };
        let known = || (0..4).map(|no| ask(no.into(), no)).collect();
        let mut few: Vec<Ask> = (10..140).map(|no| ask(no.into(), no)).collect();
        // Other requests of known buyers, a replay, and a known id of a new buyer.
        (few[0], few[63], few[64], few[129]) = (ask(200, 0), ask(1, 1), ask(201, 2), ask(3, 9));
        let mut twice = few.clone();
        // A known buyer with the id of a new request of the group.
        twice[70] = ask(12, 3);
        for limit in [0, 1, 2, 3] {
            for group in [&few, &twice] {
                let steps = [Step::Crowd(known()), Step::Crowd(group.clone()), Step::Crowd(group.clone())];
                sequence(&world, (limit, 1_000, 600), &steps).await.unwrap();
            }
        }
    });
}

#[test]
fn the_script_answers_and_writes_what_the_model_does() {
    the_model_holds(STREAM, 200);
}

#[test]
fn with_a_list_the_script_answers_and_writes_the_same() {
    the_model_holds(LIST, 100);
}

fn the_model_holds(outbox: &str, cases_count: u32) {
    let mut world = None;
    run(async { world = Some(World::with(&[], &[outbox]).await) });
    let world = world.unwrap();
    let sales = (
        prop_oneof![Just(0u32), Just(1), 2u32..8],
        prop_oneof![3 => Just(1_000usize), 1 => 0usize..120],
        prop_oneof![0u64..30, 100u64..600],
    );
    let drops = (1u32..9, proptest::collection::vec((0u8..12, 1u32..5), 0..8));
    let drops = proptest::option::weighted(0.5, drops);
    let cases = (sales, (proptest::bool::weighted(0.3), drops), proptest::collection::vec(step(), 1..14));
    let config = Config { cases: cases_count, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&cases, |(sale, drop, steps)| {
        let mut done = Ok(());
        run(async { done = sequence_in(&world, sale, drop, &steps).await });
        done
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
