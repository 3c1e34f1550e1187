//! A new sale; changes of one that exists: its terms, its times, whether buyers see it; and a new one with its terms.
//!
//! The database first, in one conditional UPDATE that decides every race, then the cached sale and Redis' window and limit. A crash
//! in between leaves Redis with the old ones, for at most the ten seconds until an api process checks the warmed sales
//! (`p1_entry::auto_warm`), and a cached sale for at most its time. Repeating any call is safe.

use super::contention::again_after_contention;
use super::control::SaleControl;
use super::control_error::SaleControlError;
use super::forms::{CloneForm, PlannedLine, shown_releases};
use super::recorded::SaleAct;
use super::sale_change::{ChangeRefusal, SaleChange};
use crate::domain::ids::SaleId;
use crate::domain::operator::{Actor, Operation};
use crate::domain::sale::Sale;
use crate::domain::timetable::Timetable;
use crate::faults::crash_point;
use crate::sales::rows::changes::SeenSale;
use serde_json::{Value, json};

impl SaleControl {
    async fn seen(&self, id: &SaleId) -> Result<SeenSale, SaleControlError> {
        self.rows.sales.seen(id).await?.ok_or_else(|| SaleControlError::NoSuchSale(id.clone()))
    }

    /// Makes a change; with `version` only if the sale has that version, which is what its operator saw.
    ///
    /// # Errors
    /// [`SaleControlError::Refused`] with what would be accepted, and nothing is changed;
    /// [`SaleControlError::NotFollowed`] when it is, and Redis follows later.
    pub(crate) async fn change(
        &self,
        id: &SaleId,
        change: &SaleChange,
        version: Option<u32>,
    ) -> Result<(), SaleControlError> {
        self.sale_of_ours(id).await?;
        let SeenSale { sale, now_ms } = self.seen(id).await?;
        if version.is_some_and(|version| version != sale.version) {
            return Err(ChangeRefusal::Overtaken(sale.version).into());
        }
        let to = change.applied(&sale, now_ms)?;
        // Without a difference only Redis may have to follow.
        if to != sale && !self.rows.sales.write(change, &sale, &to).await? {
            let SeenSale { sale, now_ms } = self.seen(id).await?;
            change.applied(&sale, now_ms)?;
            return Err(ChangeRefusal::Overtaken(sale.version).into());
        }
        crash_point!(SaleChanged);
        self.follow(id).await
    }

    /// Makes Redis follow a change that the database has.
    pub(super) async fn follow(&self, id: &SaleId) -> Result<(), SaleControlError> {
        let followed = match self.redis.sale_cache.forget(id).await {
            Ok(()) => self.align_with_database(id).await,
            Err(error) => Err(error.into()),
        };
        match followed {
            // A rebuild takes window and limit from the database.
            Err(SaleControlError::Frozen(_) | SaleControlError::KeysLost(_)) => Ok(()),
            Err(SaleControlError::Redis(error)) => Err(SaleControlError::NotFollowed(id.clone(), error)),
            other => other,
        }
    }

    /// Creates a draft, on record, then calls `created`; with `warm` also opens it, which is another act.
    ///
    /// # Errors
    /// [`SaleControlError`]; after `created` the sale is there, and warming it again is safe.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        ((sale, plan), warm): (&(Sale, Timetable), bool),
        created: impl FnOnce(),
    ) -> Result<(), SaleControlError> {
        let id = &sale.sale_id;
        let act = |operation, asked| SaleAct { actor, operation, sale_id: id, asked };
        let mut asked = json!({ "units": sale.granted, "title": sale.title, "price_cents": sale.price_cents });
        if !plan.releases.is_empty() {
            asked["releases"] = json!(shown_releases(&plan.releases));
        }
        if let Some(line) = plan.line {
            asked["line"] = json!(PlannedLine::from(line));
        }
        let creating = async { Ok(self.rows.sales.create_planned(sale, plan).await?) };
        self.on_record(act(Operation::SaleCreate, asked), creating).await?;
        created();
        if warm {
            self.on_record(act(Operation::SaleWarm, Value::Null), self.warm(id)).await?;
        }
        Ok(())
    }

    /// Creates a draft with the terms of `id`; returns it.
    pub(crate) async fn clone_sale(&self, id: &SaleId, form: &CloneForm) -> Result<Sale, SaleControlError> {
        let SeenSale { sale, .. } = self.seen(id).await?;
        let new = form.draft(&sale).map_err(ChangeRefusal::from)?;
        self.rows.sales.create(&new).await?;
        crash_point!(CloneWritten);
        Ok(new)
    }

    /// Closes a sale that ended `after_s` seconds ago.
    ///
    /// # Errors
    /// [`SaleControlError::Closed`] when it is closed, or ends later than it did, by now: nothing is changed.
    pub(crate) async fn close_ended(&self, sale: &Sale, after_s: u64) -> Result<(), SaleControlError> {
        let id = &sale.sale_id;
        if let Some(drop) = &sale.in_drop {
            return self.close_together(&drop.sale_ids, Some(after_s)).await;
        }
        if !self.rows.sales.close_ended(id, after_s).await? {
            return Err(SaleControlError::Closed(id.clone()));
        }
        crash_point!(SaleChanged);
        self.finish_close(id).await
    }

    /// Closes the sales of a drop. Redis follows sale by sale: one that is behind sells nothing that the database takes, and P5 finishes it.
    pub(super) async fn close_together(
        &self,
        ids: &[SaleId],
        ended_since_s: Option<u64>,
    ) -> Result<(), SaleControlError> {
        let Some(first) = ids.first() else { return Ok(()) };
        let closed = async || Ok(self.rows.sales.close_together(ids, ended_since_s).await?);
        if !again_after_contention(closed).await? {
            return Err(SaleControlError::Closed(first.clone()));
        }
        crash_point!(SaleChanged);
        for id in ids {
            self.finish_close(id).await?;
        }
        Ok(())
    }

    /// Makes Redis follow a close, if a crash has left it behind: else its keys would stay for ever.
    pub(crate) async fn finish_close(&self, id: &SaleId) -> Result<(), SaleControlError> {
        self.redis.sale_cache.forget(id).await?;
        self.align_with_database(id).await
    }
}
