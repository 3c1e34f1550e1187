//! Why a sale was not archived.

use crate::domain::ids::SaleId;
use crate::p5_reconcile::archive::rows::ArchiveSum;
use crate::p5_reconcile::context::ReconcileError;
use crate::store::mysql::DbError;
use std::path::PathBuf;

/// Why a sale was not archived; the text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// No such sale.
    #[error("there is no sale {0}; see seckill sale list")]
    NoSuchSale(SaleId),
    /// It was archived and removed before.
    #[error("sale {0} was archived before; its rows are in the export whose manifest.json has the SHA-256 {1}")]
    Gone(SaleId, String),
    /// Its removal has begun, so it cannot be exported again.
    #[error(
        "sale {0} is being removed; go on with --remove and the folder of the export whose manifest.json has the SHA-256 {1}"
    )]
    HalfGone(SaleId, String),
    /// It still sells, or may sell again.
    #[error("sale {0} is {1}, only a closed sale is archived; run seckill sale close {0} first")]
    NotClosed(SaleId, &'static str),
    /// Redis still has its keys.
    #[error(
        "redis still has sale {0}: p5 removes a closed sale when all of it is settled and p5_reconcile.ledger_retention_s is over; wait for that, seckill audit --sale {0} says what is open"
    )]
    InRedis(SaleId),
    /// The audit found something.
    #[error("sale {0} does not add up, {1}; seckill audit --now --sale {0} has all of it, repair that first")]
    Inconsistent(SaleId, String),
    /// Failed requests are open.
    #[error("failed requests of sale {0} are open; replay them or give them up first, see seckill dlq list")]
    Open(SaleId),
    /// Orders of this many units wait for their payment: one that came later would meet no order.
    #[error(
        "orders of {1} units of sale {0} wait for their payment; wait until they are paid or have expired, or cancel them, see seckill order list --sale {0} --state UNPAID"
    )]
    Unpaid(SaleId, i64),
    /// Money of this many payments has to go back; the orders that it was for would be gone.
    #[error(
        "money of sale {0} has to go back ({1} payments); send it back and say so first, see seckill order refunds --sale {0}"
    )]
    RefundsNeeded(SaleId, i64),
    /// Units of it are still to leave it, or to come to it.
    #[error("a withdrawal or a move of units of sale {0} has not ended; p5 ends it within a round, try again then")]
    Withdrawing(SaleId),
    /// The files and the database differ.
    #[error(
        "{table} of sale {sale_id}: {filed:?} in {file}, {counted:?} in the database; one of them was changed, delete the folder and export again"
    )]
    Differs {
        /// The sale that was compared.
        sale_id: SaleId,
        /// The table with the difference.
        table: &'static str,
        /// The file of the table.
        file: PathBuf,
        /// Rows and units of the file.
        filed: ArchiveSum,
        /// Rows and units of the database.
        counted: ArchiveSum,
    },
    /// The files are not those of the manifest.
    #[error("{0} is not what its manifest says; take another copy of the folder, or delete it and export again")]
    Damaged(PathBuf),
    /// There is no export.
    #[error("{0} has no export of the sale; run it without --remove first")]
    NoExport(PathBuf),
    /// The sale was changed after it was exported.
    #[error("sale {0} was changed meanwhile and nothing was removed; delete the folder and export again")]
    Changed(SaleId),
    /// A file could not be written or read.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The audit could not be made.
    #[error(transparent)]
    Audit(#[from] ReconcileError),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
}
