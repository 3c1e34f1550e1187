//! Who holds which outbox entry: read and not acknowledged. Reads only.

use super::client::{RedisFault, RedisStore, list, optional_text, text};
use super::outbox::GROUP;

/// A pending entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Stream id.
    pub id: String,
    /// The relay that read it last.
    pub consumer: String,
}

impl RedisStore {
    /// A page of the pending entries of a shard's outbox in order, from `start` (inclusive; `-` begins).
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn outbox_held(&self, shard: u16, start: &str, count: usize) -> Result<Vec<Held>, RedisFault> {
        let (outbox, count) = (self.keys.outbox(shard), count.to_string());
        let args = [outbox.as_str(), GROUP, start, "+", &count].map(text).to_vec();
        let page = match self.command("XPENDING", 0, args).await {
            Ok(page) => list(page)?,
            Err(RedisFault::Refused(error)) if error.starts_with("NOGROUP") => Vec::new(),
            Err(fault) => return Err(fault),
        };
        page.into_iter()
            .map(|held| {
                let held = list(held)?;
                let part = |at: usize| held.get(at).and_then(optional_text);
                match (part(0), part(1)) {
                    (Some(id), Some(consumer)) => Ok(Held { id, consumer }),
                    (None, _) | (_, None) => Err(RedisFault::Contract(format!("XPENDING answered {held:?}"))),
                }
            })
            .collect()
    }
}
