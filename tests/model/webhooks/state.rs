//! One moment of the deliveries of one webhook: their rows, its receiver, and what two senders have in memory.

use super::setup::WebhooksSetup;
use seckill::domain::webhook::DeliveryState;

/// Deliveries that fit into a state, and senders.
pub const DELIVERIES: usize = 2;
pub const SENDERS: usize = 2;
/// Failed tries after which a delivery is DEAD.
pub const TRIES: u8 = 2;

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// 2xx.
    Taken,
    Refused,
    /// It took the call, and the sender got no answer.
    Lost,
    /// 410.
    Gone,
}

/// How far a sender is with a delivery; the number is the row's tries when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Try {
    #[default]
    None,
    Loaded(u8),
    UnderWay(u8),
    Ended(u8, Answer),
}

/// A process that may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sender {
    /// It takes itself for the leader.
    pub leads: bool,
    /// It knows that the receiver answered 410.
    pub closed: bool,
    /// That is not written down yet.
    pub gone: bool,
    pub tries: [Try; DELIVERIES],
    /// Rows that it found old enough to be deleted, as bits.
    pub old: u8,
    /// The receiver answered 410 to this very process, and neither a replay nor another leader has opened it since. A law needs it.
    pub forbidden: bool,
}

/// A row, and what is true of its delivery since it was written or replayed last; only laws need that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    pub state: DeliveryState,
    pub attempts: u8,
    /// The receiver has got it, at some time.
    pub taken: bool,
    /// Failed answers.
    pub failed: u8,
    /// A call of it was begun, or its receiver has answered 410.
    pub sent: bool,
    /// A success was recorded.
    pub recorded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deliveries {
    /// `None`: deleted, or this setup has no such delivery.
    pub rows: [Option<Row>; DELIVERIES],
    /// `webhook_subscriptions.disabled_at`.
    pub closed: bool,
    pub senders: [Sender; SENDERS],
    /// Who has the lock of the leader.
    pub lock: Option<usize>,
    pub replays_left: u8,
    pub faults_left: u8,
    /// A process began a call after its 410.
    pub sent_after_gone: bool,
    /// A delivery that was DELIVERED waits again, or is DEAD, without a replay.
    pub undone: bool,
    /// A row is gone that was not DELIVERED.
    pub lost: bool,
}

impl Deliveries {
    pub fn start(setup: &WebhooksSetup) -> Self {
        let row =
            Row { state: DeliveryState::Waiting, attempts: 0, taken: false, failed: 0, sent: false, recorded: false };
        let mut rows = [None; DELIVERIES];
        rows.iter_mut().take(setup.deliveries).for_each(|slot| *slot = Some(row));
        Self {
            rows,
            closed: false,
            senders: [Sender::default(); SENDERS],
            lock: None,
            replays_left: setup.replays,
            faults_left: setup.faults,
            sent_after_gone: false,
            undone: false,
            lost: false,
        }
    }

    /// Which sender is which does not matter, nor which delivery.
    pub fn in_order(self) -> Self {
        let mut ways = [self; 4];
        for (at, way) in ways.iter_mut().enumerate() {
            if at % 2 == 1 {
                way.senders.swap(0, 1);
                way.lock = way.lock.map(|holder| 1 - holder);
            }
            if at > 1 {
                way.rows.swap(0, 1);
                for sender in &mut way.senders {
                    sender.tries.swap(0, 1);
                    sender.old = sender.old >> 1 | (sender.old & 1) << 1;
                }
            }
        }
        ways.into_iter().min().unwrap_or(self)
    }
}
