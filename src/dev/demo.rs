//! The demo sale of a local stack: one per user, open from the start, for a week. Its orders have to be paid within two minutes,
//! so that a visitor sees a unit come back. Beside it the demo drop.
//!
//! A crash here leaves a sale that is created and not warmed; the next start warms it.

use super::demo_drop;
use super::stack_plan::StackError;
use crate::config::Settings;
use crate::domain::ids::SaleId;
use crate::domain::operator::Actor;
use crate::domain::order_life::PaymentTerms;
use crate::roles::Servers;
use crate::runtime::now_ms;
use crate::sales::SaleControlError;
use crate::sales::forms::NewSaleForm;
use crate::sales::rows::error::SaleError;
use chrono::DateTime;
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

/// Creates and warms the demo sale and the demo drop, or finds them there.
pub(super) async fn create(settings: &Settings) -> Result<(), StackError> {
    let servers = Servers::new(settings)?;
    let bad = |error: crate::domain::ids::IdError| StackError::NotReady(error.to_string());
    let sale_id = SaleId::parse(DEMO_SALE).map_err(bad)?;
    let time = |unix_ms| DateTime::from_timestamp_millis(unix_ms).unwrap_or_default();
    let new = NewSaleForm {
        id: sale_id.clone(),
        product: "demo-phone".to_owned(),
        title: "Demo phone / 演示手机".to_owned(),
        stock: DEMO_STOCK,
        limit: Some(1),
        price_cents: 199_900,
        currency: "CNY".to_owned(),
        starts_at: time(now_ms() - 1_000),
        ends_at: time(now_ms() + DEMO_MS),
        token_required: false,
        waiting_room: false,
        pay_within_s: Some(DEMO_PAYMENT.pay_within_s),
        pay_grace_s: DEMO_PAYMENT.pay_grace_s,
        limit_returns: DEMO_PAYMENT.limit_returns,
        hidden: false,
        warm: false,
        needs: None,
        limit_by: None,
        challenge: None,
        releases: Vec::new(),
        rollover_to: None,
        line: None,
        line_closes_at: None,
        line_beacon: false,
    };
    let control = servers.sale_control(settings);
    // One that is there is no failed act.
    if servers.rows.sales.get(&sale_id).await?.is_none() {
        let planned = new.plain().map_err(|bad| StackError::NotReady(bad.to_string()))?;
        match control.create(&Actor::at_the_terminal("local stack"), (&planned, false), || {}).await {
            Ok(()) | Err(SaleControlError::Sale(SaleError::Exists(_))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if !servers.redis.wait_connected(CONNECT).await {
        return Err(StackError::NotReady("redis does not answer".to_owned()));
    }
    control.warm(&sale_id).await?;
    demo_drop::create(&servers, &control, DEMO_MS, DEMO_PAYMENT).await?;
    servers.redis.quit().await;
    Ok(())
}
