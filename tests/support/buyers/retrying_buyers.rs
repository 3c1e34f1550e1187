//! Buyers who come without a pause while servers die: each repeats with their token until they know. Their answers are
//! kept, second by second and by the server that has their shard.

use crate::support::world::{Answer, World, pause};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::SaleAudit;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const ASK: Duration = Duration::from_secs(15);

/// One answer to a purchase.
#[derive(Debug, Clone, Copy)]
struct TimedAnswer {
    at: Duration,
    /// Which of the servers has the buyer's shard; where it stood when the rush began.
    server: usize,
    status: u16,
}

/// A crowd, and its answers so far.
pub struct RetryingBuyers<'a> {
    world: &'a World,
    sale: &'a SaleId,
    /// Shards of each server.
    servers: Vec<Vec<u16>>,
    begun: Instant,
    answers: Mutex<Vec<TimedAnswer>>,
    /// User and request id of every 202.
    won: Mutex<Vec<(String, String)>>,
    marks: Mutex<Vec<(Duration, String)>>,
    over: AtomicBool,
}

impl<'a> RetryingBuyers<'a> {
    pub fn new(world: &'a World, sale: &'a SaleId) -> Self {
        let servers = world.servers.redis.servers().into_iter().map(|(_, shards)| shards).collect();
        Self {
            world,
            sale,
            servers,
            begun: Instant::now(),
            answers: Mutex::default(),
            won: Mutex::default(),
            marks: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Buyers of `names`, one after the other, until the answer is that nothing is left, or the test ends.
    pub async fn line(&self, shard: u16, mut names: impl Iterator<Item = String>) {
        let server = self.servers.iter().position(|shards| shards.contains(&shard)).expect("a server has it");
        while !self.over.load(Ordering::SeqCst) {
            let user = names.next().expect("there is always another");
            if self.insist(server, &user).await == 410 {
                return;
            }
            pause().await;
        }
    }

    /// Buys until the answer is one that stays.
    async fn insist(&self, server: usize, user: &str) -> u16 {
        let (token, request_id) = match self.token(user).await {
            Ok(ticket) => ticket,
            Err(status) => return status,
        };
        loop {
            let path = format!("/v1/sales/{}/orders", self.sale);
            let request = self.world.request(Method::POST, &path, user).json(&serde_json::json!({ "quantity": 1 }));
            let answer = Answer::of(request.header("Idempotency-Key", &token).timeout(ASK)).await;
            let status = answer.status;
            self.answers.lock().unwrap().push(TimedAnswer { at: self.begun.elapsed(), server, status });
            match status {
                202 => {
                    assert_eq!(answer.text("request_id"), request_id, "{answer:?}");
                    self.won.lock().unwrap().push((user.to_owned(), request_id));
                    return status;
                }
                410 => return status,
                503 | 504 => {}
                _ => panic!("{user}: {answer:?}"),
            }
            pause().await;
        }
    }

    /// A token and its request id; or 410, or what was said when the rush was over.
    async fn token(&self, user: &str) -> Result<(String, String), u16> {
        loop {
            let path = format!("/v1/sales/{}/tokens", self.sale);
            let answer = Answer::of(self.world.request(Method::POST, &path, user).timeout(ASK)).await;
            match answer.status {
                201 => return Ok((answer.text("token"), answer.text("request_id"))),
                status if status == 410 || self.over.load(Ordering::SeqCst) => return Err(status),
                _ => pause().await,
            }
        }
    }

    /// Remembers that something happened now, for the table. Returns when.
    pub fn mark(&self, what: &str) -> Duration {
        let at = self.begun.elapsed();
        self.marks.lock().unwrap().push((at, what.to_owned()));
        at
    }

    /// No buyer comes any more.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// How many got 202 so far.
    pub fn accepted(&self) -> usize {
        self.won.lock().unwrap().len()
    }

    /// How many buyers of one server got 202 in a time; without an end, up to now.
    pub fn accepted_of(&self, server: usize, from: Duration, to: Option<Duration>) -> usize {
        self.answers_of((server, 202), from, to)
    }

    /// How many answers with this status buyers of one server got in a time.
    pub fn answers_of(&self, (server, status): (usize, u16), from: Duration, to: Option<Duration>) -> usize {
        let answers = self.answers.lock().unwrap();
        let meant = |answer: &&TimedAnswer| (answer.server, answer.status) == (server, status);
        answers.iter().filter(meant).filter(|answer| answer.at > from && to.is_none_or(|to| answer.at < to)).count()
    }

    /// After the rush: every 202 is a confirmed order, no buyer has two, and the books have as many. Returns the audit.
    pub async fn holds(&self) -> SaleAudit {
        let won = self.won.lock().unwrap().clone();
        for (user, request_id) in &won {
            let status = self.world.status(self.sale, user, request_id, 30).await;
            assert_eq!(status.text("status"), "CONFIRMED", "{user}: {status:?}");
        }
        let users: BTreeSet<&String> = won.iter().map(|(user, _)| user).collect();
        let ids: BTreeSet<&String> = won.iter().map(|(_, id)| id).collect();
        assert_eq!((users.len(), ids.len()), (won.len(), won.len()), "0 duplicates");
        let audit = self.world.settled(self.sale).await;
        assert!(audit.consistent(), "{audit:#?}");
        assert_eq!(usize::try_from(audit.counted.ordered).unwrap(), won.len(), "{audit:#?}");
        assert_eq!(self.world.orders(self.sale).await, audit.counted.ordered);
        audit
    }

    /// Second by second: for each server how many got 202, 503, 504; and what happened (with `--nocapture`).
    pub fn print(&self, title: &str) {
        let mut rows: BTreeMap<u64, Vec<[usize; 4]>> = BTreeMap::new();
        for answer in self.answers.lock().unwrap().iter() {
            let row = rows.entry(answer.at.as_secs()).or_insert_with(|| vec![[0; 4]; self.servers.len()]);
            row[answer.server][match answer.status {
                202 => 0,
                503 => 1,
                504 => 2,
                _ => 3,
            }] += 1;
        }
        let marks = self.marks.lock().unwrap();
        let mut table = format!("{title}: shards {:?}\nsecond | 202/503/504/410 by server\n", self.servers);
        let seconds = rows.keys().copied().chain(marks.iter().map(|(at, _)| at.as_secs())).collect::<BTreeSet<u64>>();
        for second in seconds {
            let none = vec![[0; 4]; self.servers.len()];
            let servers = rows
                .get(&second)
                .unwrap_or(&none)
                .iter()
                .map(|n| format!("{:>14}", n.map(|n| n.to_string()).join("/")));
            let happened = marks.iter().filter(|(at, _)| at.as_secs() == second).map(|(_, what)| what.as_str());
            let happened = happened.collect::<Vec<_>>().join(", ");
            writeln!(table, "{second:>6} | {} | {happened}", servers.collect::<Vec<_>>().join(" | ")).unwrap();
        }
        eprintln!("{table}");
    }
}
