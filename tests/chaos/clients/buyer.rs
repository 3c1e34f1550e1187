//! One client: what it wants is drawn from the seed, how it goes on depends on the answers.
//!
//! | share | what it does |
//! |---|---|
//! | 80 % | gets a purchase token and repeats with it after "later" and after silence |
//! | 5 % of those who meet silence | go on with a new token while the first request is unknown |
//! | 13 % | buys without a token: repeats after "later" (nothing happened), never after silence; asks if it got an id |
//! | 7 % | gives up after its first attempt, whatever the answer |
//! | 20 % of the answered | send the same again |
//! | 30 % of the accepted | ask for the status at once |
//! | 20 % | buy again, as a new purchase |

use super::clock::{now_ms, patience};
use super::history::Attempt;
use super::http::{ClientAnswer, Outcome};
use super::payer::Payer;
use super::{Crowd, Open};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const ATTEMPTS_MAX: u32 = 8;
const TOKEN_ATTEMPTS_MAX: u32 = 4;
const QUESTIONS: u32 = 3;
/// Longest wait between two attempts; clients on a phone do not wait for ever.
const WAIT_MS_MAX: u64 = 2_000;

/// A purchase token and the request it stands for.
struct Ticket {
    token: String,
    rid: String,
}

/// A client under way.
pub struct Buyer {
    crowd: Arc<Crowd>,
    random: StdRng,
    who: Open,
    sale: String,
}

impl Buyer {
    /// The `client`-th client of a crowd.
    pub fn new(crowd: Arc<Crowd>, client: u64) -> Self {
        let load = &crowd.load;
        let mut random = StdRng::seed_from_u64(load.seed ^ client.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let user = name(random.random_range(0..load.users));
        let sale = random.random_range(0..load.sales.len());
        let spec = load.sales.get(sale).expect("a sale");
        let quantity = match spec.limit {
            Some(1) => 1,
            Some(limit) => random.random_range(1..=limit.min(2)),
            None if random.random_bool(0.7) => 1,
            None => random.random_range(2..=3),
        };
        let id = spec.id.clone();
        Self { random, who: Open { client, user, sale, quantity }, sale: id, crowd }
    }

    /// Buys, and perhaps once more.
    pub async fn shop(mut self) {
        self.purchase().await;
        if self.random.random_bool(0.2) && !self.crowd.stopping() {
            self.purchase().await;
        }
    }

    /// Buys; then the order is paid, cancelled or forgotten, beside what the client does next.
    async fn purchase(&mut self) {
        let accepted = self.order().await;
        if let Some(payer) = accepted.and_then(|rid| Payer::of(&self.crowd, &rid, &self.who)) {
            payer.fulfil().await;
        }
    }

    /// The request that was accepted, if any was.
    async fn order(&mut self) -> Option<String> {
        self.crowd.counters.purchases.fetch_add(1, Relaxed);
        let manner = self.random.random_range(0..100);
        let (with_token, patient) = (!(80..97).contains(&manner), manner < 93);
        let (again, diverge) = (self.random.random_bool(0.2), self.random.random_bool(0.05));
        let ask = self.random.random_bool(0.3);
        let mut ticket = None;
        if with_token {
            ticket = self.ticket().await;
            ticket.as_ref()?;
        }
        let (last, ticket) = if patient {
            self.buy_until_final(ticket, diverge).await
        } else {
            (self.buy(ticket.as_ref()).await, ticket)
        };
        if let (Some(ticket), true) = (&ticket, again && last.outcome != Outcome::Unknown) {
            self.buy(Some(ticket)).await;
        }
        if let (Some(rid), true) = (&last.rid, ask && last.outcome == Outcome::Accepted) {
            ask_once(&self.crowd, rid, &self.who).await;
        }
        last.rid.filter(|_| last.outcome == Outcome::Accepted)
    }

    /// Buys until something definite is answer or patience ends; the last answer, and the token used last.
    async fn buy_until_final(
        &mut self,
        mut ticket: Option<Ticket>,
        mut diverge: bool,
    ) -> (ClientAnswer, Option<Ticket>) {
        let mut attempt = 0;
        loop {
            let answer = self.buy(ticket.as_ref()).await;
            attempt += 1;
            let silence = answer.outcome == Outcome::Unknown;
            if !(silence || answer.outcome.is_later()) || attempt == ATTEMPTS_MAX || self.crowd.stopping() {
                return (answer, ticket);
            }
            if silence && ticket.is_none() {
                // To repeat could be to buy twice.
                if let Some(rid) = &answer.rid {
                    self.ask(rid).await;
                }
                return (answer, ticket);
            }
            self.wait(attempt, answer.retry_after_s).await;
            if silence && diverge {
                diverge = false;
                match self.ticket().await {
                    Some(new) => ticket = Some(new),
                    None => return (answer, ticket),
                }
            }
        }
    }

    async fn wait(&mut self, attempt: u32, retry_after_s: Option<u64>) {
        let backoff_ms = retry_after_s.map_or(100 << attempt, |seconds| seconds * 1000).min(WAIT_MS_MAX);
        patience(self.random.random_range(backoff_ms / 2..=backoff_ms)).await;
    }

    /// A purchase token. Asking twice does no harm.
    async fn ticket(&mut self) -> Option<Ticket> {
        for attempt in 1..=TOKEN_ATTEMPTS_MAX {
            let begun = self.crowd.begin();
            let answer = self.crowd.door.token(&self.sale, &self.who.user).await;
            let said = Said { kind: "token", rid: answer.rid.as_deref(), token: false, payment: None };
            self.crowd.write(begun, &self.who, said, &answer);
            if let (Outcome::Issued, Some(rid), Some(token)) = (answer.outcome, answer.rid, answer.token) {
                return Some(Ticket { token, rid });
            }
            let again = answer.outcome == Outcome::Unknown || answer.outcome.is_later();
            if !again || self.crowd.stopping() {
                return None;
            }
            self.wait(attempt, answer.retry_after_s).await;
        }
        None
    }

    async fn buy(&mut self, ticket: Option<&Ticket>) -> ClientAnswer {
        let crowd = &self.crowd;
        let begun = crowd.begin();
        let token = ticket.map(|ticket| ticket.token.as_str());
        let mut answer = crowd.door.buy(&self.sale, &self.who.user, self.who.quantity, token).await;
        // A refusal names another request: the one that the buyer has.
        let own = match (ticket, answer.outcome) {
            (Some(ticket), _) => Some(ticket.rid.clone()),
            (None, Outcome::Accepted | Outcome::Unknown) => answer.rid.clone(),
            (None, _) => None,
        };
        let said = Said { kind: "buy", rid: own.as_deref(), token: ticket.is_some(), payment: None };
        crowd.write(begun, &self.who, said, &answer);
        crowd.count(&answer, own.as_deref(), &self.who);
        answer.rid = own;
        answer
    }

    async fn ask(&mut self, rid: &str) {
        for attempt in 1..=QUESTIONS {
            if ask_once(&self.crowd, rid, &self.who).await.is_final() || self.crowd.stopping() {
                return;
            }
            self.wait(attempt, None).await;
        }
    }
}

impl Outcome {
    /// Whether a status will never change any more.
    pub fn is_final(self) -> bool {
        self == Self::Confirmed || self == Self::Failed
    }
}

/// Asks for a status and writes the answer down.
pub(super) async fn ask_once(crowd: &Crowd, rid: &str, who: &Open) -> Outcome {
    let begun = crowd.begin();
    let sale = &crowd.load.sales.get(who.sale).expect("a sale").id;
    let answer = crowd.door.status(sale, &who.user, rid).await;
    crowd.write(begun, who, Said { kind: "status", rid: Some(rid), token: false, payment: None }, &answer);
    crowd.counters.asked.fetch_add(1, Relaxed);
    if answer.outcome.is_final() {
        crowd.note_final(rid);
    }
    answer.outcome
}

/// When an attempt began.
pub(super) struct Begun {
    seq: u64,
    invoke_ms: u64,
}

/// What was said.
pub(super) struct Said<'a> {
    pub kind: &'static str,
    pub rid: Option<&'a str>,
    pub token: bool,
    pub payment: Option<&'a str>,
}

impl Crowd {
    pub(super) fn begin(&self) -> Begun {
        Begun { seq: self.history.begin(), invoke_ms: now_ms() }
    }

    pub(super) fn write(&self, begun: Begun, who: &Open, said: Said<'_>, answer: &ClientAnswer) {
        let (Begun { seq, invoke_ms }, Said { kind, rid, token, payment }) = (begun, said);
        self.history.write(&Attempt {
            seq,
            client: who.client,
            user: &who.user,
            sale: &self.load.sales.get(who.sale).expect("a sale").id,
            rid,
            token,
            kind,
            payment,
            quantity: who.quantity,
            invoke_ms,
            complete_ms: now_ms(),
            result: &answer.outcome.text(),
            code: answer.code.as_deref(),
            reason: answer.reason.as_deref(),
            other_rid: answer.rid.as_deref().filter(|other| Some(*other) != rid),
        });
    }

    fn count(&self, answer: &ClientAnswer, rid: Option<&str>, who: &Open) {
        let counters = &self.counters;
        counters.sent.fetch_add(1, Relaxed);
        match (answer.outcome, rid) {
            (Outcome::Accepted, Some(rid)) => {
                let counter = if self.accepted_ids.lock().unwrap().insert(rid.to_owned()) {
                    self.note_open(true, rid, who);
                    &counters.accepted
                } else {
                    &counters.replays
                };
                counter.fetch_add(1, Relaxed);
            }
            (Outcome::Unknown, rid) => {
                if let Some(rid) = rid {
                    self.note_open(false, rid, who);
                }
                counters.unknown.fetch_add(1, Relaxed);
            }
            (_, _) => {
                counters.refused.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Neighbours differ by the case of one letter only: a comparison that ignores case takes two buyers for one (window 72).
fn name(index: u64) -> String {
    let first = if index.is_multiple_of(2) { 'b' } else { 'B' };
    format!("{first}uyer-{}", index / 2)
}
