//! Where the rows of a sale lie, and along which index they are walked (`sections`).

/// One table with rows of a sale.
#[derive(Debug)]
pub struct ArchiveTable {
    /// Its name; in statements it is `t`.
    pub name: &'static str,
    /// What is walked; orders are walked along their outcomes, because no index of theirs fits every policy.
    pub(crate) spine: &'static str,
    /// Its rows, joined to the spine.
    pub(crate) from: &'static str,
    /// The alias of the spine.
    pub(crate) of: &'static str,
    pub(crate) sections: Sections,
    /// The key of the sections, of the spine.
    pub(crate) key: &'static str,
    /// The key is text.
    pub(crate) text: bool,
    /// Columns, and how each is written in JSON.
    pub(crate) columns: &'static [(&'static str, As)],
    /// The column that is summed, if any: units.
    pub units: Option<&'static str>,
    /// Its rows are exported and never removed.
    pub stays: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Sections {
    /// All of them along one key.
    Whole,
    /// Along the acceptance numbers of each series, then what has none.
    BySeries,
    /// By status of the register.
    ByStatus,
}

/// How a column becomes JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum As {
    /// Numbers and text, as they are.
    Is,
    /// Ids and times: text, so that no reader rounds them.
    Text,
    /// Bytes that are text.
    Utf8,
    /// Bytes that may be anything: hexadecimal.
    Hex,
}

use As::{Hex, Is, Text, Utf8};

/// Every table, in the order in which its rows are removed: what refers to something before that. `sales` is the last one. Payments
/// stay: a provider may report one again, and one that is reported during the removal may have to go back.
pub const TABLES: [ArchiveTable; 13] = [
    ArchiveTable {
        name: "orders",
        spine: "request_outcome r",
        from: "request_outcome r JOIN orders t ON t.request_id = r.request_id",
        of: "r",
        sections: Sections::BySeries,
        key: "r.number",
        text: false,
        columns: &[
            ("request_id", Text),
            ("sale_id", Utf8),
            ("user_id", Utf8),
            ("one_per_user_id", Utf8),
            ("quantity", Is),
            ("amount_cents", Is),
            ("source", Is),
            ("accepted_at", Text),
            ("created_at", Text),
            ("cancelled_at", Text),
            ("cancelled_by", Is),
            ("cancel_reason", Is),
            ("state", Is),
            ("state_at", Text),
            ("pay_by", Text),
            ("expire_at", Text),
            ("paying_at", Text),
            ("limit_returned", Is),
            ("version", Is),
            ("person", Utf8),
        ],
        units: Some("quantity"),
        stays: false,
    },
    ArchiveTable {
        sections: Sections::ByStatus,
        columns: &[
            ("request_id", Text),
            ("sale_id", Utf8),
            ("user_id", Utf8),
            ("quantity", Is),
            ("source", Is),
            ("reason", Is),
            ("detail", Is),
            ("payload", Hex),
            ("status", Is),
            ("created_at", Text),
            ("resolved_at", Text),
            ("resolved_by", Is),
            ("reclaimed_by", Utf8),
            ("person", Utf8),
        ],
        units: Some("quantity"),
        ..plain("failed_request", "failed_request t", "t.request_id")
    },
    ArchiveTable {
        text: true,
        columns: &[("sale_id", Utf8), ("user_id", Utf8), ("quantity", Is)],
        units: Some("quantity"),
        ..plain("purchases", "purchases t", "t.user_id")
    },
    ArchiveTable {
        columns: &[
            ("flow_id", Text),
            ("sale_id", Utf8),
            ("delta", Is),
            ("kind", Is),
            ("orders_count", Is),
            ("ref", Utf8),
            ("created_at", Text),
        ],
        units: Some("delta"),
        ..plain("stock_flow", "stock_flow t", "t.flow_id")
    },
    ArchiveTable {
        text: true,
        columns: &[
            ("sale_id", Utf8),
            ("grant_id", Utf8),
            ("kind", Is),
            ("quantity", Is),
            ("epoch", Is),
            ("created_at", Text),
            ("applied_at", Text),
            ("buyers", Is),
        ],
        units: Some("quantity"),
        ..plain("stock_grants", "stock_grants t", "t.grant_id")
    },
    ArchiveTable {
        text: true,
        columns: &[
            ("sale_id", Utf8),
            ("name", Utf8),
            ("asked", Is),
            ("moves_to", Utf8),
            ("taken", Is),
            ("created_at", Text),
            ("ended_at", Text),
        ],
        units: Some("taken"),
        ..plain("stock_withdrawals", "stock_withdrawals t", "t.name")
    },
    ArchiveTable {
        columns: &[("sale_id", Utf8), ("release_no", Is), ("releases_at", Text), ("quantity", Is)],
        units: Some("quantity"),
        ..plain("sale_releases", "sale_releases t", "t.release_no")
    },
    ArchiveTable {
        text: true,
        columns: &[("sale_id", Utf8), ("moves_to", Utf8)],
        ..plain("sale_rollovers", "sale_rollovers t", "t.sale_id")
    },
    ArchiveTable {
        columns: &[
            ("sale_id", Utf8),
            ("epoch", Is),
            ("shard", Is),
            ("number", Text),
            ("accepted", Is),
            ("ended_at", Text),
        ],
        ..plain("sale_epochs", "sale_epochs t", "t.epoch")
    },
    ArchiveTable {
        columns: &[
            ("closure_id", Text),
            ("sale_id", Utf8),
            ("code", Is),
            ("epoch", Is),
            ("shard", Is),
            ("first_number", Text),
            ("last_number", Text),
            ("units", Is),
            ("reason", Is),
            ("closed_by", Is),
            ("closed_at", Text),
            ("reclaimed_by", Utf8),
            ("person", Utf8),
        ],
        units: Some("units"),
        ..plain("closed_findings", "closed_findings t", "t.closure_id")
    },
    ArchiveTable {
        text: true,
        columns: &[
            ("payment_id", Utf8),
            ("request_id", Text),
            ("sale_id", Utf8),
            ("amount_cents", Is),
            ("currency", Is),
            ("state", Is),
            ("reason", Is),
            ("created_at", Text),
            ("state_at", Text),
        ],
        units: Some("amount_cents"),
        stays: true,
        ..plain("payments", "payments t", "t.payment_id")
    },
    ArchiveTable {
        sections: Sections::BySeries,
        columns: &[
            ("request_id", Text),
            ("kind", Is),
            ("reason", Is),
            ("sale_id", Utf8),
            ("shard", Is),
            ("epoch", Is),
            ("number", Text),
            ("payload_hash", Hex),
            ("created_at", Text),
        ],
        ..plain("request_outcome", "request_outcome t", "t.number")
    },
    ArchiveTable {
        text: true,
        columns: &[
            ("sale_id", Utf8),
            ("product_id", Is),
            ("title", Is),
            ("price_cents", Is),
            ("currency", Is),
            ("granted", Is),
            ("stock", Is),
            ("per_user_limit", Is),
            ("token_required", Is),
            ("waiting_room", Is),
            ("pay_within_s", Is),
            ("pay_grace_s", Is),
            ("limit_returns", Is),
            ("starts_at", Text),
            ("ends_at", Text),
            ("status", Is),
            ("epoch", Is),
            ("hidden", Is),
            ("version", Is),
            ("closings", Is),
            ("drop_id", Utf8),
            ("needs", Is),
            ("limit_by", Is),
            ("challenge", Is),
            ("created_at", Text),
        ],
        units: Some("stock"),
        ..plain("sales", "sales t", "t.sale_id")
    },
];

/// A table that is walked along a key of its own.
const fn plain(name: &'static str, from: &'static str, key: &'static str) -> ArchiveTable {
    let (spine, sections, stays) = (from, Sections::Whole, false);
    ArchiveTable { name, spine, from, of: "t", sections, key, text: false, columns: &[], units: None, stays }
}

impl ArchiveTable {
    /// The names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// The file of its rows.
    #[must_use]
    pub(crate) fn file(&self) -> String {
        format!("{}.jsonl", self.name)
    }
}
