//! One request as the servers have it, and what each line does to it. The journey moves by the domain's own table.
//!
//! What no line says may have happened all the same, where its beginning was written and no answer was: a script that ran late or
//! without a reply, a commit that was not answered. Such a step is taken where the next line needs it.

use super::line::Line;
use seckill::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use seckill::domain::states::{P3Relay, RequestEvent, State};

/// What the database has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Order,
    Failed,
}

impl Outcome {
    fn read(word: Option<&str>) -> Option<Self> {
        match word? {
            "ORDER" => Some(Self::Order),
            "FAILED" => Some(Self::Failed),
            _ => None,
        }
    }
}

/// A cell of a table that a line used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    Request(State, RequestEvent),
    Order(OrderState, OrderEvent),
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Request {
    /// Calls of the script that were not answered and may still run.
    lost_asks: u8,
    /// Tries to decide it whose verdict is unknown.
    lost_tries: u8,
    journey: Option<State>,
    /// The entry is out of the outbox.
    is_gone: bool,
    is_published: bool,
    outcome: Option<Outcome>,
    order: Option<OrderState>,
    /// Attempts of messages that were sent back, as bits.
    sent_back: u64,
}

/// What servers may forget: the writes of the last moment, where another server takes over that lacks them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Redis: a request may be accepted twice, a number given twice.
    pub accepts: bool,
    /// The database: a request may be decided twice.
    pub commits: bool,
}

/// A request after a line, and the cell that the line used.
pub type Next = (Request, Option<Cell>);

/// What a line is about beside its own words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said {
    /// Of a question: its answer came. Of a change of an order: it is not only money that goes back.
    pub answered: bool,
    /// What servers may forget in this run.
    pub losses: Losses,
}

/// The bit of a number of attempts.
fn bit(attempts: Option<u32>) -> u64 {
    1 << attempts.unwrap_or(0).min(63)
}

impl Request {
    /// What it may be after this line; `Err`: why the line is not allowed here.
    pub fn after(self, line: &Line, said: Said) -> Result<Vec<Next>, String> {
        let why = match self.plain(line, said) {
            Ok(next) => return Ok(vec![next]),
            Err(why) => why,
        };
        // What was not answered may have been done by now.
        let mut silent = Vec::new();
        if self.journey.is_none() && self.lost_asks > 0 {
            silent.push(Self { journey: Some(ACCEPTED), lost_asks: self.lost_asks - 1, ..self });
        }
        if self.outcome.is_none() && self.lost_tries > 0 {
            let lost_tries = self.lost_tries - 1;
            silent.extend([Outcome::Order, Outcome::Failed].map(|o| Self { outcome: Some(o), lost_tries, ..self }));
        }
        let next: Vec<_> = silent.into_iter().filter_map(|later| later.plain(line, said).ok()).collect();
        if next.is_empty() { Err(why) } else { Ok(next) }
    }

    fn plain(mut self, line: &Line, said: Said) -> Result<(Self, Option<Cell>), String> {
        let mut cell = None;
        match line.point() {
            "ask" => self.lost_asks = self.lost_asks.saturating_add(u8::from(!said.answered)),
            "reserved" | "looked_up" => self.reserved(line, said)?,
            "read" => {
                must(!self.is_gone, "read, and it is out of the outbox")?;
                cell = Some(self.happens(RequestEvent::Read)?);
            }
            "publish" => self.is_published = self.accepted("sent")?,
            "done" => {
                cell = Some(self.happens(RequestEvent::Confirmed)?);
                self.is_gone = true;
            }
            "counted" if line.attempts != Some(0) => cell = Some(self.happens(RequestEvent::PublishFailed)?),
            "parked" if line.verdict() == "MOVED" => {
                must(!self.is_gone, "parked, and it is out of the outbox")?;
                cell = Some(self.happens(RequestEvent::PublishSpent)?);
                self.is_gone = true;
            }
            "delivered" if line.attempts.unwrap_or(0) == 0 => {
                must(self.is_published || self.sent_back & 1 > 0, "delivered, and no relay has sent it")?;
            }
            "delivered" => {
                must(self.sent_back & bit(line.attempts) > 0, "delivered with attempts that no consumer has counted")?;
            }
            "handled" => cell = self.handled(line)?,
            "decide" => self.lost_tries = self.lost_tries.saturating_add(u8::from(!said.answered)),
            "decided" => cell = self.decided(line, said)?,
            "missing" => {
                must(self.outcome.is_none() || said.losses.commits, "found undecided, and it has an outcome")?;
                if self.outcome.take().is_some() {
                    self.journey = Some(State::P3(P3Relay::SentOk));
                }
                cell = Some(self.happens(RequestEvent::OutcomeMissing)?);
            }
            "settled" => must(self.outcome == Outcome::read(Some(line.verdict())), "settled with another outcome")?,
            "trimmed" | "unparked" => must(self.outcome.is_some(), "put away, and it has no outcome")?,
            "order_changed" => cell = self.order_changed(line, said)?,
            _ => {}
        }
        Ok((self, cell))
    }

    fn accepted(self, what: &str) -> Result<bool, String> {
        must(self.journey.is_some(), &format!("{what}, and it was not accepted")).map(|()| true)
    }

    fn happens(&mut self, event: RequestEvent) -> Result<Cell, String> {
        let from = self.journey.ok_or_else(|| format!("{event:?}, and it was not accepted"))?;
        self.journey = Some(from.after(event).map_err(|illegal| illegal.to_string())?);
        Ok(Cell::Request(from, event))
    }

    fn reserved(&mut self, line: &Line, said: Said) -> Result<(), String> {
        let known = self.journey.is_some();
        match line.verdict() {
            "ACCEPTED" if line.point() == "reserved" => {
                must(!known || said.losses.accepts, "accepted twice")?;
                self.journey = self.journey.or(Some(ACCEPTED));
                // The new entry.
                self.is_gone = false;
                Ok(())
            }
            "ACCEPTED" | "REPLAYED" => self.accepted("repeated").map(drop),
            "CONFLICT" | "REFUSED" => Ok(()),
            _ => must(!known || said.losses.accepts, "refused, and it was accepted before"),
        }
    }

    fn handled(&mut self, line: &Line) -> Result<Option<Cell>, String> {
        match line.verdict() {
            "P4-C3" => {
                self.sent_back |= bit(line.attempts);
                self.happens(RequestEvent::PersistFailed).map(Some)
            }
            "P4-C4" => self.happens(RequestEvent::PersistSpent).map(Some),
            _ => Ok(None),
        }
    }

    fn decided(&mut self, line: &Line, said: Said) -> Result<Option<Cell>, String> {
        let event = match line.verdict() {
            "ORDERED" | "REFUSED" => {
                must(self.outcome.is_none() || said.losses.commits, "decided twice")?;
                if self.outcome.is_some() {
                    self.journey = Some(State::P3(P3Relay::SentOk));
                }
                let ordered = line.verdict() == "ORDERED";
                self.outcome = Some(if ordered { Outcome::Order } else { Outcome::Failed });
                if ordered { RequestEvent::OrderCommitted } else { RequestEvent::RefusalCommitted }
            }
            "ALREADY" => {
                let same = self.outcome.is_some() && self.outcome == Outcome::read(line.outcome.as_deref());
                must(same, "found decided, and it was not, or otherwise")?;
                RequestEvent::OutcomeFound
            }
            _ => return Ok(None),
        };
        self.happens(event).map(Some)
    }

    /// The first change of an order shows that it has a state: UNPAID until then. A sale without payments has none, and then
    /// only a cancellation is known of its orders.
    fn order_changed(&mut self, line: &Line, said: Said) -> Result<Option<Cell>, String> {
        if !said.answered {
            return Ok(None);
        }
        must(self.outcome == Some(Outcome::Order), "changed, and it is no order")?;
        let event = OrderEvent::ALL.into_iter().find(|event| format!("{event:?}") == line.verdict());
        let event = event.ok_or("an event of no table")?;
        let from = self.order.unwrap_or(OrderState::Unpaid);
        match from.after(event) {
            OrderTransition::To(to) => self.order = Some(to),
            OrderTransition::Already | OrderTransition::Refused => {
                let is_start = event == OrderEvent::PaymentStarted && from != OrderState::Cancelled;
                must(is_start, &format!("{event:?} of an order that is {}", from.code()))?;
            }
        }
        Ok(Some(Cell::Order(from, event)))
    }
}

/// An accepted request is where its entry is: `P2-R0` and `P3-N0` are one step.
const ACCEPTED: State = State::P3(P3Relay::New);

fn must(holds: bool, wrong: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong.to_owned()) }
}
