//! Sending a handful of messages and waiting until the broker has them all.

use super::config::RabbitConfig;
use super::confirms::{Confirms, Verdict};
use super::error::RabbitError;
use super::publisher::{Event, Outgoing, Publisher};
use std::time::{Duration, Instant};

/// Sends all messages on `publisher` (connecting it when there is none) and waits for every confirm, at most
/// `connect_timeout_ms`. After an error the publisher is gone and any part of the messages may have been stored.
///
/// # Errors
/// When one message was refused, had no queue, or got no confirm in time; or the connection was lost.
pub async fn send_all(
    config: &RabbitConfig,
    publisher: &mut Option<Publisher>,
    messages: Vec<Outgoing>,
) -> Result<(), RabbitError> {
    if messages.is_empty() {
        return Ok(());
    }
    let mut open = match publisher.take().filter(Publisher::is_open) {
        Some(open) => open,
        None => Publisher::connect(config).await?,
    };
    send(config, &mut open, messages).await?;
    *publisher = Some(open);
    Ok(())
}

async fn send(config: &RabbitConfig, publisher: &mut Publisher, messages: Vec<Outgoing>) -> Result<(), RabbitError> {
    let mut confirms = Confirms::new();
    for message in messages {
        let tag = publisher.publish(message).await?;
        confirms.sent(tag, (), Instant::now());
    }
    let deadline = Instant::now() + Duration::from_millis(config.connect_timeout_ms);
    while !confirms.is_empty() {
        let late = || RabbitError::Timeout { what: "wait for confirms", limit_ms: config.connect_timeout_ms };
        let event = publisher.next_event(deadline).await.ok_or_else(late)?;
        if let Event::Closed(reason) = event {
            return Err(RabbitError::Closed(reason));
        }
        for ((), verdict) in confirms.apply(event) {
            match verdict {
                Verdict::Confirmed => {}
                Verdict::Refused => return Err(RabbitError::Closed("the broker refused a message".to_owned())),
                Verdict::Unroutable(words) => return Err(RabbitError::Closed(words)),
            }
        }
    }
    Ok(())
}
