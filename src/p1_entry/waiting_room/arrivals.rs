//! Arrivals, in groups: a crowd that comes at once costs Redis one call for hundreds of buyers.
//!
//! One group at a time, so that buyers who come to this process keep the order in which they came. Buyers who come before
//! the start draw a number here, from this process' own generator: nothing that a buyer sends has a part in it.

use crate::domain::ids::UserId;
use crate::p1_entry::catalog::SaleView;
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::store::redis::{RedisFault, RoomPlace, RoomQueue};
use rand::Rng;
use std::collections::HashMap;
use std::sync::Arc;

/// Two arguments a buyer; Lua's unpack is not used, so the bound is the time Redis is busy in one piece.
const BOUNDS: Bounds = Bounds { group_max: 512, waiting_max: 16_384, in_flight_max: 1, idle_end: None };

/// A buyer who comes to a sale.
pub(super) struct Arrival {
    pub view: Arc<SaleView>,
    pub user: UserId,
}

/// How many buyers have come so far, and the place of this one.
pub(super) type ArrivalResult = Result<(u64, RoomPlace), RedisFault>;

/// Starts taking arrivals in.
pub(super) fn start(queue: RoomQueue, places_max: u64) -> QuestionBatcher<Arrival, ArrivalResult> {
    QuestionBatcher::start(BOUNDS, move |arrivals| {
        let queue = queue.clone();
        async move { enter(&queue, places_max, arrivals).await }
    })
}

/// One call for each sale; the answers in the order of the arrivals.
async fn enter(queue: &RoomQueue, places_max: u64, arrivals: Vec<Arrival>) -> Vec<ArrivalResult> {
    metrics::histogram!("seckill_p1_entry_room_group_count").record(arrivals.len() as f64);
    let mut of_sale: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, arrival) in arrivals.iter().enumerate() {
        of_sale.entry(arrival.view.sale.sale_id.as_str()).or_default().push(at);
    }
    let calls = of_sale.into_values().map(|places| {
        let mut generator = rand::rng();
        let buyers: Vec<_> = places.iter().map(|at| (arrivals[*at].user.clone(), generator.random())).collect();
        let sale = &arrivals[places[0]].view.sale;
        async move { (places, queue.enter(sale, &buyers, places_max).await) }
    });
    let mut answers: Vec<ArrivalResult> = Vec::new();
    answers.resize_with(arrivals.len(), || Ok((0, RoomPlace::Full)));
    for (places, entered) in futures::future::join_all(calls).await {
        match entered {
            Ok((count, taken)) => {
                places.into_iter().zip(taken).for_each(|(at, place)| answers[at] = Ok((count, place)));
            }
            Err(fault) => places.into_iter().for_each(|at| answers[at] = Err(fault.clone())),
        }
    }
    answers
}
