//! What tests of the waiting room do and read.

use crate::support::basics::answer::Answer;
use crate::support::basics::resp::{RawRedis, Reply};
use crate::support::world::{World, eventually};
use futures::StreamExt;
use reqwest::Method;
use seckill::domain::ids::{SaleId, UserId};
use seckill::domain::sale::Sale;
use seckill::runtime::now_ms;
use seckill::sales::rows as sales;
use seckill::store::redis::RoomPlace;

/// Buyers in one call of the store.
const GROUP: usize = 500;

/// How far a room has been released, as Redis has it. Times are microseconds of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleaseCursor {
    pub released: u64,
    /// Millionths of a place.
    pub part: u64,
    pub at_us: u64,
}

/// Names of buyers, in the order of their numbers.
pub fn buyers(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|n| format!("waiting-{n:05}")).collect()
}

impl World {
    /// A sale with a waiting room that started a second ago, warmed.
    pub async fn room(&self, id: &str, stock: i64) -> SaleId {
        self.sale_with(id, stock, |sale| sale.waiting_room = true).await
    }

    /// A sale with a waiting room that starts in an hour, warmed.
    pub async fn early_room(&self, id: &str, stock: i64) -> SaleId {
        let early = |sale: &mut Sale| {
            (sale.waiting_room, sale.starts_at_ms, sale.ends_at_ms) =
                (true, now_ms() + 3_600_000, now_ms() + 7_200_000);
        };
        self.sale_with(id, stock, early).await
    }

    /// The sale as stored.
    pub async fn stored(&self, sale: &SaleId) -> Sale {
        self.servers.rows.sales.get(sale).await.expect("the sale").expect("it exists")
    }

    /// The sale as it would be if it had started long ago, for Redis too.
    pub async fn as_if_started(&self, sale: &SaleId) -> Sale {
        let started = Sale { starts_at_ms: 1_000, ..self.stored(sale).await };
        assert!(self.servers.redis.sale_keys.set_terms(&started, 0).await.expect("redis"), "it is warmed");
        started
    }

    /// Comes into the room.
    pub async fn enter_room(&self, sale: &SaleId, user: &str) -> Answer {
        Answer::of(self.request(Method::POST, &format!("/v1/sales/{sale}/places"), user)).await
    }

    /// Asks how far it is.
    pub async fn ask_place(&self, sale: &SaleId, user: &str, ticket: &str) -> Answer {
        let request = self.request(Method::GET, &format!("/v1/sales/{sale}/places"), user);
        Answer::of(request.header("Seckill-Place", ticket)).await
    }

    /// Asks for a purchase token with a ticket.
    pub async fn token_for(&self, sale: &SaleId, user: &str, ticket: Option<&str>) -> Answer {
        let mut request = self.request(Method::POST, &format!("/v1/sales/{sale}/tokens"), user);
        if let Some(ticket) = ticket {
            request = request.header("Seckill-Place", ticket);
        }
        Answer::of(request).await
    }

    /// Waits for the turn and returns the ticket.
    pub async fn wait_turn(&self, sale: &SaleId, user: &str) -> String {
        let ticket = self.enter_room(sale, user).await.text("ticket");
        eventually("the turn comes", async || {
            let answer = self.ask_place(sale, user, &ticket).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.text("state") == "released"
        })
        .await;
        ticket
    }

    /// All of them come through the API, some at a time, nearly in their order.
    pub async fn all_enter(&self, sale: &SaleId, users: &[String]) -> Vec<Answer> {
        let coming = users.iter().map(|user| self.enter_room(sale, user));
        let answers: Vec<Answer> = futures::stream::iter(coming).buffered(8).collect().await;
        for answer in &answers {
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        answers
    }

    /// The places of buyers; who is not in the room comes in now, at the end. Past the API.
    pub async fn places(&self, sale: &Sale, users: &[String]) -> Vec<RoomPlace> {
        let mut places = Vec::new();
        for group in users.chunks(GROUP) {
            let buyers: Vec<_> = group.iter().map(|user| (UserId::parse(user).unwrap(), 0.5)).collect();
            places.extend(self.servers.redis.rooms.enter(sale, &buyers, 1_000_000).await.expect("places").1);
        }
        places
    }

    /// The place numbers of buyers in a room whose sale has started.
    pub async fn numbers(&self, sale: &Sale, users: &[String]) -> Vec<u64> {
        let places = self.places(sale, users).await.into_iter();
        let number = |place| match place {
            RoomPlace::Place(number) => number,
            other @ (RoomPlace::Undrawn | RoomPlace::Full) => panic!("{other:?}"),
        };
        places.map(number).collect()
    }

    /// How far the room has been released.
    pub async fn release_cursor(&self, sale: &SaleId) -> ReleaseCursor {
        let fields = ["HMGET", &self.servers.redis.keys.door(0, sale), "released", "part", "at"];
        let fields = RawRedis::of(self).await.call(&fields).await.items();
        let number = |at: usize| if fields[at] == Reply::Nil { 0 } else { fields[at].text().parse().expect("a count") };
        ReleaseCursor { released: number(0), part: number(1), at_us: number(2) }
    }

    /// Redis loses the room.
    pub async fn lose_room(&self, sale: &SaleId) {
        let (mut redis, keys) = (RawRedis::of(self).await, &self.servers.redis.keys);
        assert_eq!(redis.call(&["DEL", &keys.room(0, sale), &keys.door(0, sale)]).await.int(), 2);
    }
}
