//! A drop as operators see it: what its file says, and how far each of its sales is.

use super::control::SaleControl;
use super::control_error::SaleControlError;
use crate::domain::challenge::Challenge;
use crate::domain::drops::SalesDrop;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::line::LineKind;
use crate::domain::needs::Needs;
use crate::domain::policy::LimitBy;
use crate::domain::sale::{Sale, SaleStatus};
use crate::http::times::shown_time;
use crate::sales::forms::{PAY_GRACE_S, ReleaseForm, shown_releases};
use crate::sales::rows::timetable::KnownTimetable;
use serde::Serialize;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A drop; all but `progress` is what its file may say.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub(crate) struct DropDetail {
    #[schema(value_type = String, example = "sneaker")]
    pub(crate) drop_id: DropId,
    pub(crate) title: String,
    /// Most units of one buyer over all its sales; null: no limit.
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub(crate) limit: Option<NonZeroU32>,
    /// Who counts as one buyer for limits: `account` or `person`.
    #[schema(value_type = String, example = "account")]
    pub(crate) limit_by: LimitBy,
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
    /// Units granted by now, but for those of releases.
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
    /// What a buyer needs; null: nothing.
    #[schema(value_type = Option<Needs>)]
    needs: Option<Arc<Needs>>,
    /// What a buyer passes before a purchase token is issued; null: nothing.
    #[schema(value_type = Option<String>)]
    challenge: Option<Challenge>,
    /// Units that come while it sells, in the order of their times.
    releases: Vec<ReleaseForm>,
    /// The sale that gets what is unsold at its end; null: none does.
    #[schema(value_type = Option<String>)]
    rollover_to: Option<SaleId>,
    /// Its line: raffle; null: none.
    #[schema(value_type = Option<String>, example = "raffle")]
    line: Option<LineKind>,
    /// Until when entries of its line are taken, RFC 3339; null: it has none.
    line_closes_at: Option<String>,
    /// Whether its line is drawn only with a text from outside.
    line_beacon: bool,
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
    /// Of each of its releases: whether it was given.
    releases_given: Vec<bool>,
}

impl DropSale {
    fn of(sale: &Sale, known: &KnownTimetable) -> Self {
        Self {
            sale_id: sale.sale_id.clone(),
            product_id: sale.product_id.clone(),
            title: sale.title.clone(),
            stock: sale.granted - known.given_units(),
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
            needs: sale.needs.clone(),
            challenge: sale.challenge,
            releases: shown_releases(&known.timetable.releases),
            rollover_to: known.timetable.rollover_to.clone(),
            line: known.timetable.line.map(|line| line.kind),
            line_closes_at: known
                .timetable
                .line
                .filter(|line| line.kind == LineKind::Raffle)
                .map(|line| shown_time(line.closes_at_ms)),
            line_beacon: known.timetable.line.is_some_and(|line| line.needs_beacon),
        }
    }
}

impl SaleProgress {
    fn of(sale: &Sale, known: &KnownTimetable) -> Self {
        let Sale { status, granted, stock, version, .. } = *sale;
        let (sale_id, releases_given) = (sale.sale_id.clone(), known.given.clone());
        Self { sale_id, status, granted, unsold: stock, version, releases_given }
    }
}

impl DropDetail {
    fn of(drop: SalesDrop, sales: &[(Sale, KnownTimetable)]) -> Self {
        let SalesDrop { drop_id, title, limit, .. } = drop;
        // One buyer is the same in all of them.
        let limit_by = sales.first().map_or_else(LimitBy::default, |(sale, _)| sale.limit_by);
        let progress = sales.iter().map(|(sale, known)| SaleProgress::of(sale, known)).collect();
        let sales = sales.iter().map(|(sale, known)| DropSale::of(sale, known)).collect();
        Self { drop_id, title, limit, limit_by, sales, progress }
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
        let mut known = self.timetables_of(&sales).await?;
        let with_known = |sale: Sale| {
            let known = known.remove(&sale.sale_id).unwrap_or_default();
            (sale, known)
        };
        Ok(DropDetail::of(drop, &sales.into_iter().map(with_known).collect::<Vec<_>>()))
    }

    /// The timetables of these sales, of those that have one.
    pub(crate) async fn timetables_of(
        &self,
        sales: &[Sale],
    ) -> Result<HashMap<SaleId, KnownTimetable>, SaleControlError> {
        Ok(self.rows.sales.timetables(&sales.iter().map(|sale| &sale.sale_id).collect::<Vec<_>>()).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::line::LinePlan;
    use crate::domain::order_life::PaymentTerms;
    use crate::domain::timetable::{Release, Timetable};
    use crate::sales::forms::NewDropForm;

    #[test]
    fn what_is_shown_of_a_drop_is_a_file_that_makes_the_same_one() {
        let sale_ids = ["m", "l"].map(|id| SaleId::parse(id).unwrap());
        let drop_id = DropId::parse("d").unwrap();
        let drop = SalesDrop { drop_id, title: "t".into(), limit: NonZeroU32::new(2), sale_ids: sale_ids.to_vec() };
        let of_sale = |id: SaleId| Sale {
            payment: (id.as_str() == "l").then_some(PaymentTerms {
                pay_within_s: 600,
                pay_grace_s: 5,
                limit_returns: true,
            }),
            hidden: true,
            needs: (id.as_str() == "m").then(|| Arc::new(Needs::of_text(r#"{"tier":["gold"],"pass":true}"#))),
            in_drop: Some(drop.clone().into()),
            ends_at_ms: if id.as_str() == "m" { 3_000 } else { 4_000 },
            ..Sale::draft(id, 5, 1_000, 2_000)
        };
        let sales = sale_ids.map(|id| {
            let rollover_to = (id.as_str() == "m").then(|| SaleId::parse("l").unwrap());
            let releases = [1_500, 2_500].map(|at_ms| Release { at_ms, units: 3 }).to_vec();
            let line = (id.as_str() == "m").then_some(LinePlan {
                kind: LineKind::Raffle,
                closes_at_ms: 900,
                needs_beacon: true,
            });
            (of_sale(id), Timetable { releases, rollover_to, line })
        });
        let known = sales.clone().map(|(sale, timetable)| {
            let sale = Sale { granted: sale.granted + 3, ..sale };
            (sale, KnownTimetable { timetable, given: vec![true, false] })
        });
        let mut shown = serde_json::to_value(DropDetail::of(drop.clone(), &known)).unwrap();
        assert_eq!(shown["progress"][0]["unsold"], 5);
        assert_eq!(shown["progress"][0]["releases_given"], serde_json::json!([true, false]));
        shown.as_object_mut().unwrap().remove("progress");
        let form: NewDropForm = serde_json::from_value(shown).unwrap();
        assert_eq!(form.drafts().unwrap(), (drop, sales.to_vec()));
    }
}
