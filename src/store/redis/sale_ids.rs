//! Which sales have keys in Redis: the keys themselves are read. A list of them could be lost, or older than they are.
//!
//! Input: nothing. Output: ids. Reads only; a crash leaves nothing.

use super::connection::{RedisFault, list, optional_text, text};
use super::sale_keys::SaleKeys;
use crate::domain::ids::SaleId;
use fred::types::Value;
use std::collections::BTreeSet;

/// Keys that one SCAN visits: some tenths of a millisecond of the server that sells.
const PAGE: &str = "1000";

impl SaleKeys {
    /// Every sale that has a `meta` on any server, and had it from the beginning of this call to its end. All keys of the servers are
    /// visited, in pages.
    pub(crate) async fn all_ids(&self) -> Result<BTreeSet<SaleId>, RedisFault> {
        let mut ids = BTreeSet::new();
        for node in self.redis.connection.primaries() {
            let mut cursor = "0".to_owned();
            loop {
                let args = [&cursor, "MATCH", &self.redis.keys.any_meta(), "COUNT", PAGE].map(text).to_vec();
                let mut reply = list(node.command("SCAN", args).await?)?.into_iter();
                let next = reply.next().and_then(|next| optional_text(&next));
                let keys = list(reply.next().unwrap_or(Value::Null))?;
                ids.extend(keys.iter().filter_map(|key| self.redis.keys.sale_of_meta(&optional_text(key)?)));
                cursor = next.ok_or_else(|| RedisFault::Contract("SCAN gave no cursor".to_owned()))?;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(ids)
    }
}
