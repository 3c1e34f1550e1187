//! Purchases that are refused.

use crate::support::world::World;
use seckill::domain::ids::SaleId;

/// A purchase is refused with this status and code; if it may be repeated, the answer says when.
pub async fn refused(world: &World, sale: &SaleId, status: u16, code: &str) {
    let answer = world.buy(sale, "nobody", 1, None).await;
    assert_eq!((answer.status, answer.code().as_str()), (status, code), "{answer:?}");
    let retry = matches!(status, 423 | 425 | 503);
    assert_eq!(!answer.header("retry-after").is_empty(), retry, "{answer:?}");
}
