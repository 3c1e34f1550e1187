//! What people can do to the system, with the codes that stand in `operator_acts`. Values only.

/// What can be done, as `category.operation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A sale was created.
    SaleCreate,
    /// Put into Redis and opened.
    SaleWarm,
    /// Stopped for a while.
    SalePause,
    /// A paused sale was opened again.
    SaleResume,
    /// Its terms were changed before its start.
    SaleEdit,
    /// It starts or ends at another time.
    SaleReschedule,
    /// Buyers do not see it any more.
    SaleHide,
    /// Buyers see it.
    SalePublish,
    /// Created with the terms of another one.
    SaleClone,
    /// Given more units.
    SaleTopUp,
    /// Unsold units taken off sale.
    SaleWithdraw,
    /// Unsold units moved to another sale of the drop.
    DropMove,
    /// Units of final failures sold again.
    SaleReclaim,
    /// Ended for good.
    SaleClose,
    /// Frozen, to be rebuilt from the database.
    SaleRebuild,
    /// Its rows, exported before, removed from the database.
    SaleArchive,
    /// A finding of the audit closed with a reason.
    FindingClose,
    /// An order was cancelled.
    OrderCancel,
    /// A payment of an order was reported.
    OrderPaid,
    /// A buyer begins to pay: the deadline moved.
    OrderPaying,
    /// Money that no order could take went back.
    OrderRefunded,
    /// A write to the admin API that a role did not allow.
    AdminWrite,
    /// A parked request was persisted, or its entry removed.
    DlqReplay,
    /// A parked request was recorded as failed, or a foreign message dropped.
    DlqGiveUp,
    /// Deliveries of webhooks were sent again.
    WebhookReplay,
    /// A buyer may not buy any more.
    BuyerBlock,
    /// A blocked buyer may buy again.
    BuyerUnblock,
    /// A buyer's id became a pseudonym everywhere.
    BuyerForget,
    /// A pass for a buyer was signed.
    PassIssue,
    /// A line was drawn with a text from outside.
    LineDraw,
}

impl Operation {
    /// The stored code, at most 32 characters.
    #[must_use]
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::SaleCreate => "sale.create",
            Self::SaleWarm => "sale.warm",
            Self::SalePause => "sale.pause",
            Self::SaleResume => "sale.resume",
            Self::SaleEdit => "sale.edit",
            Self::SaleReschedule => "sale.reschedule",
            Self::SaleHide => "sale.hide",
            Self::SalePublish => "sale.publish",
            Self::SaleClone => "sale.clone",
            Self::SaleTopUp => "sale.top_up",
            Self::SaleWithdraw => "sale.withdraw",
            Self::DropMove => "drop.move",
            Self::SaleReclaim => "sale.reclaim",
            Self::SaleClose => "sale.close",
            Self::SaleRebuild => "sale.rebuild",
            Self::SaleArchive => "sale.archive",
            Self::FindingClose => "finding.close",
            Self::OrderCancel => "order.cancel",
            Self::OrderPaid => "order.paid",
            Self::OrderPaying => "order.paying",
            Self::OrderRefunded => "order.refunded",
            Self::AdminWrite => "admin.write",
            Self::DlqReplay => "dlq.replay",
            Self::DlqGiveUp => "dlq.give_up",
            Self::WebhookReplay => "webhook.replay",
            Self::BuyerBlock => "buyer.block",
            Self::BuyerUnblock => "buyer.unblock",
            Self::BuyerForget => "buyer.forget",
            Self::PassIssue => "pass.issue",
            Self::LineDraw => "line.draw",
        }
    }
}
