//! How an audit is made.

use super::memory::AuditMemory;
use super::window::Window;
use crate::p5_reconcile::dlq::MqDlqContents;

/// How an audit is made. By its window alone it is a single audit that reads everything.
#[derive(Debug)]
pub struct AuditOptions<'a> {
    pub(super) window: Window,
    pub(super) mq_dlq: Option<&'a MqDlqContents>,
    pub(super) retention_ms: Option<i64>,
    pub(super) confirmed: bool,
    pub(super) memory: Option<&'a mut AuditMemory>,
}

impl From<Window> for AuditOptions<'_> {
    fn from(window: Window) -> Self {
        Self { window, mq_dlq: None, retention_ms: None, confirmed: false, memory: None }
    }
}

impl<'a> AuditOptions<'a> {
    /// Audits once more, reading everything, when something is wrong that the memory does not expect. The second audit
    /// is the result, and how many findings of the first one it does not confirm.
    #[must_use]
    pub fn confirmed(self) -> Self {
        Self { confirmed: true, ..self }
    }

    /// With what the round has read of the MQ DLQ; without it each audit reads the queue.
    pub(in crate::p5_reconcile) fn with_mq_dlq(self, mq_dlq: &'a MqDlqContents) -> Self {
        Self { mq_dlq: Some(mq_dlq), ..self }
    }

    /// Collects settled records that are older than this, milliseconds; without it none.
    pub(in crate::p5_reconcile) fn collecting(self, retention_ms: i64) -> Self {
        Self { retention_ms: Some(retention_ms), ..self }
    }

    /// Uses what the last audit remembers, and updates it.
    pub(in crate::p5_reconcile) fn remembering(self, memory: &'a mut AuditMemory) -> Self {
        Self { memory: Some(memory), ..self }
    }
}
