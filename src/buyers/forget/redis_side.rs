//! The sales and shards of Redis where a buyer can be named, and renaming there.
//!
//! Input: the buyer. Output: what was found or renamed. Reads the keys of every sale that the database or Redis knows: of the home shard, and of
//! each shard where the sale limits by person, because an account's records are then where its persons are.

use super::{BuyerForget, ForgetError, Kept};
use crate::buyers::rows::forgotten::Forgetting;
use crate::domain::ids::{SaleId, UserId};
use crate::domain::shard::home_shard;
use crate::store::redis::RenamedBuyer;
use std::collections::BTreeSet;

/// Where a buyer can be named in Redis.
pub(super) struct Places {
    /// Every sale, with each shard that can name the buyer.
    pub(super) sales: Vec<(SaleId, u16)>,
    /// The numbers of shards that sales were warmed for, and that of this process.
    pub(super) shard_counts: BTreeSet<u16>,
    /// The buyer's home shards.
    pub(super) homes: BTreeSet<u16>,
}

impl BuyerForget {
    /// Every sale that the database knows, or that has keys.
    pub(super) async fn places(&self, buyer: &UserId) -> Result<Places, ForgetError> {
        let mut ids = self.sale_keys.all_ids().await?;
        let with_keys = ids.clone();
        let mut after = None;
        loop {
            let page = self.sales.ids_after(after.as_ref()).await?;
            let Some(last) = page.last().cloned() else { break };
            ids.extend(page);
            after = Some(last);
        }
        let (mut shard_counts, mut sales) = (BTreeSet::from([self.shards]), Vec::new());
        for id in ids {
            let warmed = if with_keys.contains(&id) { self.sale_keys.shards_of(&id).await? } else { None };
            let shards = warmed.unwrap_or(self.shards);
            shard_counts.insert(shards);
            let of_persons = warmed.is_some() && self.limits_person(&id, shards).await?;
            let home = home_shard(buyer, shards);
            let in_shards = if of_persons { 0..shards } else { home..home + 1 };
            sales.extend(in_shards.map(|shard| (id.clone(), shard)));
        }
        let homes = shard_counts.iter().map(|shards| home_shard(buyer, *shards)).collect();
        Ok(Places { sales, shard_counts, homes })
    }

    /// Whether a sale in Redis limits by person, as one of its shards says.
    async fn limits_person(&self, sale: &SaleId, shards: u16) -> Result<bool, ForgetError> {
        for shard in 0..shards {
            if self.sale_keys.ledger_terms(sale, shard).await?.1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Renames the buyer wherever Redis can. What is queued, or of a frozen sale, stays.
    pub(super) async fn rename_keys(&self, of: &Forgetting, kept: &mut Kept) -> Result<(), ForgetError> {
        let names = RenamedBuyer { buyer: &of.buyer, pseudonym: Some(&of.pseudonym) };
        self.visit(&self.places(&of.buyer).await?, names, Some((of, kept))).await.map(|_found| ())
    }

    /// How much of Redis has the id. A frozen sale counts, because what is in it cannot be known.
    pub(super) async fn keys_left(&self, of: &Forgetting, kept: &mut Kept) -> Result<u64, ForgetError> {
        let names = RenamedBuyer { buyer: &of.buyer, pseudonym: None };
        let places = self.places(&of.buyer).await?;
        let in_outboxes = self.in_outboxes(&of.buyer, &places).await?.len() as u64;
        Ok(in_outboxes + self.visit(&places, names, Some((of, kept))).await?)
    }

    /// Whether Redis names the buyer.
    pub(super) async fn is_in_redis(&self, buyer: &UserId, places: &Places) -> Result<bool, ForgetError> {
        Ok(self.visit(places, RenamedBuyer { buyer, pseudonym: None }, None).await? > 0)
    }

    async fn visit(
        &self,
        places: &Places,
        names: RenamedBuyer<'_>,
        mut under_way: Option<(&Forgetting, &mut Kept)>,
    ) -> Result<u64, ForgetError> {
        let mut found = 0;
        for (sale, shard) in &places.sales {
            found += self.keys.of_sale(sale, *shard, names).await?.map_or(1, |traces| traces.count);
            found += u64::from(self.keys.place(sale, names).await?);
            if let Some((of, kept)) = &mut under_way {
                self.keep(of, kept).await?;
            }
        }
        for home in &places.homes {
            found += u64::from(self.keys.bucket(*home, names).await?);
        }
        Ok(found)
    }
}
