//! Errors of the stores and of the work below, as problems of the admin API.

use crate::domain::new_sale::BadSale;
use crate::domain::sale_change::ChangeRefusal;
use crate::http::problem::{Kind, Problem};
use crate::p5_reconcile::ReconcileError;
use crate::p5_reconcile::dlq::DlqError;
use crate::p6_fulfil::BadForm;
use crate::sales::SaleControlError;
use crate::store::mysql::DbError;
use crate::store::mysql::sales::SaleError;

impl From<DbError> for Problem {
    fn from(error: DbError) -> Self {
        Kind::Unavailable.because(error.to_string())
    }
}

impl From<SaleError> for Problem {
    fn from(error: SaleError) -> Self {
        let kind = match &error {
            SaleError::Exists(_)
            | SaleError::Archived(_)
            | SaleError::GrantConflict(_)
            | SaleError::BooksDisagree(_)
            | SaleError::Status(..) => Kind::Conflict,
            SaleError::Unknown(_) => Kind::SaleNotFound,
            SaleError::TooMuch(_) | SaleError::GrantReserved(_) => Kind::Unprocessable,
            SaleError::Db(_) => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}

impl From<SaleControlError> for Problem {
    fn from(error: SaleControlError) -> Self {
        let kind = match error {
            SaleControlError::Sale(error) => return error.into(),
            SaleControlError::Refused(refusal) => return refusal.into(),
            SaleControlError::NoSuchSale(_) => Kind::SaleNotFound,
            SaleControlError::Closed(_)
            | SaleControlError::NotWarmed(_)
            | SaleControlError::KeysLost(_)
            | SaleControlError::OtherShards(..)
            | SaleControlError::Frozen(_) => Kind::Conflict,
            SaleControlError::Redis(_)
            | SaleControlError::NotFollowed(..)
            | SaleControlError::Database(_)
            | SaleControlError::NotRecorded(_) => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}

impl From<ChangeRefusal> for Problem {
    fn from(refusal: ChangeRefusal) -> Self {
        let kind = match &refusal {
            ChangeRefusal::Value(bad) => return (*bad).into(),
            ChangeRefusal::Closed
            | ChangeRefusal::StartSettled(_)
            | ChangeRefusal::Ended(_)
            | ChangeRefusal::OnSale
            | ChangeRefusal::Overtaken(_) => Kind::Conflict,
        };
        kind.because_both(refusal.to_string(), refusal.chinese())
    }
}

impl From<ReconcileError> for Problem {
    fn from(error: ReconcileError) -> Self {
        let kind = match &error {
            ReconcileError::OtherShards(..) => Kind::Conflict,
            ReconcileError::Redis(_) | ReconcileError::Database(_) | ReconcileError::Moved => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}

impl From<DlqError> for Problem {
    fn from(error: DlqError) -> Self {
        let kind = match &error {
            DlqError::Busy(_) => Kind::Conflict,
            DlqError::Redis(_) | DlqError::Database(_) | DlqError::Rabbit(_) => Kind::Unavailable,
        };
        kind.because(error.to_string())
    }
}

impl From<BadSale> for Problem {
    fn from(bad: BadSale) -> Self {
        Kind::Unprocessable.because_both(bad.to_string(), bad.in_chinese())
    }
}

impl From<BadForm> for Problem {
    fn from(bad: BadForm) -> Self {
        Kind::Unprocessable.because_both(bad.to_string(), format!("{}：应为{}", bad.field, bad.chinese))
    }
}
