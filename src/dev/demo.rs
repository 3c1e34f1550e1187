//! The demo sale of a local stack: one per user, open from the start, for a week. Its orders have to be paid within two minutes,
//! so that a visitor sees a unit come back.
//!
//! A crash here leaves a sale that is created and not warmed; the next start warms it.

use super::stack_plan::StackError;
use crate::config::Settings;
use crate::domain::ids::SaleId;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::PurchasePolicy;
use crate::domain::sale::{Sale, SaleStatus};
use crate::roles::Servers;
use crate::runtime::now_ms;
use crate::sales::rows::error::SaleError;
use std::time::Duration;

/// The demo sale's id.
pub(crate) const DEMO_SALE: &str = "demo";
/// Units of the demo sale.
const DEMO_STOCK: i64 = 1_000;
/// The demo sale runs this long.
const DEMO_MS: i64 = 7 * 86_400_000;
/// Time to pay. A visitor whose order ended unpaid may buy again.
const DEMO_PAYMENT: PaymentTerms = PaymentTerms { pay_within_s: 120, pay_grace_s: 5, limit_returns: true };
/// Redis must be connected within this time after its server answers.
const CONNECT: Duration = Duration::from_secs(10);

/// Creates and warms the demo sale, or finds it there.
pub(super) async fn create(settings: &Settings) -> Result<(), StackError> {
    let servers = Servers::new(settings)?;
    let bad = |error: crate::domain::ids::IdError| StackError::NotReady(error.to_string());
    let sale_id = SaleId::parse(DEMO_SALE).map_err(bad)?;
    let sale = Sale {
        sale_id: sale_id.clone(),
        product_id: "demo-phone".to_owned(),
        title: "Demo phone / 演示手机".to_owned(),
        price_cents: 199_900,
        currency: "CNY".to_owned(),
        granted: DEMO_STOCK,
        stock: DEMO_STOCK,
        policy: PurchasePolicy::OnePerUser,
        token_required: false,
        waiting_room: false,
        payment: Some(DEMO_PAYMENT),
        starts_at_ms: now_ms() - 1_000,
        ends_at_ms: now_ms() + DEMO_MS,
        status: SaleStatus::Draft,
        epoch: 1,
        hidden: false,
        version: 1,
    };
    match servers.rows.sales.create(&sale).await {
        Ok(()) | Err(SaleError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    if !servers.redis.wait_connected(CONNECT).await {
        return Err(StackError::NotReady("redis does not answer".to_owned()));
    }
    servers.sale_control(settings).warm(&sale_id).await?;
    servers.redis.quit().await;
    Ok(())
}
