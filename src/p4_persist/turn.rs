//! Whose turn it is to write. Transactions of the writers of a process that run side by side meet at the ends of the same indexes
//! and at the stock row, which costs the database more than it gains, unless they are large. So a group that is not full waits while
//! another one is written, and grows.
//!
//! Input: a group in hand. Output: the same group or a larger one, and the turn, which ends with its transaction. A lone order waits
//! for nothing. Nothing waits longer than a moment: a transaction that waits for a lock holds up no other sale. A crash leaves the
//! deliveries unacknowledged: they come again.

use super::Persist;
use super::after_commit::CommittedGroup;
use crate::store::rabbit::{Delivery, RabbitError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

/// Longest wait for a turn; some transactions of a full group.
const TURN_WAIT: Duration = Duration::from_millis(50);

/// Shared by the writers of a process.
pub(super) type WriteTurn = Arc<Mutex<()>>;

/// A turn: the others wait until it is dropped. `None`: leave to write without one, because the group is full or has waited long
/// enough.
pub(super) type Turn = Option<OwnedMutexGuard<()>>;

impl Persist {
    /// Waits for this writer's turn. Meanwhile the group before this one is acknowledged, and more arrives.
    pub(super) async fn take_turn(
        &mut self,
        group: &mut Vec<Delivery>,
        group_max: usize,
        before: &mut Option<CommittedGroup>,
    ) -> Result<Turn, RabbitError> {
        if let Ok(turn) = self.turn.clone().try_lock_owned() {
            return Ok(Some(turn));
        }
        if group.len() >= group_max {
            return Ok(None);
        }
        if let Some(before) = before.take() {
            self.after_commit(before).await?;
        }
        let turn = timeout(TURN_WAIT, self.turn.clone().lock_owned()).await;
        group.extend(self.group(group_max - group.len(), Duration::ZERO).await?);
        Ok(turn.ok())
    }
}
