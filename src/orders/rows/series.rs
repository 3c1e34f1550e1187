//! The series of acceptance numbers of a sale, found at the ends of an index: what that costs does not depend on how large a sale is.
//!
//! Input: a sale. Output: text of statements.

use crate::domain::ids::SaleId;
use crate::store::mysql::values::literal;

/// `columns` of each series of a sale that has outcomes. One lookup for each series, however long: its highest number is at its end of
/// the index. Without the sale among the groups MariaDB reads every number of the sale.
pub(crate) fn ends_of_series(columns: &str, sale: &SaleId) -> String {
    let of_sale = of_sale(sale);
    format!("SELECT {columns} FROM request_outcome WHERE {of_sale} GROUP BY sale_id, shard, epoch")
}

/// The condition that a row is of this sale, for a search at the end of an index. MariaDB reads the whole sale where it says "=", and
/// MySQL (9.7) where the bounds are parameters.
pub(crate) fn of_sale(sale: &SaleId) -> String {
    let named = literal(sale.as_str().as_bytes());
    format!("sale_id >= {named} AND sale_id <= {named}")
}
