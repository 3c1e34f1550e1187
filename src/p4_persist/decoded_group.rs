//! A group of deliveries as orders. What cannot be read stands apart, so that it keeps no order from being written.

use super::handled::HandledDelivery;
use crate::domain::message::OrderMessage;
use crate::store::rabbit::Delivery;

/// A group of deliveries, decoded; `deliveries` and `items` belong together by position.
pub(super) struct DecodedGroup {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) items: Vec<OrderMessage>,
    pub(super) unreadable: Vec<HandledDelivery>,
}

impl DecodedGroup {
    pub(super) fn new(group: Vec<Delivery>, attempts_max: u32) -> Self {
        let (deliveries, items) = (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
        let mut decoded = Self { deliveries, items, unreadable: Vec::new() };
        for mut delivery in group {
            match delivery.take_order() {
                Ok(accepted) => {
                    decoded.deliveries.push(delivery);
                    decoded.items.push(accepted);
                }
                Err(error) => decoded.unreadable.push(HandledDelivery::unreadable(delivery, &error, attempts_max)),
            }
        }
        decoded
    }
}
