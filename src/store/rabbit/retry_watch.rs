//! Sees every message that goes through a retry queue, for the rebuild of a sale: a search of the queues from time to time does not,
//! because a message may come into a retry queue and leave it again between two of them.
//!
//! It consumes all retry queues. What comes is noted by its sale, kept for the pause of its queue, at most [`KEPT_MAX`], and put
//! back: what is too old by then goes on to its order queue, by the broker, as it would have without this; what is not comes again.
//! So a message goes on late by as much, and none is lost: a crash, or a broken connection, puts back what is in hand.
//!
//! Why no shorter pause between searches: the shortest pause of a retry is a setting, and can be shorter than a search takes. Why no
//! copies in a queue of its own: the account of a process may make none, and a copy there would be a confirm for a message whose own
//! queue is missing.
//!
//! Only one watch may be there, or each sees a part: the depths of the queues say how many consumers there are.

use super::bundle::{self, OpenedOrder};
use super::config::RabbitConfig;
use super::consumer::start_consuming;
use super::error::{RabbitError, RabbitResult};
use super::link::{Link, call};
use super::signals::Signal;
use super::topology::Topology;
use crate::domain::ids::SaleId;
use crate::domain::message;
use crate::faults::left_out;
use amqprs::channel::BasicNackArguments;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Messages in hand of each queue. While more are there, some are not seen.
const IN_HAND_MAX: u16 = 10_000;
/// How long a message is kept at most before it is put back.
const KEPT_MAX: Duration = Duration::from_secs(5);
/// Beyond the pause of its queue, so that the broker finds it too old.
const MARGIN: Duration = Duration::from_millis(20);

/// A watch over all retry queues; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RetryWatch {
    seen: Arc<Mutex<Seen>>,
    end: Arc<Notify>,
    task: JoinHandle<()>,
}

/// How much a watch has seen of a sale. Two that are equal: nothing of the sale came through a retry queue in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SeenOfSale {
    /// Differs whenever something may have gone unseen.
    watch: u64,
    messages: u64,
}

/// What is in the hand of a watch that may be of the sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InRetry {
    /// A message of it, in this queue.
    OfSale(String),
    /// One whose sale is not known, in this queue.
    Unread(String),
}

#[derive(Debug, Default)]
struct Seen {
    /// Which watch this is.
    watch: u64,
    /// Why nothing is seen any more; `None` while all queues are watched.
    ended: Option<String>,
    /// Messages by sale; under `None` those that cannot be read.
    messages: HashMap<Option<SaleId>, u64>,
    /// In hand: by delivery tag.
    held: HashMap<u64, Held>,
    /// When each of them is to be put back.
    due: BTreeSet<(Instant, u64)>,
}

#[derive(Debug)]
struct Held {
    queue: String,
    /// Of whom its orders are; `None`: not known.
    sales: BTreeSet<Option<SaleId>>,
}

impl Seen {
    fn took(&mut self, tag: u64, held: Held, until: Instant) {
        for sale in &held.sales {
            *self.messages.entry(sale.clone()).or_default() += 1;
        }
        self.held.insert(tag, held);
        self.due.insert((until, tag));
    }

    /// What is to be put back by now, and is not in hand any more.
    fn give_back(&mut self, now: Instant) -> Vec<u64> {
        let mut tags = Vec::new();
        while let Some((_, tag)) = self.due.first().filter(|(until, _)| *until <= now) {
            tags.push(*tag);
            self.held.remove(tag);
            self.due.pop_first();
        }
        tags
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(until, _)| *until)
    }

    fn of(&self, sale: &SaleId) -> Result<SeenOfSale, String> {
        if let Some(why) = &self.ended {
            return Err(why.clone());
        }
        let count = |of: &Option<SaleId>| self.messages.get(of).copied().unwrap_or(0);
        Ok(SeenOfSale { watch: self.watch, messages: count(&None) + count(&Some(sale.clone())) })
    }

    fn in_hand(&self, sale: &SaleId) -> Option<InRetry> {
        let counts = |held: &Held, wanted: &Option<SaleId>| held.sales.contains(wanted) || left_out!(OwnMessagesOnly);
        let of = |wanted: &Option<SaleId>| self.held.values().find(|held| counts(held, wanted));
        let mine = of(&Some(sale.clone())).map(|held| InRetry::OfSale(held.queue.clone()));
        mine.or_else(|| of(&None).map(|held| InRetry::Unread(held.queue.clone())))
    }
}

impl RetryWatch {
    /// Begins to watch; goes on in the background until something goes wrong.
    ///
    /// # Errors
    /// Why the broker cannot be reached, or does not give these queues.
    pub(crate) async fn start(config: &RabbitConfig) -> RabbitResult<Self> {
        let names = Topology::new(config).retry_queues().map(|(name, _)| name).collect();
        let link = Link::connect(config, "retry watch").await?;
        let node = link.node();
        let link = start_consuming(link, config, names, IN_HAND_MAX).await.map_err(|error| node.blamed(error))?;
        let seen = Arc::new(Mutex::new(Seen { watch: link.generation, ..Seen::default() }));
        let end = Arc::new(Notify::new());
        let watching = Watching { config: config.clone(), seen: seen.clone(), end: end.clone() };
        let task = tokio::spawn(async move {
            let ended = watching.run(link).await;
            let why = ended.map_or_else(|error| error.to_string(), |()| "it was ended".to_owned());
            tracing::debug!(phase = "p5_reconcile", why, "the retry queues are not watched any more");
            // What was in hand is back in its queue, and what comes now is not seen.
            lock(&watching.seen).ended = Some(why);
        });
        Ok(Self { seen, end, task })
    }

    /// Ends it in order: what was in hand is back in its queue then, unless the broker does not answer.
    pub(crate) async fn close(mut self) {
        self.end.notify_one();
        if let Err(join) = (&mut self.task).await {
            tracing::warn!(phase = "p5_reconcile", %join, "the watch over the retry queues did not end in order");
        }
    }

    /// Whether it sees nothing any more.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.seen).ended.is_some()
    }

    /// How much it has seen of the sale, or of messages that it cannot read.
    ///
    /// # Errors
    /// Why the queues are not watched any more.
    pub(crate) fn seen_of(&self, sale: &SaleId) -> Result<SeenOfSale, String> {
        lock(&self.seen).of(sale)
    }

    /// A message that is in a retry queue now and is of this sale, or may be.
    pub(crate) fn in_hand(&self, sale: &SaleId) -> Option<InRetry> {
        lock(&self.seen).in_hand(sale)
    }
}

impl Drop for RetryWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    // A panic elsewhere leaves it whole: every change is one insert.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of a watch that runs in the background.
struct Watching {
    config: RabbitConfig,
    seen: Arc<Mutex<Seen>>,
    end: Arc<Notify>,
}

impl Watching {
    /// Watches until it is to end, or something goes wrong.
    async fn run(&self, mut link: Link) -> RabbitResult<()> {
        let pauses: HashMap<String, Duration> = Topology::new(&self.config).retry_queues().collect();
        loop {
            let until = lock(&self.seen).next_due().unwrap_or_else(|| Instant::now() + KEPT_MAX);
            let signal = tokio::select! {
                signal = link.next_signal(until) => signal,
                () = self.end.notified() => return self.close(link).await,
            };
            match signal {
                Some(Signal::Delivered(message)) => {
                    let (deliver, properties, body) = *message;
                    let queue = deliver.consumer_tag().clone();
                    let pause = pauses.get(&queue).copied().unwrap_or_default();
                    let sales = bundle::open(&properties, body).into_iter().map(sale_of).collect();
                    let until = Instant::now() + (pause + MARGIN).min(KEPT_MAX);
                    lock(&self.seen).took(deliver.delivery_tag(), Held { queue, sales }, until);
                }
                Some(Signal::Gone(gone)) => return Err(RabbitError::Closed(gone.to_string())),
                // Nothing is published here.
                Some(Signal::Ack { .. } | Signal::Nack { .. } | Signal::Returned { .. }) | None => {}
            }
            let due = lock(&self.seen).give_back(Instant::now());
            if !due.is_empty() {
                self.put_back(&link, due).await?;
            }
        }
    }

    async fn put_back(&self, link: &Link, tags: Vec<u64>) -> RabbitResult<()> {
        let channel = link.channel.clone();
        call("put messages back", self.config.op_timeout_ms, async move {
            for tag in tags {
                let back = channel.basic_nack(BasicNackArguments::new(tag, false, true)).await;
                back.map_err(|error| RabbitError::Closed(error.to_string()))?;
            }
            Ok(())
        })
        .await
    }

    async fn close(&self, mut link: Link) -> RabbitResult<()> {
        let mut tags: Vec<u64> = lock(&self.seen).held.keys().copied().collect();
        tags.sort_unstable();
        self.put_back(&link, tags).await?;
        link.expect_end();
        let Link { channel, connection, .. } = link;
        call("close the connection", self.config.op_timeout_ms, async move {
            let closed = match channel.close().await {
                Ok(()) => connection.close().await,
                Err(error) => Err(error),
            };
            closed.map_err(|error| RabbitError::Closed(error.to_string()))
        })
        .await
    }
}

fn sale_of(order: OpenedOrder) -> Option<SaleId> {
    let order = order.order.or_else(|| message::decode(&order.body).ok())?;
    Some(order.purchase.sale_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(id: &str) -> SaleId {
        SaleId::parse(id).unwrap()
    }

    fn held(sales: &[Option<&str>]) -> Held {
        Held { queue: "retry".to_owned(), sales: sales.iter().map(|id| id.map(sale)).collect() }
    }

    #[test]
    fn what_came_of_a_sale_or_cannot_be_read_counts_for_it_and_what_came_of_others_does_not() {
        let (mut seen, now) = (Seen::default(), Instant::now());
        let of_a = |seen: &Seen| seen.of(&sale("a")).unwrap();
        let before = of_a(&seen);
        seen.took(1, held(&[Some("b")]), now);
        assert_eq!((of_a(&seen), seen.in_hand(&sale("a"))), (before, None));
        seen.took(2, held(&[None]), now);
        let unread = of_a(&seen);
        assert_ne!(unread, before);
        assert_eq!(seen.in_hand(&sale("a")), Some(InRetry::Unread("retry".to_owned())));
        seen.took(3, held(&[Some("b"), Some("a")]), now + KEPT_MAX);
        assert_ne!(of_a(&seen), unread);
        assert_eq!(seen.in_hand(&sale("a")), Some(InRetry::OfSale("retry".to_owned())));
        assert_eq!((seen.give_back(now), seen.next_due()), (vec![1, 2], Some(now + KEPT_MAX)));
        assert_eq!(seen.give_back(now + KEPT_MAX), [3]);
        assert_eq!((seen.in_hand(&sale("a")), seen.next_due()), (None, None));
    }

    #[test]
    fn another_watch_has_seen_something_else_and_one_that_ended_says_why() {
        let seen = |watch, ended| Seen { watch, ended, ..Seen::default() }.of(&sale("a"));
        assert_ne!(seen(1, None), seen(2, None));
        assert_eq!(seen(1, Some("gone".to_owned())), Err("gone".to_owned()));
    }
}
