//! What one process says of itself, line by line: nothing is deleted before its confirm, acknowledged before its outcome, or answered
//! without a question. Needs no order between processes.
//!
//! Output: complaints; and for each step at a server the line that began it, after which it happened.

use super::Finding;
use super::line::{Line, Traced, Word};
use super::questions::Questions;
use std::collections::HashMap;

/// How far a relay is with an order of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hand {
    Read,
    Published,
    Confirmed,
    Failed,
    Counted,
    Parking,
}

/// How far a consumer is with a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Delivered,
    Decided,
    Finished,
    SentBack,
    Copied,
    Acked,
}

/// One order of an entry.
type Held = (u16, Word, u64);

/// What a process has in hand, by what its lines said so far.
#[derive(Default)]
struct Hands {
    asks: HashMap<u64, Questions>,
    replies: HashMap<u64, u64>,
    entries: HashMap<Held, (Hand, u64)>,
    deliveries: HashMap<Word, (Option<u64>, Stage)>,
    /// Deliveries that are not acknowledged, by request.
    delivered: HashMap<u64, Vec<Word>>,
    tries: HashMap<(u64, Word), Questions>,
    /// Where the last line about a request was.
    last: HashMap<u64, u64>,
    audits: HashMap<Word, Vec<u64>>,
    /// Changes of orders that are written: where, and whether the order takes them.
    written: HashMap<(Word, Word), (u64, bool)>,
    orders_of_grant: HashMap<Word, Vec<u64>>,
}

/// What is known of a line beside what it says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// The step happened after this.
    pub from: u64,
    /// Of an `ask` or a `decide`: whether its answer came. What was not answered may have happened. Of a change of an order: whether
    /// the order takes it.
    pub answered: bool,
    /// Of what is done with a delivery: the request that it is about, where the line does not say it.
    pub rid: Option<u64>,
}

/// What the lines of one process are.
pub struct Examined {
    /// Of each line.
    pub contexts: Vec<Context>,
    /// Orders that expired together, by their grant.
    pub orders_of_grant: HashMap<Word, Vec<u64>>,
}

/// Examines one process.
pub fn examine(traced: &Traced, found: &mut Vec<Finding>) -> Examined {
    let mut hands = Hands::default();
    let mut contexts = vec![Context::default(); traced.lines.len()];
    for (place, line) in traced.lines.iter().enumerate() {
        let before = place.checked_sub(1).map_or(0, |before| traced.lines[before].n + 1);
        if place > 0 && line.n != before {
            found.push(Finding::of("T1", traced, line, format!("line {before} of this process is missing")));
        }
        if line.point() == "cut" {
            found.push(Finding::of(
                "T1",
                traced,
                line,
                "the file became too long, the rest was not written".to_owned(),
            ));
        }
        let said = hands.step(line, place, &mut contexts);
        match said {
            Ok(from) => contexts[place].from = from.min(line.at),
            Err(wrong) => {
                contexts[place].from = line.at;
                found.push(Finding::of("T2", traced, line, wrong));
            }
        }
        if let Some(rid) = line.rid {
            hands.last.insert(rid, line.at);
        }
    }
    Examined { contexts, orders_of_grant: hands.orders_of_grant }
}

impl Hands {
    /// After which line the step happened, or what is wrong with it.
    fn step(&mut self, line: &Line, place: usize, contexts: &mut [Context]) -> Result<u64, String> {
        match line.point() {
            "ask" | "reserved" | "unanswered" | "not_run" | "looked_up" => self.reserve(line, place, contexts),
            "read" | "publish" | "answer" | "done" | "counted" | "park" | "parked" => self.relay(line),
            "delivered" | "handled" | "copied" | "ack" => self.consume(line, place, contexts),
            "decide" | "decided" => self.decide(line, place, contexts),
            _ => self.rest(line, place, contexts),
        }
    }

    fn reserve(&mut self, line: &Line, place: usize, contexts: &mut [Context]) -> Result<u64, String> {
        let rid = line.rid.ok_or("no request")?;
        if line.point() == "ask" {
            self.asks.entry(rid).or_default().ask(place);
            contexts[place].from = line.at;
            return Ok(line.at);
        }
        if line.point() == "looked_up" {
            return self.replies.get(&rid).copied().ok_or_else(|| "looked up without a lost reply".to_owned());
        }
        self.replies.insert(rid, line.at);
        let asked = self.asks.get_mut(&rid).and_then(|asks| asks.answer(line.point() != "unanswered", contexts));
        asked.ok_or_else(|| "an answer without a question".to_owned())
    }

    fn relay(&mut self, line: &Line) -> Result<u64, String> {
        let (shard, entry) = (line.shard.ok_or("no shard")?, line.thing.clone().ok_or("no entry")?);
        let rid = line.rid.ok_or("no request")?;
        let key = (shard, entry, rid);
        let hand = self.entries.get(&key).copied();
        let since = hand.map_or(line.at, |(_, at)| at);
        let next = match (line.point(), hand.map(|(hand, _)| hand)) {
            ("read", _) => {
                self.entries.insert(key, (Hand::Read, line.at));
                return Ok(self.last.get(&rid).copied().unwrap_or(0));
            }
            ("publish", Some(Hand::Read | Hand::Counted | Hand::Failed)) => Hand::Published,
            ("publish", _) => return Err(format!("sent in the state {hand:?}")),
            ("answer", Some(Hand::Published)) if line.verdict() == "CONFIRMED" => Hand::Confirmed,
            ("answer", Some(_)) if line.verdict() == "FAILED" => Hand::Failed,
            ("answer", _) => return Err(format!("the broker answers, and nothing was sent: {hand:?}")),
            ("done", Some(Hand::Confirmed)) => {
                self.entries.remove(&key);
                return Ok(since);
            }
            ("done", _) => return Err(format!("deleted from the outbox before the broker confirmed it: {hand:?}")),
            ("counted", Some(Hand::Failed | Hand::Parking)) if line.attempts == Some(0) => {
                self.entries.remove(&key);
                return Ok(since);
            }
            ("counted", Some(Hand::Failed | Hand::Parking)) => Hand::Counted,
            ("counted", _) => return Err(format!("an attempt is counted that did not fail: {hand:?}")),
            ("park", Some(Hand::Counted)) => Hand::Parking,
            ("parked", Some(Hand::Parking)) => {
                self.entries.remove(&key);
                return Ok(since);
            }
            (_, _) => return Err(format!("parked in the state {hand:?}")),
        };
        self.entries.insert(key, (next, line.at));
        Ok(if line.point() == "counted" { since } else { line.at })
    }

    fn consume(&mut self, line: &Line, place: usize, contexts: &mut [Context]) -> Result<u64, String> {
        let tag = line.thing.clone().ok_or("no tag")?;
        let stage = self.deliveries.get(&tag).map(|(_, stage)| *stage);
        let next = match (line.point(), stage) {
            ("delivered", None | Some(Stage::Delivered)) => Stage::Delivered,
            // It was held while the database was away. Another delivery of the request was decided meanwhile.
            ("delivered", Some(Stage::Decided)) => Stage::Decided,
            ("delivered", _) => return Err(format!("delivered again under one tag: {stage:?}")),
            ("handled", Some(Stage::Decided)) if is_done(line.verdict()) => Stage::Finished,
            ("handled", Some(Stage::Delivered | Stage::Decided)) if !is_done(line.verdict()) => Stage::SentBack,
            // One that cannot be read has no order to name.
            ("handled", None) if line.rid.is_none() && !is_done(line.verdict()) => Stage::SentBack,
            ("handled", _) => return Err(format!("{} without an outcome: {stage:?}", line.verdict())),
            ("copied", Some(Stage::SentBack)) => Stage::Copied,
            ("copied", _) => return Err(format!("a copy of what is not sent back: {stage:?}")),
            ("ack", Some(Stage::Finished | Stage::Copied)) => Stage::Acked,
            (_, Some(_)) => {
                return Err(format!("acknowledged before it has an outcome in the database, or a copy: {stage:?}"));
            }
            (_, None) => return Err("acknowledged, and it was not delivered".to_owned()),
        };
        if let (Some(rid), "delivered") = (line.rid, line.point()) {
            let tags = self.delivered.entry(rid).or_default();
            if !tags.contains(&tag) {
                tags.push(tag.clone());
            }
        }
        let rid = self.deliveries.get(&tag).and_then(|(rid, _)| *rid).or(line.rid);
        contexts[place].rid = rid;
        if next == Stage::Acked
            && let Some(tags) = rid.and_then(|rid| self.delivered.get_mut(&rid))
        {
            tags.retain(|other| *other != tag);
        }
        self.deliveries.insert(tag, (rid, next));
        Ok(line.at)
    }

    fn decide(&mut self, line: &Line, place: usize, contexts: &mut [Context]) -> Result<u64, String> {
        let (rid, by) = (line.rid.ok_or("no request")?, line.by.clone().ok_or("no word by what")?);
        let tries = self.tries.entry((rid, by.clone())).or_default();
        if line.point() == "decide" {
            tries.ask(place);
            contexts[place].from = line.at;
            let is_delivered = self.delivered.get(&rid).is_some_and(|tags| !tags.is_empty());
            let wrong = &*by == "relay" && !is_delivered;
            return if wrong { Err("decided, and it was not delivered".to_owned()) } else { Ok(line.at) };
        }
        let verdict = line.verdict();
        let from = tries.answer(verdict != "ERROR", contexts).ok_or("a verdict without a question")?;
        if matches!(verdict, "ORDERED" | "ALREADY" | "REFUSED") {
            for tag in self.delivered.get(&rid).into_iter().flatten() {
                if let Some((_, stage @ Stage::Delivered)) = self.deliveries.get_mut(tag) {
                    *stage = Stage::Decided;
                }
            }
        }
        Ok(from)
    }

    fn rest(&mut self, line: &Line, place: usize, contexts: &mut [Context]) -> Result<u64, String> {
        let last = line.rid.and_then(|rid| self.last.get(&rid).copied()).unwrap_or(0);
        match line.point() {
            "audit_begun" => {
                if let Some(sale) = &line.sale {
                    self.audits.entry(sale.clone()).or_default().push(line.at);
                }
                Ok(line.at)
            }
            "missing" => {
                // Two of one sale may run beside each other: an operator asks for one, too.
                let begun = line.sale.as_ref().and_then(|sale| self.audits.get(sale)).ok_or("no audit has begun")?;
                Ok(begun[begun.len().saturating_sub(3)])
            }
            "order_written" => {
                if let (Some(grant), Some(rid), "DeadlinePassed") = (&line.about, line.rid, line.verdict()) {
                    let orders = self.orders_of_grant.entry(grant.clone()).or_default();
                    // A batch is named after its first order: with that one it is written again, after it was rolled back.
                    if orders.first() == Some(&rid) {
                        orders.clear();
                    }
                    orders.push(rid);
                }
                let takes = line.verdict() != "PaymentReceived" || line.reason.as_deref() == Some("APPLIED");
                self.written.insert(changed(line)?, (line.at, takes));
                Ok(line.at)
            }
            // A repeat gets the same deadline, and writes nothing.
            "order_changed" if line.verdict() == "PaymentStarted" => {
                contexts[place].answered = true;
                Ok(last)
            }
            "order_changed" => {
                let written = self.written.get(&changed(line)?).copied();
                let (at, takes) = written.ok_or("committed, and it was not written")?;
                contexts[place].answered = takes;
                Ok(at)
            }
            "settled" | "trimmed" | "unparked" => Ok(last),
            _ => Ok(line.at),
        }
    }
}

/// A change of an order: what it is about, and the event.
fn changed(line: &Line) -> Result<(Word, Word), String> {
    let rid = line.rid.map(|rid| Word::from(rid.to_string()));
    let about = line.about.clone().or(rid).ok_or("an order without a name")?;
    Ok((about, line.verdict.clone().ok_or("no event")?))
}

/// Whether a delivery in this state is finished.
fn is_done(state: &str) -> bool {
    matches!(state, "P4-C0" | "P4-C1" | "P4-C2")
}
