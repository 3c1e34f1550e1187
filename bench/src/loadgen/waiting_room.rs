//! The waiting room from a buyer's side: take a place, poll at the given interval, until the place is released.
//!
//! A connection waits with its buyer, so the others of the crowd come in later; the room does not wait for anybody.

use super::answer::text_field;
use super::calls::{code, was_sent};
use super::report::FinalAnswer;
use super::virtual_user::VirtualUser;

/// A buyer asks at most this often.
const ASKS_MAX: u32 = 10_000;

enum PlaceAnswer {
    Released,
    Waiting(Option<u64>),
    Refused(u16),
    /// Not now, or no answer: asking again does no harm.
    Trouble(FinalAnswer, Option<u64>),
}

impl VirtualUser {
    /// Waits until it is this buyer's turn; the ticket is in `self.place` then.
    pub(super) async fn wait_in_room(&mut self, buyer: u64) -> Result<(), FinalAnswer> {
        self.place.clear();
        let (mut verdict, mut troubles) = (FinalAnswer::NotSent, 0);
        for _ in 0..ASKS_MAX {
            let wait_s = match self.call_place(buyer).await {
                PlaceAnswer::Released => return Ok(()),
                PlaceAnswer::Refused(status) => return Err(FinalAnswer::Refused { status }),
                PlaceAnswer::Waiting(wait_s) => {
                    troubles = 0;
                    wait_s
                }
                PlaceAnswer::Trouble(got, wait_s) => {
                    (verdict, troubles) = (got, troubles + 1);
                    wait_s
                }
            };
            if troubles > self.shared.plan.max_retries || !self.pause(troubles.max(1), wait_s).await {
                break;
            }
        }
        Err(verdict)
    }

    async fn call_place(&mut self, buyer: u64) -> PlaceAnswer {
        self.shared.forms.place(&mut self.outbox, self.shared.access(buyer), &self.place);
        let result = self.connection.call(self.outbox.as_bytes()).await;
        if !was_sent(&result) {
            self.seen.not_connected += 1;
            return PlaceAnswer::Trouble(FinalAnswer::NotSent, None);
        }
        let Ok(answer) = result else { return PlaceAnswer::Trouble(FinalAnswer::NotSent, None) };
        self.seen.places_by_status.add(answer.status(), code(&answer));
        match (answer.status(), answer.retry_after_s()) {
            (200, wait_s) => {
                if let Some(ticket) = text_field(answer.body(), "ticket") {
                    self.place.clear();
                    self.place.push_str(ticket);
                }
                match text_field(answer.body(), "state") {
                    Some("released") => PlaceAnswer::Released,
                    Some(_) | None => PlaceAnswer::Waiting(wait_s),
                }
            }
            (status @ (429 | 500..), wait_s) => PlaceAnswer::Trouble(FinalAnswer::Refused { status }, wait_s),
            (status, _) => PlaceAnswer::Refused(status),
        }
    }
}
