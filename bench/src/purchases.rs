//! Purchases as the entry makes them, for measurements without HTTP.

use seckill::cli::Failure;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::policy::Quantity;
use seckill::domain::request::Purchase;

/// A purchase of buyer `number`; its request id is far below any that the entry makes.
pub(super) fn purchase(sale: &SaleId, number: u64) -> Result<Purchase, Failure> {
    purchase_by(sale, number, number)
}

/// The same of another buyer.
pub(super) fn purchase_by(sale: &SaleId, number: u64, buyer: u64) -> Result<Purchase, Failure> {
    let user = UserId::parse(&crate::loadgen::buyer_name(buyer)).map_err(|error| Failure::Failed(error.to_string()))?;
    let id = RequestId::new(number).ok_or_else(|| Failure::Failed("request ids begin at 1".to_owned()))?;
    Ok(Purchase { request_id: id, sale_id: sale.clone(), user_id: user, person: None, quantity: Quantity::ONE })
}
