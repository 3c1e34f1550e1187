//! Why the database did not create or change a sale: what commands, the admin API and the warm-up pass on.

use crate::domain::grant_names::reserved;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::sale::SaleStatus;
use crate::store::mysql::fault::DbError;

/// Why a sale was not created or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaleError {
    /// The id is taken.
    #[error("sale {0} exists already, choose another id")]
    Exists(SaleId),
    /// The id of the drop is taken.
    #[error("drop {0} exists already, choose another id")]
    DropExists(DropId),
    /// The id was that of a sale that was archived.
    #[error("sale {0} was archived, and its id is not given again; choose another id")]
    Archived(SaleId),
    /// There is no such sale.
    #[error("there is no sale {0}, see `seckill sale list`")]
    Unknown(SaleId),
    /// The grant id was used for another quantity.
    #[error("grant {0} exists already with another quantity")]
    GrantConflict(String),
    /// The grant's name is one of those that the system gives.
    #[error(
        "grant {0} has a name that the system gives itself; do not begin it with {names}",
        names = reserved(", ", " or ")
    )]
    GrantReserved(String),
    /// Units are to be offered again that the database does not have.
    #[error(
        "sale {0} has fewer unsold units than its failures would give back; nothing was offered, see seckill audit --sale {0}"
    )]
    BooksDisagree(SaleId),
    /// The name of a withdrawal was used, and this field was another one then.
    #[error("a withdrawal named {0} exists already with another value of {1}; choose another name")]
    WithdrawalConflict(String, &'static str),
    /// Units move within a drop only.
    #[error("units move between sales of one drop, and {0} and {1} are not")]
    OtherDrop(SaleId, SaleId),
    /// Redis had unsold units that the database does not have.
    #[error(
        "sale {0} has fewer unsold units in the database than redis gave; the withdrawal stays open, see seckill audit --sale {0}"
    )]
    UnsoldDisagree(SaleId),
    /// The grant would pass [`crate::domain::sale::STOCK_MAX`].
    #[error("sale {0} would have more units than a sale may have")]
    TooMuch(SaleId),
    /// Its status does not allow the change, perhaps because of a change a moment ago.
    #[error("sale {0} is {now} by now, nothing was changed", now = .1.code())]
    Status(SaleId, SaleStatus),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<diesel::result::Error> for SaleError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Db(error.into())
    }
}
