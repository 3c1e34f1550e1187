//! How far the orders of each ledger have landed, so that a crowd that waits need not ask one by one.
//!
//! The ledger's shard notes the highest acceptance number that was settled (`lua/settle.lua`). One task of the process reads it while
//! somebody waits, and wakes those whose number is reached; only they read their record. Orders land about in the order of their
//! numbers. It is a hint and no more: who is behind it, or where it is not known (no order has landed, or an older consumer settles),
//! asks by the clock, and so does everybody now and then.
//!
//! Input: a place in a ledger that waits. Output: that it is reached. A crash leaves nothing.

use crate::domain::ids::SaleId;
use crate::domain::ledger::SettledUpTo;
use crate::runtime::Stopper;
use crate::store::redis::RequestLedger;
use futures::future::join_all;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Pause between two reads of a ledger's number.
const READ_EVERY: Duration = Duration::from_millis(50);
/// Ledgers read at a time: of more, each is read in its turn, so that many sales do not cost more reads than this.
const READ_AT_ONCE: usize = 64;

/// A ledger: that of a sale on a shard.
type Ledger = (SaleId, u16);

/// One that waits in a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingRequest {
    pub(super) ledger: Ledger,
    /// Where it stands.
    pub(super) at: SettledUpTo,
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// The place was ahead of what is settled: it is reached, or the longest wait is over.
    Ahead,
    /// It goes by the clock.
    ByTheClock,
}

/// The waiting ones of one ledger.
#[derive(Default)]
struct Crowd {
    /// As of the last read; `None`: not known.
    settled: Option<SettledUpTo>,
    /// All that wait; without one nothing is read.
    count: usize,
    /// Those that are woken, by place, and a number of its own.
    ahead: BTreeMap<(SettledUpTo, u64), oneshot::Sender<()>>,
}

impl Crowd {
    /// Wakes everybody who is reached.
    fn reaches(&mut self, settled: Option<SettledUpTo>) {
        self.settled = settled;
        let Some(settled) = settled else { return };
        let still_ahead = self.ahead.split_off(&(settled, u64::MAX));
        for (_, reached) in std::mem::replace(&mut self.ahead, still_ahead) {
            // One that went away meanwhile needs nothing.
            let _there_or_gone = reached.send(());
        }
    }
}

#[derive(Default)]
struct Crowds {
    of: HashMap<Ledger, Crowd>,
    next: u64,
    /// Where the next turn of reads begins.
    turn: usize,
}

/// All that wait in this process. Clones share them.
#[derive(Clone)]
pub(super) struct Landings {
    ledger: RequestLedger,
    crowds: Arc<Mutex<Crowds>>,
    arrived: Arc<Notify>,
}

impl Landings {
    /// Reads for those that wait until the stop, on the runtime this is called in.
    pub(super) fn start(ledger: RequestLedger, stopper: &Stopper) -> Self {
        let landings = Self { ledger, crowds: Arc::default(), arrived: Arc::default() };
        let (reader, stopper) = (landings.clone(), stopper.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stopper.stopped() => {}
                () = reader.run() => {}
            }
        });
        landings
    }

    /// Held for a moment, never across a wait.
    fn crowds(&self) -> MutexGuard<'_, Crowds> {
        self.crowds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the place is reached, at most this long. Where that is not known, or its number is reached and its record does not
    /// say so yet, waits for `pause`.
    pub(super) async fn reached(&self, request: &WaitingRequest, pause: Duration, most: Duration) -> Waited {
        let mut place = self.enter(request);
        self.arrived.notify_one();
        match &mut place.reached {
            Some(reached) => {
                // Reached, or the time is over: the caller asks again either way.
                let _reached_or_not = tokio::time::timeout(most, reached).await;
                Waited::Ahead
            }
            None => {
                tokio::time::sleep(pause).await;
                Waited::ByTheClock
            }
        }
    }

    fn enter<'a>(&'a self, request: &'a WaitingRequest) -> CrowdPlace<'a> {
        let mut crowds = self.crowds();
        let id = crowds.next;
        crowds.next += 1;
        let crowd = crowds.of.entry(request.ledger.clone()).or_default();
        crowd.count += 1;
        let is_ahead = crowd.settled.is_some_and(|settled| settled.epoch == request.at.epoch && settled < request.at);
        let reached = is_ahead.then(|| {
            let (sender, reached) = oneshot::channel();
            crowd.ahead.insert((request.at, id), sender);
            reached
        });
        CrowdPlace { landings: self, request, id, reached }
    }

    async fn run(&self) {
        loop {
            self.arrived.notified().await;
            while self.read().await {
                tokio::time::sleep(READ_EVERY).await;
            }
        }
    }

    /// Reads the number of some ledgers in which somebody waits. `false`: none waits.
    async fn read(&self) -> bool {
        let turn: Vec<Ledger> = {
            let mut crowds = self.crowds();
            crowds.of.retain(|_, crowd| crowd.count > 0);
            let (count, from) = (crowds.of.len(), crowds.turn);
            crowds.turn = if from + READ_AT_ONCE < count { from + READ_AT_ONCE } else { 0 };
            crowds.of.keys().skip(from).take(READ_AT_ONCE).cloned().collect()
        };
        let read = join_all(turn.iter().map(|(sale, shard)| self.ledger.settled_up_to(sale, *shard))).await;
        let mut crowds = self.crowds();
        for (ledger, settled) in turn.iter().zip(read) {
            let settled = settled.unwrap_or_else(|fault| {
                tracing::debug!(phase = "p1_entry", sale = %ledger.0, shard = ledger.1, error = %fault, "how far orders landed");
                None
            });
            if let Some(crowd) = crowds.of.get_mut(ledger) {
                crowd.reaches(settled);
            }
        }
        !crowds.of.is_empty()
    }
}

/// A place in a crowd; given up when its question ends, however it ends.
struct CrowdPlace<'a> {
    landings: &'a Landings,
    request: &'a WaitingRequest,
    id: u64,
    reached: Option<oneshot::Receiver<()>>,
}

impl Drop for CrowdPlace<'_> {
    fn drop(&mut self) {
        if let Some(crowd) = self.landings.crowds().of.get_mut(&self.request.ledger) {
            crowd.count -= 1;
            crowd.ahead.remove(&(self.request.at, self.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: u32, number: u64) -> SettledUpTo {
        SettledUpTo { epoch, number }
    }

    #[test]
    fn who_is_reached_is_woken_and_no_other() {
        let mut crowd = Crowd::default();
        let mut wait = |place, id| {
            let (sender, reached) = oneshot::channel();
            crowd.ahead.insert((place, id), sender);
            reached
        };
        let [mut first, mut second, mut twin, mut later] =
            [wait(at(2, 1), 7), wait(at(2, 5), 8), wait(at(2, 5), 9), wait(at(2, 6), 1)];
        crowd.reaches(None);
        assert!(first.try_recv().is_err(), "a read that failed says nothing");
        crowd.reaches(Some(at(2, 5)));
        assert!([&mut first, &mut second, &mut twin].into_iter().all(|reached| reached.try_recv().is_ok()));
        assert!(later.try_recv().is_err() && crowd.ahead.len() == 1);
        crowd.reaches(Some(at(3, 1)));
        assert!(later.try_recv().is_ok(), "its epoch has ended: its record says what became of it");
    }
}
