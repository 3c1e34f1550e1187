//! One connection for publishing that many buyers share, as an application has it: a message with its confirm, or a
//! message whose confirm is not waited for.
//!
//! A crash loses what was not handed to the broker, and it is unknown which of the unconfirmed messages it has.

use seckill::cli::Failure;
use seckill::store::rabbit::{Confirms, Outgoing, PublishEvent, PublishResult, Publisher, RabbitConfig};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Messages that wait to be published.
const QUEUE: usize = 1_024;
/// Longest wait for a confirm.
const CONFIRM: Duration = Duration::from_secs(30);

struct PublishRequest {
    message: Outgoing,
    /// Dropped when the message was refused; `None` where no caller waits.
    confirmed: Option<oneshot::Sender<()>>,
}

/// A handle to the connection; clones share it.
#[derive(Clone)]
pub(in crate::strategies) struct SharedProducer {
    requests: mpsc::Sender<PublishRequest>,
}

impl SharedProducer {
    /// Connects. The task ends when the last handle is gone and everything is confirmed.
    pub async fn connect(config: &RabbitConfig) -> Result<(Self, JoinHandle<Result<(), Failure>>), Failure> {
        let publisher = Publisher::connect(config).await?;
        let (requests, waiting) = mpsc::channel(QUEUE);
        Ok((Self { requests }, tokio::spawn(publish_all(publisher, waiting))))
    }

    /// Publishes and waits for the confirm.
    pub async fn publish_confirmed(&self, message: Outgoing) -> Result<(), Failure> {
        let (sender, confirmed) = oneshot::channel();
        self.hand_over(PublishRequest { message, confirmed: Some(sender) }).await?;
        confirmed.await.map_err(|_| Failure::Failed("the broker did not confirm a message".to_owned()))
    }

    /// Publishes and does not wait.
    pub async fn publish(&self, message: Outgoing) -> Result<(), Failure> {
        self.hand_over(PublishRequest { message, confirmed: None }).await
    }

    async fn hand_over(&self, request: PublishRequest) -> Result<(), Failure> {
        let ended = |_| Failure::Failed("the connection for publishing ended".to_owned());
        self.requests.send(request).await.map_err(ended)
    }
}

async fn publish_all(mut publisher: Publisher, mut waiting: mpsc::Receiver<PublishRequest>) -> Result<(), Failure> {
    let mut confirms: Confirms<Option<oneshot::Sender<()>>> = Confirms::new();
    let mut is_open = true;
    while is_open || !confirms.is_empty() {
        tokio::select! {
            request = waiting.recv(), if is_open => match request {
                Some(PublishRequest { message, confirmed }) => {
                    let tag = publisher.publish(message).await?;
                    confirms.sent(tag, confirmed, Instant::now());
                }
                None => is_open = false,
            },
            event = publisher.next_event(Instant::now() + CONFIRM) => match event {
                Some(PublishEvent::Closed(reason)) => return Err(Failure::Failed(reason)),
                Some(event) => confirm(confirms.apply(event))?,
                None if confirms.is_empty() => {}
                None => return Err(Failure::Failed("no confirm came in time".to_owned())),
            },
        }
    }
    Ok(())
}

fn confirm(answered: Vec<(Option<oneshot::Sender<()>>, PublishResult)>) -> Result<(), Failure> {
    for (confirmed, verdict) in answered {
        match verdict {
            // An error means that the buyer no longer waits.
            PublishResult::Confirmed => drop(confirmed.map(|sender| sender.send(()))),
            PublishResult::Refused => return Err(Failure::Failed("the broker refused a message".to_owned())),
            PublishResult::Unroutable(words) => return Err(Failure::Failed(words)),
        }
    }
    Ok(())
}
