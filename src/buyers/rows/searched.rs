//! Every text in the database, and whether it can name a buyer. A test compares it with `information_schema`: a new column must be
//! thought of.

use crate::buyers::rows::forgotten::ForgottenRows;
use crate::buyers::spelling::Spelling::{self, Body, Whole, Words};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::rights::DENIED;
use diesel_async::SimpleAsyncConnection;

/// A column that can name a buyer.
#[derive(Debug, Clone, Copy)]
pub struct NamingColumn {
    /// Its name.
    pub name: &'static str,
    /// Which rows it names a buyer in, as a condition; `TRUE`: any.
    pub(crate) when: &'static str,
    /// How it names a buyer.
    pub spelling: Spelling,
    /// It is text, and at most this long, characters; `None`: bytes, of any length.
    pub chars_max: Option<usize>,
}

/// How the rows are found that name a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// Page by page along this key, a number.
    Number(&'static str),
    /// The same along this key, bytes.
    Bytes(&'static str),
    /// By statements of their own.
    Own,
    /// Not at all: rows stay for a moment, and nothing is forgotten while one is there.
    Waits(&'static str),
    /// Nothing in it names a buyer.
    Nowhere,
}

/// A table with its texts.
#[derive(Debug, Clone, Copy)]
pub struct SearchedTable {
    /// Its name.
    pub name: &'static str,
    /// How rows are found.
    pub walk: Walk,
    /// Columns that can name a buyer.
    pub naming: &'static [NamingColumn],
    /// The other texts.
    pub others: &'static [&'static str],
}

const fn whole(name: &'static str) -> NamingColumn {
    NamingColumn { name, when: "TRUE", spelling: Whole, chars_max: None }
}

const fn body(name: &'static str) -> NamingColumn {
    NamingColumn { name, when: "TRUE", spelling: Body, chars_max: None }
}

const fn words(name: &'static str, chars_max: usize) -> NamingColumn {
    NamingColumn { name, when: "TRUE", spelling: Words, chars_max: Some(chars_max) }
}

/// The object of an act.
const TARGET: NamingColumn =
    NamingColumn { name: "target_id", when: "target_type = 'buyer'", spelling: Whole, chars_max: Some(128) };

/// Far more than a MEDIUMTEXT holds of characters that need one byte: the database refuses what is too long.
const TEXT_MAX: usize = 16_777_215;

const fn walked(
    name: &'static str,
    walk: Walk,
    naming: &'static [NamingColumn],
    others: &'static [&'static str],
) -> SearchedTable {
    SearchedTable { name, walk, naming, others }
}

const fn without(name: &'static str, others: &'static [&'static str]) -> SearchedTable {
    walked(name, Walk::Nowhere, &[], others)
}

use Walk::{Bytes, Number, Own, Waits};

/// Every table. Operators' names are no buyers.
pub const SEARCHED: [SearchedTable; 30] = [
    walked(
        "orders",
        Number("request_id"),
        // No index has the persons: their rows are walked.
        &[words("cancel_reason", 1000), whole("person")],
        &["sale_id", "source", "cancelled_by", "state"],
    ),
    // The buyer of an order, along the index of buyers.
    walked("orders", Own, &[whole("user_id"), whole("one_per_user_id")], &[]),
    walked("purchases", Own, &[whole("user_id")], &["sale_id"]),
    walked("drop_purchases", Own, &[whole("user_id")], &["drop_id"]),
    walked("stock_grants", Own, &[body("buyers")], &["sale_id", "grant_id", "kind"]),
    walked("forgotten_buyers", Own, &[whole("user_id"), words("reason", 200)], &["pseudonym", "state", "asked_by"]),
    walked("blocked_buyers", Bytes("user_id"), &[words("reason", 200)], &[]),
    // The block itself lasts as long as the work does.
    walked("blocked_buyers", Own, &[whole("user_id")], &[]),
    walked(
        "failed_request",
        Number("request_id"),
        &[whole("user_id"), whole("person"), words("detail", 1000), body("payload")],
        &["sale_id", "source", "reason", "status", "resolved_by", "reclaimed_by"],
    ),
    walked(
        "webhook_deliveries",
        Number("delivery_id"),
        &[body("body"), words("problem", 255)],
        &["webhook", "event_key", "state"],
    ),
    walked(
        "operator_acts",
        Number("act_id"),
        &[TARGET, words("reason", 1000), words("before_json", TEXT_MAX), words("after_json", TEXT_MAX)],
        &[
            "actor_kind",
            "actor_id",
            "actor_name",
            "roles",
            "auth_method",
            "ip",
            "action",
            "target_type",
            "sale_id",
            "outcome",
            "code",
            "request_id",
        ],
    ),
    walked("audit_runs", Number("run_id"), &[words("sheet", 65_535)], &["sale_id"]),
    walked("audit_findings", Number("finding_id"), &[words("detail", 1000)], &["sale_id", "code"]),
    walked(
        "closed_findings",
        Number("closure_id"),
        &[words("reason", 1000)],
        &["sale_id", "code", "closed_by", "reclaimed_by"],
    ),
    walked("outcome_event", Waits("request_id"), &[body("body")], &["event_key"]),
    walked("order_events", Waits("event_id"), &[body("body")], &["event_key"]),
    // The fingerprint of a request is none of these texts: docs/decisions.md says why it stays.
    without("request_outcome", &["kind", "reason", "sale_id", "payload_hash"]),
    without(
        "sales",
        &[
            "sale_id",
            "product_id",
            "title",
            "currency",
            "status",
            "drop_id",
            "needs",
            "limit_by",
            "challenge",
            "line_kind",
        ],
    ),
    without("drops", &["drop_id", "title", "sale_ids"]),
    without("stock_flow", &["sale_id", "kind", "ref"]),
    without("stock_withdrawals", &["sale_id", "name", "moves_to"]),
    without("sale_epochs", &["sale_id"]),
    without("archived_sales", &["sale_id", "title", "manifest", "archived_by"]),
    without("payments", &["payment_id", "sale_id", "currency", "state", "reason"]),
    without("webhook_subscriptions", &["webhook", "events"]),
    without("sale_releases", &["sale_id"]),
    without("sale_rollovers", &["sale_id", "moves_to"]),
    without("sale_announcements", &["sale_id", "state"]),
    walked(
        "line_entries",
        Own,
        &[whole("user_id"), whole("person"), whole("limit_key")],
        &["sale_id", "state", "lapse_reason"],
    ),
    without("sale_lines", &["sale_id", "kind", "state", "commitment", "seed", "beacon", "digest"]),
];

impl ForgottenRows {
    /// Updates that the account of this process may not make, as `operator_acts.reason`. The account that sells cannot change what people
    /// did: forgetting has one of its own.
    ///
    /// # Errors
    /// [`DbError`].
    pub(crate) async fn missing_rights(&self) -> Result<Vec<String>, DbError> {
        let mut updates: Vec<(String, String)> = Vec::new();
        for table in SEARCHED.iter().filter(|table| !matches!(table.walk, Walk::Waits(_))) {
            for column in table.naming {
                let update = format!("EXPLAIN UPDATE {0} SET {1} = {1} WHERE 1 = 0", table.name, column.name);
                updates.push((format!("{}.{}", table.name, column.name), update));
            }
        }
        self.db
            .run("forget_rights", async |conn| {
                let mut missing = Vec::new();
                for (column, update) in &updates {
                    // A refusal leaves the connection in step; other errors of a statement do not matter here.
                    if let Err(error) = conn.batch_execute(update).await
                        && error.to_string().contains(DENIED)
                    {
                        missing.push(column.clone());
                    }
                }
                Ok(missing)
            })
            .await
    }
}
