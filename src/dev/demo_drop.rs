//! The demo drop of a local stack: a shoe in four sizes, one pair a buyer over all of them. Members buy one size first, one size gets
//! more units later, and one has few.
//!
//! Input: handles on the servers. Output: the drop, with its sales warmed, or as it was found. A crash here leaves a drop with drafts;
//! the next start warms them.

use super::stack_plan::StackError;
use crate::domain::ids::DropId;
use crate::domain::operator::Actor;
use crate::domain::order_life::PaymentTerms;
use crate::domain::sale::SaleStatus;
use crate::http::times::shown_time;
use crate::roles::Servers;
use crate::runtime::now_ms;
use crate::sales::SaleControl;
use crate::sales::forms::NewDropForm;
use serde_json::{Value, json};

const DEMO_DROP: &str = "demo-drop";
/// Members buy their size for this long before the others.
const MEMBERS_MS: i64 = 15 * 60_000;
/// More units of a size come after this time.
const RELEASE_MS: i64 = 10 * 60_000;

/// Creates the drop where there is none, for `lasts_ms` from now, and warms what is a draft.
pub(super) async fn create(
    servers: &Servers,
    control: &SaleControl,
    lasts_ms: i64,
    payment: PaymentTerms,
) -> Result<(), StackError> {
    let id = DropId::parse(DEMO_DROP).map_err(|error| StackError::NotReady(error.to_string()))?;
    if servers.rows.sales.drop_of(&id).await?.is_none() {
        let form: Result<NewDropForm, _> = serde_json::from_value(file(now_ms(), lasts_ms, payment));
        let form = form.map_err(|error| StackError::NotReady(format!("demo drop: {error}")))?;
        let (drop, sales) = form.drafts().map_err(|bad| StackError::NotReady(format!("demo drop: {bad}")))?;
        control.create_drop(&Actor::at_the_terminal("local stack"), &drop, &sales).await?;
    }
    for sale in control.drop_with_sales(&id).await?.1 {
        if sale.status == SaleStatus::Draft {
            control.warm(&sale.sale_id).await?;
        }
    }
    Ok(())
}

/// What `seckill drop create` would take.
fn file(now_ms: i64, lasts_ms: i64, payment: PaymentTerms) -> Value {
    let starts = now_ms - 1_000;
    let members_end = starts + MEMBERS_MS;
    let sale = |id: &str, title: &str, stock: u32, more: Value| {
        let mut sale = json!({
            "sale_id": id, "product_id": "demo-sneaker", "title": title, "stock": stock,
            "price_cents": 89_900, "currency": "CNY",
            "starts_at": shown_time(starts), "ends_at": shown_time(now_ms + lasts_ms),
            "pay_within_s": payment.pay_within_s, "pay_grace_s": payment.pay_grace_s,
            "limit_returns": payment.limit_returns,
        });
        if let (Some(sale), Value::Object(more)) = (sale.as_object_mut(), more) {
            sale.extend(more);
        }
        sale
    };
    let members =
        json!({ "ends_at": shown_time(members_end), "needs": { "tier": ["gold"] }, "rollover_to": "demo-41" });
    let later = json!({ "releases": [{ "at": shown_time(now_ms + RELEASE_MS), "units": 20 }] });
    json!({
        "drop_id": DEMO_DROP, "title": "Demo sneaker / 演示球鞋", "limit": 1,
        "sales": [
            sale("demo-40", "EU 40", 40, json!({})),
            sale("demo-41-gold", "EU 41 · gold", 10, members),
            sale("demo-41", "EU 41", 40, json!({ "starts_at": shown_time(members_end) })),
            sale("demo-42", "EU 42", 2, later),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_demo_drop_makes_one() {
        let payment = PaymentTerms { pay_within_s: 120, pay_grace_s: 5, limit_returns: true };
        let form: NewDropForm = serde_json::from_value(file(1_800_000_000_000, 86_400_000, payment)).unwrap();
        let (drop, sales) = form.drafts().unwrap();
        assert_eq!((drop.sale_ids.len(), sales.len()), (4, 4));
        let plans = sales.iter().map(|(_, plan)| (plan.releases.len(), plan.rollover_to.is_some()));
        assert_eq!(plans.collect::<Vec<_>>(), [(0, false), (0, true), (0, false), (1, false)]);
        assert_eq!(sales.iter().filter(|(sale, _)| sale.needs.is_some()).count(), 1);
    }
}
