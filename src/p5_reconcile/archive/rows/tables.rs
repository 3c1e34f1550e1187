//! Where the rows of a sale lie.

use super::table::As::{Hex, Is, Text, Utf8};
use super::table::{ArchiveTable, Sections, plain};

/// Every table, in the order in which its rows are removed: what refers to something before that. `sales` is the last one. Payments
/// stay: a provider may report one again, and one that is reported during the removal may have to go back.
pub const TABLES: [ArchiveTable; 15] = [
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
    LINE_ENTRIES,
    SALE_LINES,
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
            ("line_kind", Is),
            ("by_line", Is),
            ("created_at", Text),
        ],
        units: Some("stock"),
        ..plain("sales", "sales t", "t.sale_id")
    },
];

/// Entries of its line.
const LINE_ENTRIES: ArchiveTable = ArchiveTable {
    columns: &[
        ("sale_id", Utf8),
        ("entry_id", Text),
        ("user_id", Utf8),
        ("person", Utf8),
        ("limit_key", Utf8),
        ("quantity", Is),
        ("entry_rank", Is),
        ("state", Is),
        ("listed", Is),
        ("request_id", Text),
        ("lapse_reason", Is),
        ("entered_at", Text),
        ("state_at", Text),
    ],
    units: Some("quantity"),
    ..plain("line_entries", "line_entries t", "t.entry_id")
};

/// Its line, with the seed.
const SALE_LINES: ArchiveTable = ArchiveTable {
    text: true,
    columns: &[
        ("sale_id", Utf8),
        ("kind", Is),
        ("state", Is),
        ("opens_at", Text),
        ("closes_at", Text),
        ("needs_beacon", Is),
        ("commitment", Hex),
        ("seed", Hex),
        ("beacon", Is),
        ("entries_count", Text),
        ("last_rank", Is),
        ("reached_rank", Is),
        ("digest", Hex),
        ("closed_at", Text),
        ("sealed_at", Text),
        ("drawn_at", Text),
    ],
    ..plain("sale_lines", "sale_lines t", "t.sale_id")
};
