//! What an audit can find wrong. Values only.

use crate::domain::ids::RequestId;
use crate::domain::states::P5Reconcile;
use serde::Serialize;

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FindingKind {
    /// An accepted request older than the window without an outcome.
    Leak,
    /// More orders than granted units.
    OverSell,
    /// The database decided requests that Redis does not know.
    Orphan,
    /// The sale was warmed and Redis lacks keys of it.
    KeysLost,
    /// A ledger record cannot be read, or one is missing below the newest acceptance number.
    LedgerDamaged,
    /// An equation of the balance sheet does not hold.
    Unbalanced,
    /// Acceptance numbers without an outcome, and of unknown requests.
    Gap,
    /// Redis sold units that the database did not have: accepted requests ended SOLD_OUT.
    Refused,
    /// Redis has accepted requests of a sale that the database does not know, or knows as a draft.
    UnknownSale,
}

impl FindingKind {
    /// Every kind, in the order of the metrics.
    pub const ALL: [Self; 9] = [
        Self::Leak,
        Self::OverSell,
        Self::Orphan,
        Self::KeysLost,
        Self::LedgerDamaged,
        Self::Unbalanced,
        Self::Gap,
        Self::Refused,
        Self::UnknownSale,
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Leak => P5Reconcile::Leak.code(),
            Self::OverSell => P5Reconcile::OverSell.code(),
            Self::Orphan => P5Reconcile::Orphan.code(),
            Self::KeysLost => "KEYS_LOST",
            Self::LedgerDamaged => "LEDGER_DAMAGED",
            Self::Unbalanced => "UNBALANCED",
            Self::Gap => P5Reconcile::Gap.code(),
            Self::Refused => "REFUSED",
            Self::UnknownSale => "UNKNOWN_SALE",
        }
    }

    /// The state code of P5 that is counted for it, if there is one.
    #[must_use]
    pub(crate) const fn state(self) -> Option<P5Reconcile> {
        match self {
            Self::Leak => Some(P5Reconcile::Leak),
            Self::OverSell => Some(P5Reconcile::OverSell),
            Self::Orphan => Some(P5Reconcile::Orphan),
            Self::Gap => Some(P5Reconcile::Gap),
            Self::KeysLost | Self::LedgerDamaged | Self::Unbalanced | Self::Refused | Self::UnknownSale => None,
        }
    }
}

/// What makes two findings the same one; their words contain ages and counts, which change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::p5_reconcile) struct FindingKey {
    kind: FindingKind,
    request_id: Option<RequestId>,
    part: String,
}

impl FindingKey {
    pub(super) fn is_of(&self, kind: FindingKind) -> bool {
        self.kind == kind
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct AuditFinding {
    /// What kind of thing.
    #[schema(value_type = String, example = "LEAK")]
    pub kind: FindingKind,
    /// The request it is about, if it is about one.
    #[schema(value_type = Option<String>)]
    pub request_id: Option<RequestId>,
    /// Words for an operator.
    pub detail: String,
    /// Which of several of its kind: the equation, the shard, the numbers, the grant. Empty: the sale can have one of
    /// the kind, or one for each request.
    #[serde(skip)]
    pub(super) part: String,
}

impl AuditFinding {
    pub(super) fn key(&self) -> FindingKey {
        FindingKey { kind: self.kind, request_id: self.request_id, part: self.part.clone() }
    }
}

/// The findings of an audit under way, up to a bound.
#[derive(Debug)]
pub(super) struct FoundSoFar {
    pub list: Vec<AuditFinding>,
    /// Findings that had no room.
    pub left_out_count: u64,
    most: usize,
}

impl FoundSoFar {
    pub(super) const fn new(most: usize) -> Self {
        Self { list: Vec::new(), left_out_count: 0, most }
    }

    /// Adds a finding of which the sale, or the request, can have one.
    pub(super) fn add(&mut self, kind: FindingKind, request_id: Option<RequestId>, detail: String) {
        self.push(AuditFinding { kind, request_id, detail, part: String::new() });
    }

    /// Adds a finding of which the sale can have several: `part` says which one it is, the same in each audit.
    pub(super) fn add_part(&mut self, kind: FindingKind, part: impl Into<String>, detail: String) {
        self.push(AuditFinding { kind, request_id: None, detail, part: part.into() });
    }

    fn push(&mut self, finding: AuditFinding) {
        if self.list.len() < self.most {
            self.list.push(finding);
        } else {
            self.left_out_count += 1;
        }
    }
}
