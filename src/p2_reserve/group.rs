//! One group of purchases of one sale and shard: one script call, and what follows from its answer.
//!
//! While a call is under way the next group gathers; a group is what has arrived by then: one request when idle, so an idle
//! system waits for nothing. One call at a time: a call costs Redis and this process the same for any group, so a second call
//! beside it only made both groups smaller (measured: the same rate at full load, a tenth more processor time for each purchase
//! at half load).
//!
//! Who waits for the replies: `Reserve::ask`, on the thread of an HTTP worker (`thread_queue.rs`).

use super::replies::{Reply, ReplyBundles};
use super::{Decision, ReserveContext, traced};
use crate::domain::ids::SaleId;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::sale_door::SaleDoor;
use crate::faults::{crash_point, left_out};
use crate::runtime::batcher::{Batcher, Bounds};
use crate::store::redis::{DoorsOfGroup, RedisFault, ReservedGroup};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A batcher without purchases for this long ends; the next purchase starts a new one.
const IDLE_END: Duration = Duration::from_secs(60);
/// Times the boot fence is passed for one group. Only a server that restarts again and again takes more than one.
const FENCE_TRIES: u32 = 3;

/// One purchase that waits for its group.
pub(super) struct WaitingPurchase {
    pub purchase: Purchase,
    pub epoch: u32,
    pub by: SaleDoor,
    pub deadline: Instant,
    pub reply: Reply,
}

/// Decides the groups of one sale on one shard.
struct GroupReserve {
    context: Arc<ReserveContext>,
    sale: SaleId,
    shard: u16,
    size: metrics::Histogram,
    seconds: metrics::Histogram,
}

/// Starts the batcher of one sale on one shard.
pub(super) fn start_batcher(context: &Arc<ReserveContext>, sale: SaleId, shard: u16) -> Batcher<WaitingPurchase> {
    let bounds = Bounds {
        group_max: context.group_max,
        waiting_max: context.queue_max,
        in_flight_max: 1,
        idle_end: Some(IDLE_END),
    };
    let size = metrics::histogram!("seckill_p2_reserve_group_count");
    let seconds = metrics::histogram!("seckill_p2_reserve_seconds");
    let reserve = Arc::new(GroupReserve { context: context.clone(), sale, shard, size, seconds });
    Batcher::start(bounds, &context.runtime, move |group| {
        let reserve = reserve.clone();
        async move { reserve.decide(group).await }
    })
}

impl GroupReserve {
    /// Decides one group: purchases past their deadline are refused unsent, the others are sent by epoch (nearly always one).
    async fn decide(&self, group: Vec<WaitingPurchase>) {
        self.size.record(group.len() as f64);
        let begun = Instant::now();
        let (mut waiting, late) = parted(group, |waiting| waiting.deadline > begun);
        refuse(late, &Decision::Unavailable);
        while let Some(epoch) = waiting.first().map(|first| first.epoch) {
            let (of_epoch, others) = parted(waiting, |one| one.epoch == epoch);
            waiting = others;
            let purchases: Vec<&Purchase> = of_epoch.iter().map(|waiting| &waiting.purchase).collect();
            traced::asks((&self.sale, self.shard, epoch), &purchases);
            crash_point!(BeforeScript);
            let doors = DoorsOfGroup::of(of_epoch.iter().map(|waiting| waiting.by));
            let answer = self.call_script(epoch, &purchases, &doors).await;
            crash_point!(AfterScript);
            traced::answer(&purchases, &answer);
            let decisions = self.decisions(&purchases, answer).await;
            reply(of_epoch, decisions);
        }
        self.seconds.record(begun.elapsed());
    }

    /// Calls the script. NOSCRIPT means that nothing ran and the server restarted or failed over: the boot fence comes first.
    async fn call_script(
        &self,
        epoch: u32,
        purchases: &[&Purchase],
        doors: &DoorsOfGroup,
    ) -> Result<ReservedGroup, RedisFault> {
        let context = &self.context;
        let call = || context.redis.stock.reserve_by(&self.sale, (self.shard, epoch), purchases, doors);
        let mut answer = call().await;
        for _ in 0..FENCE_TRIES {
            if !matches!(answer, Err(RedisFault::NoScript)) {
                break;
            }
            context.fence.pass(self.shard).await.map_err(|fault| RedisFault::NotSent(fault.to_string()))?;
            answer = call().await;
        }
        if matches!(answer, Err(RedisFault::Unknown(_))) && left_out!(ReplayCheck) {
            return call().await;
        }
        answer
    }

    async fn decisions(&self, purchases: &[&Purchase], answer: Result<ReservedGroup, RedisFault>) -> Vec<Decision> {
        let (count, sale) = (purchases.len(), &self.sale);
        match answer {
            Ok(group) => self.decided(group),
            Err(fault @ (RedisFault::Unknown(_) | RedisFault::Contract(_))) => {
                tracing::warn!(phase = "p2_reserve", %sale, error = %fault, count, "no answer, looking up");
                self.look_up(purchases, &Decision::Unknown).await
            }
            // Nothing ran: no memory, too few replicas, a fence that is shut. An earlier accept is still confirmed.
            Err(fault @ (RedisFault::Refused(_) | RedisFault::NotSent(_) | RedisFault::NoScript)) => {
                tracing::warn!(phase = "p2_reserve", %sale, error = %fault, count, "not reserved");
                self.look_up(purchases, &Decision::Unavailable).await
            }
        }
    }

    /// The decisions of an answer. An accept that too few replicas have is real on this server and lost with it: no buyer may
    /// get it as accepted, not as a replay either (window 15).
    fn decided(&self, group: ReservedGroup) -> Vec<Decision> {
        let ReservedGroup { reserved, replicated } = group;
        let decision = |decided: Reserved| {
            let promises = matches!(decided, Reserved::Accepted | Reserved::Replayed);
            if promises && !replicated { Decision::Unknown } else { Decision::Decided(decided) }
        };
        let decisions: Vec<Decision> = reserved.into_iter().map(decision).collect();
        let count = decisions.iter().filter(|decision| **decision == Decision::Unknown).count();
        if count > 0 {
            metrics::counter!("seckill_p2_reserve_unreplicated_total").increment(count as u64);
            tracing::warn!(phase = "p2_reserve", sale = %self.sale, count, "accepted, but on too few replicas to promise it");
        }
        decisions
    }

    /// Without a decision of the script: a request in the ledger was accepted; the others are `otherwise`. After a lost answer
    /// that is unknown, because the command may still be on its way. It is not sent again: the buyer does that, with the same
    /// token (window 9).
    async fn look_up(&self, purchases: &[&Purchase], otherwise: &Decision) -> Vec<Decision> {
        let request_ids: Vec<_> = purchases.iter().map(|purchase| purchase.request_id).collect();
        match self.context.redis.ledger.lookup_replicated(&self.sale, self.shard, &request_ids).await {
            Ok((records, replicated)) => {
                traced::looked_up(purchases, &records);
                records
                    .into_iter()
                    .zip(purchases)
                    .map(|(record, purchase)| match record {
                        Some(record) if record.user_id == purchase.user_id && replicated => {
                            Decision::Decided(Reserved::Replayed)
                        }
                        Some(record) if record.user_id == purchase.user_id => Decision::Unknown,
                        Some(_) => Decision::Decided(Reserved::Conflict),
                        None => otherwise.clone(),
                    })
                    .collect()
            }
            Err(_) => vec![otherwise.clone(); purchases.len()],
        }
    }
}

/// Those that fit and those that do not. Nearly always all of a group fit, and then nothing is moved.
fn parted(
    group: Vec<WaitingPurchase>,
    fits: impl Fn(&WaitingPurchase) -> bool,
) -> (Vec<WaitingPurchase>, Vec<WaitingPurchase>) {
    if group.iter().all(&fits) { (group, Vec::new()) } else { group.into_iter().partition(fits) }
}

/// Sends each purchase of a group the same decision.
pub(super) fn refuse(group: Vec<WaitingPurchase>, decision: &Decision) {
    let decisions = vec![decision.clone(); group.len()];
    reply(group, decisions);
}

/// Sends each purchase its decision.
fn reply(group: Vec<WaitingPurchase>, decisions: Vec<Decision>) {
    let mut bundles = ReplyBundles::default();
    for (waiting, decision) in group.into_iter().zip(decisions) {
        bundles.add(waiting.reply, decision);
    }
    bundles.send();
}
