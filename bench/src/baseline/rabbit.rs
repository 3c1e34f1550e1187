//! For the benchmark: a bare confirmed publisher. One connection, one queue of the same kind as the order queues, a window
//! of unanswered publishes, and nothing else: no outbox, no attempts, no record of what was sent. The upper bound of what
//! the relay can do with this broker and this library.
//!
//! Input: how many messages of which body, and for how long. Output: how many, and how long it took. A crash leaves the queue named here, with messages
//! that no consumer reads.

use amqprs::BasicProperties;
use amqprs::channel::{BasicPublishArguments, ConfirmSelectArguments, QueueDeclareArguments, QueueDeleteArguments};
use seckill::store::rabbit::{Link, RabbitConfig, RabbitError, Signal, Topology};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longest wait for the next confirm.
const SILENCE: Duration = Duration::from_secs(10);

/// What to publish.
#[derive(Debug, Clone, Copy)]
pub struct PublishRun<'a> {
    /// At least this number of messages.
    pub count_min: u64,
    /// At least for this time.
    pub lasting: Duration,
    /// Each one's body.
    pub body: &'a [u8],
    /// Most publishes without an answer, 1 ….
    pub window: usize,
}

/// Publishes persistent messages into a queue of its own and waits until the broker has confirmed them all; the queue is
/// deleted afterwards. Returns how many, and the time from the first publish to the last confirm.
///
/// # Errors
/// [`RabbitError`]: no connection, a refused message, or silence.
pub async fn publish_confirmed(config: &RabbitConfig, bare: PublishRun<'_>) -> Result<(u64, Duration), RabbitError> {
    let queue = format!("{}.bench-bare", config.prefix);
    let failed = |error: amqprs::error::Error| RabbitError::Closed(error.to_string());
    let mut link = Link::connect(config, "bench").await?;
    let table = Topology::new(config).order_queue_arguments();
    let declare = QueueDeclareArguments::durable_client_named(&queue).arguments(table).finish();
    link.channel.queue_declare(declare).await.map_err(failed)?;
    link.channel.confirm_select(ConfirmSelectArguments::default()).await.map_err(failed)?;
    let published = publish(&mut link, &queue, bare).await;
    link.channel.queue_delete(QueueDeleteArguments::new(&queue)).await.map_err(failed)?;
    published
}

async fn publish(link: &mut Link, queue: &str, bare: PublishRun<'_>) -> Result<(u64, Duration), RabbitError> {
    let begun = Instant::now();
    let mut open = BTreeSet::new();
    let mut sent = 0;
    let goes_on = |sent| sent < bare.count_min || begun.elapsed() < bare.lasting;
    while goes_on(sent) || !open.is_empty() {
        while goes_on(sent) && open.len() < bare.window.max(1) {
            sent += 1;
            let mut properties = BasicProperties::default();
            properties.with_persistence(true).with_content_type("application/json").with_message_id(&sent.to_string());
            let mut to = BasicPublishArguments::default();
            to.routing_key(queue.to_owned()).mandatory(true);
            let published = link.channel.basic_publish(properties, bare.body.to_vec(), to).await;
            published.map_err(|error| RabbitError::Closed(error.to_string()))?;
            open.insert(sent);
        }
        let late = RabbitError::Timeout { what: "wait for confirms", limit_ms: 10_000 };
        let mut signal = Some(link.next_signal((Instant::now() + SILENCE).into()).await.ok_or(late)?);
        while let Some(arrived) = signal {
            settle(&mut open, arrived)?;
            signal = link.try_signal();
        }
    }
    Ok((sent, begun.elapsed()))
}

fn settle(open: &mut BTreeSet<u64>, signal: Signal) -> Result<(), RabbitError> {
    match signal {
        Signal::Ack { tag, multiple: true } => {
            *open = open.split_off(&tag.saturating_add(1));
            Ok(())
        }
        Signal::Ack { tag, multiple: false } => {
            open.remove(&tag);
            Ok(())
        }
        Signal::Nack { .. } => Err(RabbitError::Closed("the broker refused a message".to_owned())),
        Signal::Returned { reason, .. } => Err(RabbitError::Closed(reason)),
        Signal::Gone(gone) => Err(RabbitError::Closed(gone.to_string())),
        // Nothing is consumed here.
        Signal::Delivered(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirm_settles_its_own_or_all_before_it() {
        let mut open: BTreeSet<u64> = (1..=5).collect();
        settle(&mut open, Signal::Ack { tag: 4, multiple: false }).unwrap();
        assert_eq!(open, BTreeSet::from([1, 2, 3, 5]));
        settle(&mut open, Signal::Ack { tag: 3, multiple: true }).unwrap();
        assert_eq!(open, BTreeSet::from([5]));
        assert!(settle(&mut open, Signal::Nack { tag: 5, multiple: false }).is_err());
    }
}
