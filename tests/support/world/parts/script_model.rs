//! The reserve script called past the entry, on sales that are only in Redis: what the tests against the model share.

use super::reserve_model::{Ask, EPOCH};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::policy::{PurchasePolicy, Quantity};
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::{Sale, SaleStatus};
use seckill::store::redis::{DoorsOfGroup, RedisFault, RedisStore};

/// The request id behind a model's small number.
pub fn request_id(no: u64) -> RequestId {
    RequestId::new(1_000_000_000_000 + no).unwrap()
}

/// The buyer behind a model's small number; some hold characters the records are built with.
pub fn user_id(no: u8) -> UserId {
    let names = ["plain", "with space", "Q 1 1 1 1 - x", "\"q\"\\", "%41", "ü🎉", "-", "7 8"];
    UserId::parse(&format!("{}{}", names[usize::from(no) % names.len()], "'".repeat(usize::from(no) / 8))).unwrap()
}

/// A sale that is only in Redis.
pub fn redis_sale(id: &str, limit: u32) -> Sale {
    Sale {
        policy: PurchasePolicy::from_limit(Some(limit)),
        status: SaleStatus::Warmed,
        ..Sale::draft(SaleId::parse(id).unwrap(), 0, 0, 9_000_000_000_000)
    }
}

/// The id under which the units of a model's buyer count, by its small number: the person's, or the account's.
pub fn limit_key(no: u8, by_person: bool) -> UserId {
    if by_person { UserId::parse(&format!("p {}", user_id(no))).unwrap() } else { user_id(no) }
}

/// Calls the script as P2 does; the fence is P2's matter, here the script is just loaded.
pub async fn reserve(store: &RedisStore, sale: &SaleId, epoch: u32, group: &[Ask]) -> Vec<Reserved> {
    reserve_for(store, (sale, false), epoch, group).await
}

/// The same; where the sale limits by person, two accounts in a row are one person's.
pub async fn reserve_for(
    store: &RedisStore,
    (sale, by_person): (&SaleId, bool),
    epoch: u32,
    group: &[Ask],
) -> Vec<Reserved> {
    let purchases: Vec<Purchase> = group
        .iter()
        .map(|ask| Purchase {
            request_id: request_id(ask.id),
            sale_id: sale.clone(),
            user_id: user_id(ask.user),
            person: by_person.then(|| limit_key(ask.user / 2, true)),
            quantity: Quantity::new(ask.quantity).unwrap(),
        })
        .collect();
    let doors = DoorsOfGroup::of(group.iter().map(|ask| ask.by()));
    let group: Vec<&Purchase> = purchases.iter().collect();
    loop {
        match store.stock.reserve_by(sale, (0, epoch), &group, &doors).await {
            Err(RedisFault::NoScript) => {
                let life = store.boot_fence.incarnation(0).await.unwrap();
                store.boot_fence.load_script(0, &life).await.unwrap();
            }
            done => return done.expect("the script ran").reserved,
        }
    }
}
