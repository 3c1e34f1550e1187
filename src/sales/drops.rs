//! What operators do to a drop: the same for all its sales, one after the other.
//!
//! Input: an operator's wish. Output: the drop in the database, then its sales in Redis, and what became of each. A crash between two
//! sales leaves the later ones as they were; every call can be repeated. Each act on a sale is on record with the sale.

use super::control::SaleControl;
use super::control_error::SaleControlError;
use super::recorded::SaleAct;
use super::sale_change::{ChangeRefusal, SaleChange};
use crate::domain::drops::SalesDrop;
use crate::domain::ids::{DropId, SaleId};
use crate::domain::operator::{Actor, Operation};
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use crate::sales::forms::{DropEditForm, PlannedLine, shown_releases};
use crate::sales::rows::error::SaleError;
use serde_json::{Value, json};

/// What is done to each sale of a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropVerb {
    Warm,
    Pause,
    Resume,
    Hide,
    Publish,
}

/// Whether a drop was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropCreated {
    Now,
    /// It was there, with the same sales on the same terms.
    Before,
}

/// What became of one sale.
pub(crate) type OfSale = (SaleId, Result<(), SaleControlError>);

impl DropVerb {
    const fn operation(self) -> Operation {
        match self {
            Self::Warm => Operation::SaleWarm,
            Self::Pause => Operation::SalePause,
            Self::Resume => Operation::SaleResume,
            Self::Hide => Operation::SaleHide,
            Self::Publish => Operation::SalePublish,
        }
    }
}

impl SaleControl {
    /// A drop.
    pub(super) async fn known_drop(&self, id: &DropId) -> Result<SalesDrop, SaleControlError> {
        self.rows.sales.drop_of(id).await?.ok_or_else(|| SaleControlError::NoSuchDrop(id.clone()))
    }

    /// A drop with its sales, in their order.
    pub(crate) async fn drop_with_sales(&self, id: &DropId) -> Result<(SalesDrop, Vec<Sale>), SaleControlError> {
        let drop = self.known_drop(id).await?;
        let sales = self.rows.sales.sales_of(&drop).await?;
        Ok((drop, sales))
    }

    /// Creates a drop and its sales as drafts, all or nothing, on record. Repeating with the same file is safe.
    pub(crate) async fn create_drop(
        &self,
        actor: &Actor,
        drop: &SalesDrop,
        sales: &[(Sale, Timetable)],
    ) -> Result<DropCreated, SaleControlError> {
        let Some((first, _)) = sales.first() else { return Ok(DropCreated::Before) };
        let mut asked = json!({ "drop": drop.drop_id, "limit": drop.limit, "sales": drop.sale_ids });
        for (sale, plan) in sales.iter().filter(|(_, plan)| *plan != Timetable::default()) {
            let releases = shown_releases(&plan.releases);
            let line = plan.line.map(PlannedLine::from);
            asked["timetables"][sale.sale_id.as_str()] =
                json!({ "releases": releases, "rollover_to": plan.rollover_to, "line": line });
        }
        let act = SaleAct { actor, operation: Operation::SaleCreate, sale_id: &first.sale_id, asked };
        let creating = async { Ok(self.rows.sales.create_all(&[(Some(drop), sales)]).await?) };
        match self.on_record(act, creating).await {
            Ok(()) => Ok(DropCreated::Now),
            Err(SaleControlError::Sale(SaleError::DropExists(id))) => {
                let (there, its_sales) = self.drop_with_sales(&id).await?;
                let plans = self.timetables_of(&its_sales).await?;
                let known = |sale: &Sale| plans.get(&sale.sale_id).cloned().unwrap_or_default();
                let is_same = there == *drop && its_sales.len() == sales.len();
                let are_same = its_sales.iter().zip(sales).all(|(there, (new, plan))| {
                    let known = known(there);
                    terms(there, known.given_units()) == terms(new, 0) && known.timetable == *plan
                });
                let exists = || SaleError::DropExists(id).into();
                if is_same && are_same { Ok(DropCreated::Before) } else { Err(exists()) }
            }
            Err(error) => Err(error),
        }
    }

    /// Does the same to each sale of a drop, on record. An error of one keeps no other back.
    pub(crate) async fn each_of_drop(
        &self,
        actor: &Actor,
        id: &DropId,
        verb: DropVerb,
    ) -> Result<Vec<OfSale>, SaleControlError> {
        let mut done = Vec::new();
        for sale in self.drop_with_sales(id).await?.1 {
            let sale_id = &sale.sale_id;
            let act = SaleAct { actor, operation: verb.operation(), sale_id, asked: Value::Null };
            let of_sale = match verb {
                DropVerb::Warm => self.on_record(act, self.warm(sale_id)).await,
                DropVerb::Pause => self.on_record(act, self.pause(sale_id)).await,
                DropVerb::Resume => self.on_record(act, self.resume(sale_id)).await,
                DropVerb::Hide if sale.hidden => Ok(()),
                DropVerb::Publish if !sale.hidden => Ok(()),
                DropVerb::Hide => self.on_record(act, self.change(sale_id, &SaleChange::Hide, None)).await,
                DropVerb::Publish => self.on_record(act, self.change(sale_id, &SaleChange::Publish, None)).await,
            };
            done.push((sale.sale_id, of_sale));
        }
        Ok(done)
    }

    /// Changes what a drop is called, or its limit, until 30 seconds before the first of its sales starts, on record. Redis follows sale
    /// by sale: what is behind follows when an api process checks the warmed sales.
    ///
    /// # Errors
    /// [`SaleControlError::Refused`] with what would be accepted, and nothing is changed.
    pub(crate) async fn edit_drop(
        &self,
        actor: &Actor,
        id: &DropId,
        form: &DropEditForm,
    ) -> Result<(), SaleControlError> {
        let (drop, sales) = self.drop_with_sales(id).await?;
        let to = form.applied(&drop).map_err(ChangeRefusal::from)?;
        let Some(first) = sales.iter().min_by_key(|sale| sale.starts_at_ms) else { return Ok(()) };
        let asked = json!({ "drop": id, "edit": form });
        let act = SaleAct { actor, operation: Operation::SaleEdit, sale_id: &first.sale_id, asked };
        let editing = async {
            if to != drop && !self.rows.sales.edit_drop(&to).await? {
                return Err(ChangeRefusal::StartSettled(first.starts_at_ms).into());
            }
            for sale in &drop.sale_ids {
                self.follow(sale).await?;
            }
            Ok(())
        };
        self.on_record(act, editing).await
    }

    /// Ends a drop for good: all its sales, by one change of the database, on record. Accepted purchases still become orders.
    pub async fn close_drop(&self, actor: &Actor, id: &DropId) -> Result<Vec<SaleId>, SaleControlError> {
        let drop = self.known_drop(id).await?;
        let Some(first) = drop.sale_ids.first() else { return Ok(Vec::new()) };
        let act = SaleAct { actor, operation: Operation::SaleClose, sale_id: first, asked: json!({ "drop": id }) };
        self.on_record(act, self.close_together(&drop.sale_ids, None)).await?;
        Ok(drop.sale_ids)
    }
}

/// What the file of a drop says about a sale that was given `released` units by its timetable.
fn terms(sale: &Sale, released: i64) -> impl PartialEq + '_ {
    let stock = sale.granted - released;
    let what = (&sale.sale_id, &sale.product_id, &sale.title, sale.price_cents, &sale.currency, stock);
    let how = (sale.policy, sale.token_required, sale.waiting_room, sale.payment);
    let who = (&sale.needs, sale.limit_by, sale.challenge);
    (what, how, who, sale.starts_at_ms, sale.ends_at_ms)
}
