//! A seeded crowd that behaves as real clients do under faults, and writes down every attempt and its answer.
//!
//! Input: urls of the api, sales, a seed. Output: the history (one JSON line per attempt), which is all the checker knows
//! of what was promised. Open loop: purchases begin at their rate however slow the answers are; above the bound of
//! purchases in flight they are skipped and counted. An attempt's line is written when it is over, and every attempt ends
//! within its client's patience, so that a stopped crowd has no line missing.

mod buyer;
pub mod clock;
pub mod final_status;
mod history;
pub mod http;
pub mod payer;

use buyer::Buyer;
use history::History;
use http::ApiClient;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// Most purchases under way at once.
const IN_FLIGHT_MAX: usize = 256;

/// A sale that the crowd buys in.
#[derive(Debug, Clone)]
pub struct SaleSpec {
    /// Its id.
    pub id: String,
    /// Units released when it begins.
    pub stock: i64,
    /// Units per buyer: `None` unlimited, 1 one purchase of one unit, n cumulative.
    pub limit: Option<u32>,
    /// Seconds to pay; `None`: there is no payment step.
    pub pay_within_s: Option<u32>,
}

/// Where the shop's backend reports payments.
#[derive(Debug, Clone)]
pub struct Backend {
    /// `http://host:port` of admin ports; every call goes to one of them by chance.
    pub admins: Vec<String>,
    /// `admin.token`.
    pub token: String,
}

/// What the crowd does.
#[derive(Debug, Clone)]
pub struct Load {
    /// `http://host:port`; every attempt goes to one of them by chance.
    pub apis: Vec<String>,
    /// Where it buys, by chance.
    pub sales: Vec<SaleSpec>,
    /// How many different buyers there are.
    pub users: u64,
    /// Purchases begun per second.
    pub rate_per_s: f64,
    /// The same seed makes the same plans; what comes of them depends on the answers.
    pub seed: u64,
    /// `auth.secret`: the key of the access tokens.
    pub secret: String,
    /// The shop's backend, where a sale has a payment step.
    pub backend: Option<Backend>,
    /// How long requests without a final answer are asked for at the end, milliseconds.
    pub settle_max_ms: u64,
}

/// What the crowd has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// Purchases begun.
    pub purchases: u64,
    /// Purchases not begun because too many were under way.
    pub skipped: u64,
    /// Attempts to buy that were sent or tried.
    pub sent: u64,
    /// Request ids with the answer "accepted".
    pub accepted: u64,
    /// Accepted again: repeats of an accepted request.
    pub replays: u64,
    /// Definite refusals, and "come back later".
    pub refused: u64,
    /// Attempts to buy without an answer, or with "unknown".
    pub unknown: u64,
    /// Questions for a status.
    pub asked: u64,
    /// Times that a payment was reported.
    pub payments: u64,
    /// Request ids that still had no final answer when the crowd ended.
    pub unsettled: u64,
}

#[derive(Default)]
struct Counters {
    purchases: AtomicU64,
    skipped: AtomicU64,
    sent: AtomicU64,
    accepted: AtomicU64,
    replays: AtomicU64,
    refused: AtomicU64,
    unknown: AtomicU64,
    asked: AtomicU64,
    payments: AtomicU64,
    unsettled: AtomicU64,
}

/// A request whose final answer is not known yet.
#[derive(Debug, Clone)]
struct Open {
    client: u64,
    user: String,
    sale: usize,
    quantity: u32,
}

/// What all clients share.
struct Crowd {
    load: Load,
    door: ApiClient,
    history: History,
    counters: Counters,
    stopping: AtomicBool,
    /// By (was accepted, request id): the unknown come first.
    open: Mutex<BTreeMap<(bool, String), Open>>,
    /// Request ids with the answer "accepted".
    accepted_ids: Mutex<HashSet<String>>,
}

impl Crowd {
    fn stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    fn note_open(&self, accepted: bool, rid: &str, who: &Open) {
        let mut open = self.open.lock().unwrap();
        if accepted {
            open.remove(&(false, rid.to_owned()));
            open.insert((true, rid.to_owned()), who.clone());
        } else if !open.contains_key(&(true, rid.to_owned())) {
            open.insert((false, rid.to_owned()), who.clone());
        }
    }

    fn note_final(&self, rid: &str) {
        let mut open = self.open.lock().unwrap();
        for accepted in [false, true] {
            open.remove(&(accepted, rid.to_owned()));
        }
    }

    fn totals(&self) -> Totals {
        let c = &self.counters;
        Totals {
            purchases: c.purchases.load(Relaxed),
            skipped: c.skipped.load(Relaxed),
            sent: c.sent.load(Relaxed),
            accepted: c.accepted.load(Relaxed),
            replays: c.replays.load(Relaxed),
            refused: c.refused.load(Relaxed),
            unknown: c.unknown.load(Relaxed),
            asked: c.asked.load(Relaxed),
            payments: c.payments.load(Relaxed),
            unsettled: c.unsettled.load(Relaxed),
        }
    }
}

/// A crowd at work.
pub struct Clients {
    crowd: Arc<Crowd>,
    schedule: JoinHandle<()>,
}

impl Clients {
    /// Starts buying; every attempt is written to the file `history`, which is created empty.
    pub fn start(load: Load, history: &Path) -> Self {
        assert!(!load.apis.is_empty() && !load.sales.is_empty() && load.users > 0 && load.rate_per_s > 0.0, "{load:?}");
        let crowd = Arc::new(Crowd {
            door: ApiClient::new(&load),
            history: History::create(history),
            load,
            counters: Counters::default(),
            stopping: AtomicBool::new(false),
            open: Mutex::new(BTreeMap::new()),
            accepted_ids: Mutex::new(HashSet::new()),
        });
        let schedule = tokio::spawn(schedule(crowd.clone()));
        Self { crowd, schedule }
    }

    /// What was seen so far.
    pub fn totals(&self) -> Totals {
        self.crowd.totals()
    }

    /// Begins nothing new, waits for what is under way, and asks for every request without a final answer until it has one,
    /// or is not found twice, for at most `settle_max_ms`. Call it after all faults are over.
    pub async fn stop(self) -> Totals {
        self.crowd.stopping.store(true, Relaxed);
        self.schedule.await.expect("the schedule ends");
        final_status::settle(&self.crowd).await;
        self.crowd.history.flush();
        self.crowd.totals()
    }
}

/// Begins purchases at the rate of the load, and waits for the last of them.
async fn schedule(crowd: Arc<Crowd>) {
    let room = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / crowd.load.rate_per_s));
    let mut clients = JoinSet::new();
    for client in 0.. {
        tick.tick().await;
        if crowd.stopping() {
            break;
        }
        while let Some(ended) = clients.try_join_next() {
            ended.expect("a client ends");
        }
        let Ok(place) = room.clone().try_acquire_owned() else {
            crowd.counters.skipped.fetch_add(1, Relaxed);
            continue;
        };
        let buyer = Buyer::new(crowd.clone(), client);
        clients.spawn(async move {
            buyer.shop().await;
            drop(place);
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client ends");
    }
}
