//! Why what was asked of a sale was not done; the texts say what to do next.
//!
//! Input: what the database, Redis or a rule said. Output: the error of every verb of [`SaleControl`](super::SaleControl). Values only.

use super::sale_change::ChangeRefusal;
use crate::domain::fault::MayBeOutage;
use crate::domain::ids::{DropId, SaleId};
use crate::sales::rows::error::SaleError;
use crate::store::mysql::DbError;
use crate::store::redis::RedisFault;

/// Why a sale could not be warmed or changed; the text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum SaleControlError {
    /// No such sale.
    #[error("there is no sale {0}; see seckill sale list")]
    NoSuchSale(SaleId),
    /// No such drop.
    #[error("there is no drop {0}")]
    NoSuchDrop(DropId),
    /// Its drop closes as a whole: what buyers have in it counts for the other sales as long as one of them sells.
    #[error("sale {0} belongs to drop {1}, whose sales are closed together; pause it, or close the drop")]
    OfDrop(SaleId, DropId),
    /// It is closed for good.
    #[error("sale {0} is closed; a closed sale is not opened again, create another one")]
    Closed(SaleId),
    /// It has to be warmed first.
    #[error("sale {0} has not been warmed; run seckill sale warm {0} first")]
    NotWarmed(SaleId),
    /// Nothing of a draft is on sale.
    #[error("sale {0} is a draft: nothing of it is on sale; close it, and create another one with fewer units")]
    Draft(SaleId),
    /// Redis lost keys of a sale that was warmed.
    #[error("redis has lost keys of sale {0}; it stays closed until it is rebuilt from the database")]
    KeysLost(SaleId),
    /// It was warmed for another number of shards.
    #[error(
        "sale {0} was warmed with redis.shards = {1}, this process has {2}; the number cannot change while a sale lives, set it back"
    )]
    OtherShards(SaleId, u16, u16),
    /// Redis has the sale frozen.
    #[error("sale {0} is frozen; it opens again after the reconciler has rebuilt it")]
    Frozen(SaleId),
    /// The change is not one that may be made now.
    #[error(transparent)]
    Refused(#[from] ChangeRefusal),
    /// The database has the change, and Redis could not be changed.
    #[error(
        "sale {0} is changed in the database, and redis could not be changed: {1}; it follows by itself within seconds of its return"
    )]
    NotFollowed(SaleId, RedisFault),
    /// Redis did not answer, or refused.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The database's own word on the sale.
    #[error(transparent)]
    Sale(#[from] SaleError),
    /// Done, and the act has no row in `operator_acts`.
    #[error("it was done, and who did it could not be written down: {0}; do it again, which changes nothing else")]
    NotRecorded(DbError),
}

impl SaleControlError {
    /// Whether what was asked for may have been done, in whole or in part. Otherwise nothing of it was.
    pub(crate) const fn leaves_open(&self) -> bool {
        match self {
            Self::KeysLost(_)
            | Self::Frozen(_)
            | Self::NotFollowed(..)
            | Self::Redis(_)
            | Self::Database(_)
            | Self::Sale(SaleError::Db(_) | SaleError::UnsoldDisagree(_))
            | Self::NotRecorded(_) => true,
            Self::NoSuchSale(_)
            | Self::NoSuchDrop(_)
            | Self::OfDrop(..)
            | Self::Closed(_)
            | Self::NotWarmed(_)
            | Self::Draft(_)
            | Self::OtherShards(..)
            | Self::Refused(_)
            | Self::Sale(
                SaleError::Exists(_)
                | SaleError::DropExists(_)
                | SaleError::Archived(_)
                | SaleError::GrantConflict(_)
                | SaleError::BooksDisagree(_)
                | SaleError::WithdrawalConflict(..)
                | SaleError::OtherDrop(..)
                | SaleError::Status(..)
                | SaleError::Unknown(_)
                | SaleError::TooMuch(_)
                | SaleError::GrantReserved(_),
            ) => false,
        }
    }
}

impl MayBeOutage for SaleControlError {
    fn is_outage(&self) -> bool {
        let of_redis = matches!(self, Self::Redis(error) | Self::NotFollowed(_, error) if error.is_outage());
        of_redis
            || matches!(self, Self::Database(error) | Self::NotRecorded(error) | Self::Sale(SaleError::Db(error)) if error.is_outage())
    }
}
