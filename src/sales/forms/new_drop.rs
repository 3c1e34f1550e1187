//! A new drop: the file of `seckill drop create`, and the body of `POST /admin/v1/drops`.

use super::NewSaleForm;
use super::new_sale::TITLE_CHARS_MAX;
use super::timetable::rollovers_hold;
use crate::domain::drops::{SALES_MAX, SalesDrop};
use crate::domain::ids::{DropId, SaleId};
use crate::domain::policy::LimitBy;
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use crate::http::bad_form::{BadForm, bad};
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A new drop with its sales.
#[derive(Debug, Clone, serde::Deserialize, utoipa::ToSchema)]
#[schema(as = NewDropBody)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDropForm {
    #[schema(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub(crate) drop_id: DropId,
    /// What a buyer reads.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Most units of one buyer over all its sales; no limit when left out.
    #[serde(default)]
    #[schema(minimum = 1)]
    limit: Option<u32>,
    /// Who counts as one buyer for its limit and those of its sales: `account` or `person`. It never changes.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "person")]
    limit_by: LimitBy,
    /// 1 to 64, in the order in which they are shown.
    #[schema(min_items = 1, max_items = 64)]
    sales: Vec<NewSaleForm>,
}

/// Which field of a drop cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{bad}", .sale.as_ref().map_or_else(String::new, |sale| format!("sale {sale}: ")))]
pub(crate) struct BadDrop {
    /// The sale that has the field; none: the drop itself.
    pub(crate) sale: Option<SaleId>,
    pub(crate) bad: BadForm,
}

impl From<BadForm> for BadDrop {
    fn from(bad: BadForm) -> Self {
        Self { sale: None, bad }
    }
}

/// Whether a drop may be called this.
pub(super) fn title_is_usable(title: &str) -> Result<(), BadForm> {
    let is_usable = !title.trim().is_empty() && title.chars().count() <= TITLE_CHARS_MAX;
    if is_usable { Ok(()) } else { bad("title", "1 to 200 characters", "1 至 200 个字符") }
}

/// Whether a drop may have this limit.
pub(super) fn limit_is_usable(limit: Option<u32>) -> Result<(), BadForm> {
    let expected = "a whole number from 1, or none for no limit";
    if limit == Some(0) { bad("limit", expected, "从 1 起的整数，或留空不限") } else { Ok(()) }
}

impl NewDropForm {
    /// The drop, and its sales as drafts with their timetables.
    pub(crate) fn drafts(self) -> Result<(SalesDrop, Vec<(Sale, Timetable)>), BadDrop> {
        title_is_usable(&self.title)?;
        limit_is_usable(self.limit)?;
        let mut known = HashSet::new();
        let are_different = self.sales.iter().all(|sale| known.insert(&sale.id));
        let rules = [
            ((1..=SALES_MAX).contains(&self.sales.len()), "sales", "1 to 64 sales", "1 至 64 个活动"),
            (are_different, "sales", "sales with different ids", "编号各不相同的活动"),
        ];
        if let Some((_, field, expected, chinese)) = rules.into_iter().find(|(holds, ..)| !holds) {
            return Err(BadForm { field, expected, chinese }.into());
        }
        let drop = SalesDrop {
            drop_id: self.drop_id,
            title: self.title,
            limit: self.limit.and_then(NonZeroU32::new),
            sale_ids: self.sales.iter().map(|sale| sale.id.clone()).collect(),
        };
        let in_drop = Arc::new(drop.clone());
        let mut sales = Vec::with_capacity(self.sales.len());
        for form in self.sales {
            let (id, warm, limit_by) = (form.id.clone(), form.warm, form.limit_by);
            let of_sale = |bad| BadDrop { sale: Some(id.clone()), bad };
            if warm {
                let (expected, chinese) =
                    ("false: the sales of a drop are warmed together", "false：同一组合的活动一起预热");
                return Err(of_sale(BadForm { field: "warm", expected, chinese }));
            }
            if limit_by.is_some_and(|limit_by| limit_by != self.limit_by) {
                let (expected, chinese) =
                    ("none, or that of the drop: one buyer is the same in all its sales", "空，或与组合活动相同");
                return Err(of_sale(BadForm { field: "limit_by", expected, chinese }));
            }
            let plan = form.timetable();
            let (in_drop, limit_by) = (Some(in_drop.clone()), self.limit_by);
            let sale = Sale { in_drop, limit_by, ..form.draft().map_err(of_sale)? };
            sales.push((sale, plan.map_err(of_sale)?));
        }
        rollovers_hold(&sales).map_err(|(sale, bad)| BadDrop { sale: Some(sale.clone()), bad })?;
        Ok((drop, sales))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafts(change: impl FnOnce(&mut serde_json::Value)) -> Result<(SalesDrop, Vec<(Sale, Timetable)>), String> {
        let sale = |id: &str| {
            serde_json::json!({
                "sale_id": id, "product_id": "p", "title": "t", "stock": 5,
                "starts_at": "2026-01-01T10:00:00+08:00", "ends_at": "2026-01-01T12:00:00+08:00"
            })
        };
        let mut file = serde_json::json!({"drop_id": "d", "title": "t", "limit": 1, "sales": [sale("m"), sale("l")]});
        change(&mut file);
        let form: NewDropForm = serde_json::from_value(file).map_err(|error| error.to_string())?;
        form.drafts().map_err(|bad| bad.to_string())
    }

    #[test]
    fn a_drop_is_checked_as_a_whole_and_says_which_field_of_which_sale() {
        let (drop, sales) = drafts(|_file| ()).unwrap();
        assert_eq!(drop.sale_ids.iter().map(SaleId::as_str).collect::<Vec<_>>(), ["m", "l"]);
        assert!(sales.iter().all(|(sale, _)| sale.in_drop.as_deref() == Some(&drop)));
        let says = |change: &dyn Fn(&mut serde_json::Value)| drafts(change).unwrap_err();
        assert!(says(&|file| file["limit"] = 0.into()).starts_with("limit: expected a whole number from 1"));
        assert!(says(&|file| file["sales"] = serde_json::json!([])).starts_with("sales: expected 1 to 64"));
        assert!(says(&|file| file["sales"][1] = file["sales"][0].clone()).contains("different ids"));
        assert!(says(&|file| file["sales"][1]["stock"] = (-1).into()).starts_with("sale l: stock: expected 0 to"));
        assert!(
            says(&|file| file["sales"][0]["limit_by"] = "person".into()).starts_with("sale m: limit_by: expected none")
        );
        assert!(says(&|file| file["limit_by"] = "household".into()).contains("expected `account` or `person`"));
        let by_person = drafts(|file| file["limit_by"] = "person".into()).unwrap().1;
        assert!(by_person.iter().all(|(sale, _)| sale.limit_by == LimitBy::Person));
        assert!(says(&|file| file["sales"][0]["warm"] = true.into()).starts_with("sale m: warm: expected false"));
        let later = |file: &mut serde_json::Value, to: &str| {
            file["sales"][1]["ends_at"] = "2026-01-01T13:00:00+08:00".into();
            file["sales"][0]["rollover_to"] = to.into();
        };
        assert_eq!(drafts(|file| later(file, "l")).unwrap().1[0].1.rollover_to.as_ref().map(SaleId::as_str), Some("l"));
        for to in ["m", "other"] {
            assert!(says(&|file| later(file, to)).starts_with("sale m: rollover_to: expected another sale"));
        }
        assert!(says(&|file| file["sales"][0]["rollover_to"] = "l".into()).contains("which ends later"));
        assert!(says(&|file| file["sales"][0]["rounds"] = 1.into()).contains("unknown field `rounds`"));
    }
}
