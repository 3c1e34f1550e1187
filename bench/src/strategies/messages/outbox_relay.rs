//! The relay of the database outbox: reads the events that are not marked as sent, publishes them with confirms, and marks
//! them. It scans; nothing wakes it.
//!
//! A crash between a confirm and the mark leaves events that the next relay publishes again.

use super::{MessageStores, event};
use crate::baseline::mysql_messages as tables;
use seckill::cli::Failure;
use seckill::store::rabbit::{Publisher, send_all};
use std::time::Duration;

/// Events of one scan.
const SCAN: i64 = 200;
/// Pause after a scan that found nothing.
const PAUSE: Duration = Duration::from_millis(5);

/// Publishes the outbox of one sale.
pub(in crate::strategies) struct OutboxRelay {
    stores: MessageStores,
    publisher: Option<Publisher>,
}

impl OutboxRelay {
    pub async fn start(stores: MessageStores) -> Result<Self, Failure> {
        let publisher = Publisher::connect(&stores.rabbit).await?;
        Ok(Self { stores, publisher: Some(publisher) })
    }

    /// One scan; how many events were published.
    pub async fn step(&mut self) -> Result<u64, Failure> {
        let stores = &self.stores;
        let rows = tables::unsent(&stores.db, &stores.sale, SCAN).await?;
        if rows.is_empty() {
            tokio::time::sleep(PAUSE).await;
            return Ok(0);
        }
        let messages = rows.iter().map(|row| event(&stores.queues, row.request_id)).collect();
        send_all(&stores.rabbit, &mut self.publisher, messages).await?;
        tables::mark_sent(&stores.db, &rows).await?;
        Ok(rows.len() as u64)
    }

    /// Whether everything that is committed is published.
    pub async fn is_drained(&self) -> Result<bool, Failure> {
        Ok(tables::unsent(&self.stores.db, &self.stores.sale, 1).await?.is_empty())
    }
}
