//! Moves of a sale's state on one shard. Each is one step of a script: what another process has changed meanwhile is not overwritten.

use super::connection::{RedisFault, text};
use super::sale_keys::SaleKeys;
use super::scripts::SET_STATE;
use crate::domain::ids::SaleId;
use crate::domain::sale::MetaState;

impl SaleKeys {
    /// Moves the sale to `to` if it is in one of `from`; returns the state before, `None` when the keys are missing.
    /// Repeating is safe.
    pub async fn set_state(
        &self,
        sale: &SaleId,
        shard: u16,
        to: MetaState,
        from: &[MetaState],
    ) -> Result<Option<MetaState>, RedisFault> {
        self.set_state_until(sale, (shard, None), to, from).await
    }

    /// Freezes the sale while it sells, so that it is rebuilt, unless its keys are of a later epoch than was judged: what a rebuild has
    /// made meanwhile is whole. Repeating is safe.
    pub async fn freeze(&self, sale: &SaleId, shard: u16, judged_epoch: u32) -> Result<(), RedisFault> {
        let from = [MetaState::Loaded, MetaState::Open, MetaState::Paused];
        self.set_state_until(sale, (shard, Some(judged_epoch)), MetaState::Frozen, &from).await?;
        Ok(())
    }

    async fn set_state_until(
        &self,
        sale: &SaleId,
        (shard, last_epoch): (u16, Option<u32>),
        to: MetaState,
        from: &[MetaState],
    ) -> Result<Option<MetaState>, RedisFault> {
        let last_epoch = last_epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
        let mut args = vec![text(to.code()), text(last_epoch)];
        args.extend(from.iter().map(|state| text(state.code())));
        let before = self.redis.script(&SET_STATE, vec![self.redis.keys.meta(shard, sale)], args).await?;
        match before.as_string().unwrap_or_default().as_str() {
            "" => Ok(None),
            code => MetaState::from_code(code)
                .map(Some)
                .ok_or_else(|| RedisFault::Contract(format!("meta has state {code:?}"))),
        }
    }
}
