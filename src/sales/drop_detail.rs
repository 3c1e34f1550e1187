//! A drop as operators see it: what its file says, and how far each of its sales is.

use super::control::SaleControl;
use super::control_error::SaleControlError;
use crate::domain::drops::SalesDrop;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::sale::{Sale, SaleStatus};
use crate::http::times::shown_time;
use crate::sales::forms::PAY_GRACE_S;
use serde::Serialize;
use std::num::NonZeroU32;

/// A drop; all but `progress` is what its file may say.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct DropDetail {
    #[schema(value_type = String, example = "sneaker")]
    pub(crate) drop_id: DropId,
    pub(crate) title: String,
    /// Most units of one buyer over all its sales; null: no limit.
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub(crate) limit: Option<NonZeroU32>,
    /// In the order in which they are shown.
    sales: Vec<DropSale>,
    /// The same sales, as far as they are. A sale whose rows are removed is in neither list.
    pub(crate) progress: Vec<SaleProgress>,
}

/// A sale as the file of its drop says it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
struct DropSale {
    #[schema(value_type = String)]
    sale_id: SaleId,
    product_id: String,
    title: String,
    /// Units granted by now.
    stock: i64,
    /// Most units of one buyer in this sale; null: no limit.
    limit: Option<u32>,
    price_cents: i64,
    currency: String,
    #[schema(format = DateTime)]
    starts_at: String,
    #[schema(format = DateTime)]
    ends_at: String,
    token_required: bool,
    waiting_room: bool,
    /// Seconds that a buyer has to pay; null: there is no payment step.
    pay_within_s: Option<u32>,
    pay_grace_s: u32,
    limit_returns: bool,
    hidden: bool,
}

/// How far a sale is.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct SaleProgress {
    #[schema(value_type = String)]
    pub(crate) sale_id: SaleId,
    /// draft, warmed, paused or closed.
    #[schema(value_type = String, example = "warmed")]
    pub(crate) status: SaleStatus,
    pub(crate) granted: i64,
    /// Units of which the database has no order.
    pub(crate) unsold: i64,
    version: u32,
}

impl DropSale {
    fn of(sale: &Sale) -> Self {
        Self {
            sale_id: sale.sale_id.clone(),
            product_id: sale.product_id.clone(),
            title: sale.title.clone(),
            stock: sale.granted,
            limit: sale.policy.limit(),
            price_cents: sale.price_cents,
            currency: sale.currency.clone(),
            starts_at: shown_time(sale.starts_at_ms),
            ends_at: shown_time(sale.ends_at_ms),
            token_required: sale.token_required,
            waiting_room: sale.waiting_room,
            pay_within_s: sale.payment.map(|terms| terms.pay_within_s),
            pay_grace_s: sale.payment.map_or(PAY_GRACE_S, |terms| terms.pay_grace_s),
            limit_returns: sale.payment.is_some_and(|terms| terms.limit_returns),
            hidden: sale.hidden,
        }
    }
}

impl SaleProgress {
    fn of(sale: &Sale) -> Self {
        let Sale { status, granted, stock, version, .. } = *sale;
        Self { sale_id: sale.sale_id.clone(), status, granted, unsold: stock, version }
    }
}

impl DropDetail {
    fn of(drop: SalesDrop, sales: &[Sale]) -> Self {
        let SalesDrop { drop_id, title, limit, .. } = drop;
        let progress = sales.iter().map(SaleProgress::of).collect();
        Self { drop_id, title, limit, sales: sales.iter().map(DropSale::of).collect(), progress }
    }
}

/// A drop in a list.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct DropSummary {
    #[schema(value_type = String)]
    pub(crate) drop_id: DropId,
    pub(crate) title: String,
    /// Most units of one buyer over all its sales; null: no limit.
    #[schema(value_type = Option<u32>)]
    pub(crate) limit: Option<NonZeroU32>,
    /// In the order in which they are shown.
    #[schema(value_type = Vec<String>)]
    pub(crate) sale_ids: Vec<SaleId>,
}

impl SaleControl {
    /// The newest drops, a thousand at most.
    pub(crate) async fn drops(&self) -> Result<Vec<DropSummary>, SaleControlError> {
        let summary = |SalesDrop { drop_id, title, limit, sale_ids }| DropSummary { drop_id, title, limit, sale_ids };
        Ok(self.rows.sales.newest_drops().await?.into_iter().map(summary).collect())
    }

    /// A drop with its sales.
    pub(crate) async fn drop_detail(&self, id: &DropId) -> Result<DropDetail, SaleControlError> {
        let (drop, sales) = self.drop_with_sales(id).await?;
        Ok(DropDetail::of(drop, &sales))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::order_life::PaymentTerms;
    use crate::sales::forms::NewDropForm;

    #[test]
    fn what_is_shown_of_a_drop_is_a_file_that_makes_the_same_one() {
        let sale_ids = ["m", "l"].map(|id| SaleId::parse(id).unwrap());
        let drop_id = DropId::parse("d").unwrap();
        let drop = SalesDrop { drop_id, title: "t".into(), limit: NonZeroU32::new(2), sale_ids: sale_ids.to_vec() };
        let sales = sale_ids.map(|id| Sale {
            payment: (id.as_str() == "l").then_some(PaymentTerms {
                pay_within_s: 600,
                pay_grace_s: 5,
                limit_returns: true,
            }),
            hidden: true,
            in_drop: Some(drop.clone().into()),
            ..Sale::draft(id, 5, 1_000, 2_000)
        });
        let mut shown = serde_json::to_value(DropDetail::of(drop.clone(), &sales)).unwrap();
        assert_eq!(shown["progress"][0]["unsold"], 5);
        shown.as_object_mut().unwrap().remove("progress");
        let form: NewDropForm = serde_json::from_value(shown).unwrap();
        assert_eq!(form.drafts().unwrap(), (drop, sales.to_vec()));
    }
}
