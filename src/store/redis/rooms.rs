//! Typed calls of `lua/room_enter.lua` and `lua/room_release.lua`: the waiting room of a sale.
//!
//! Both keys of a room expire a day after the sale's end: no buyer needs a place then, and a sale that is never closed, or
//! never warmed, leaves nothing behind either.

use super::connection::{RedisFault, integer, list, text};
use super::keys::room_shard;
use super::keyspace::Keyspace;
use super::scripts::{ROOM_ENTER, ROOM_RELEASE};
use crate::domain::ids::UserId;
use crate::domain::room::{SPREAD_MAX_MS, SPREAD_PER_MS};
use crate::domain::sale::Sale;
use fred::types::Value;
use std::sync::Arc;

/// How long the keys stay after the end of the sale, milliseconds.
const KEPT_MS: i64 = 24 * 3_600_000;

/// What a buyer has after entering the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomPlace {
    /// In the room; the places are drawn at the start of the sale.
    Undrawn,
    /// The place, from 1, for good.
    Place(u64),
    /// Not in the room, there is no place left.
    Full,
}

/// How far a room has been released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomDoor {
    /// Places that may buy: 1 to this one.
    pub released: u64,
    /// Places taken so far.
    pub arrivals: u64,
    /// Places that this call released.
    pub gained: u64,
    /// Time until the first place is released, milliseconds; 0 from then on.
    pub(crate) opens_in_ms: u64,
}

/// The order in the waiting room of a sale.
#[derive(Clone)]
pub struct RoomQueue {
    pub(super) redis: Arc<Keyspace>,
}

impl RoomQueue {
    fn room_keys(&self, sale: &Sale) -> Vec<String> {
        let (shard, id, keys) = (room_shard(&sale.sale_id, self.redis.shards), &sale.sale_id, &self.redis.keys);
        vec![keys.room(shard, id), keys.door(shard, id), keys.meta(shard, id)]
    }

    /// Takes buyers into the room of `sale`, each with a random number in `[0, 1)`, in their order: the arrivals so far, and
    /// what each of them has. The first call of a buyer decides. Repeating is safe.
    pub async fn enter(
        &self,
        sale: &Sale,
        buyers: &[(UserId, f64)],
        places_max: u64,
    ) -> Result<(u64, Vec<RoomPlace>), RedisFault> {
        let mut args = times(sale);
        args.push(text(places_max.to_string()));
        args.extend(buyers.iter().flat_map(|(user, draw)| [text(user.as_str()), text(draw.to_string())]));
        let mut reply = list(self.redis.script(&ROOM_ENTER, self.room_keys(sale), args).await?)?.into_iter();
        let arrivals = count(reply.next())?;
        let places = reply.map(|place| match integer(&place)? {
            -1 => Ok(RoomPlace::Full),
            0 => Ok(RoomPlace::Undrawn),
            place => count(Some(place.into())).map(RoomPlace::Place),
        });
        let places = places.collect::<Result<Vec<_>, RedisFault>>()?;
        if places.len() != buyers.len() {
            return Err(RedisFault::Contract(format!("{} places for {} buyers", places.len(), buyers.len())));
        }
        Ok((arrivals, places))
    }

    /// Releases the next places at `rate_per_s`, counted from the last call of any process; `signed_max` is the highest place
    /// the caller has seen on a ticket. Nothing is released before the start or while the sale is not open.
    /// Repeating is safe.
    pub async fn release(&self, sale: &Sale, rate_per_s: u32, signed_max: u64) -> Result<RoomDoor, RedisFault> {
        let mut args = times(sale);
        args.extend(
            [rate_per_s.into(), signed_max, SPREAD_PER_MS, SPREAD_MAX_MS].map(|number: u64| text(number.to_string())),
        );
        let mut reply = list(self.redis.script(&ROOM_RELEASE, self.room_keys(sale), args).await?)?.into_iter();
        Ok(RoomDoor {
            released: count(reply.next())?,
            arrivals: count(reply.next())?,
            gained: count(reply.next())?,
            opens_in_ms: count(reply.next())?,
        })
    }
}

/// The start of the sale, and when its room goes.
fn times(sale: &Sale) -> Vec<Value> {
    let goes_at_ms = sale.ends_at_ms.saturating_add(KEPT_MS);
    vec![text(sale.starts_at_ms.to_string()), text(goes_at_ms.to_string())]
}

fn count(value: Option<Value>) -> Result<u64, RedisFault> {
    let number = integer(&value.unwrap_or(Value::Null))?;
    u64::try_from(number).map_err(|_| RedisFault::Contract(format!("expected a count, got {number}")))
}
