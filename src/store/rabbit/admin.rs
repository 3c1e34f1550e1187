//! Reading from the broker over connections of their own: for `doctor`, `audit`, the admin pages and readiness. Changes nothing.

use super::config::RabbitConfig;
use super::error::RabbitError;
use super::link::{Link, call};
use super::topology::Topology;
use crate::store::address_in_use::AddressInUse;
use amqprs::channel::{BasicQosArguments, Channel, QueueDeclareArguments};
use tokio::sync::Mutex;

const NOT_FOUND: u16 = 404;

/// How full a queue is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDepth {
    /// The name of the queue.
    pub queue: String,
    /// Messages ready to be given out. Those given out and not settled, and dead letters on their way, are not in it.
    pub ready: u64,
    /// Number of connected consumers.
    pub consumers: u32,
}

/// Which broker answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerInfo {
    /// The name of the broker's program, such as `RabbitMQ`.
    pub product: String,
    /// The version of the broker.
    pub version: String,
}

/// Connects and reads which broker it is, within `connect_timeout_ms`.
pub async fn broker_info(config: &RabbitConfig) -> Result<BrokerInfo, RabbitError> {
    let link = Link::connect(config, "admin").await?;
    let server = link.connection.server_properties();
    Ok(BrokerInfo { product: server.product().to_owned(), version: server.version().to_owned() })
}

/// What each node answers, by its address; one after the other, `connect_timeout_ms` each.
pub(crate) async fn node_infos(config: &RabbitConfig) -> Vec<(String, Result<BrokerInfo, RabbitError>)> {
    let mut found = Vec::new();
    for url in &config.urls {
        let one = RabbitConfig { urls: vec![url.clone()], in_use: AddressInUse::first_of(1), ..config.clone() };
        let info = match broker_info(&one).await {
            // A node that lost the others, or woke up without them, greets and then answers for no queue.
            Ok(info) => match queue_depths(&one).await {
                Ok(_) | Err(RabbitError::NoQueue { .. }) => Ok(info),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        found.push((one.addresses(), info));
    }
    found
}

/// Whether the broker answers, over one connection that is kept: a probe every second or two costs the broker no new one.
pub(crate) struct BrokerProbe {
    config: RabbitConfig,
    kept: Mutex<Option<Link>>,
}

impl BrokerProbe {
    /// Connects with the first probe.
    #[must_use]
    pub(crate) fn new(config: RabbitConfig) -> Self {
        Self { config, kept: Mutex::default() }
    }

    /// Lets the broker answer one call. A kept connection that fails is replaced, within `connect_timeout_ms` each.
    pub(crate) async fn probe(&self) -> Result<(), RabbitError> {
        let mut kept = self.kept.lock().await;
        // Out of its place while it is used: a caller that stops waiting leaves no link of unknown state behind.
        if let Some(link) = kept.take() {
            let node = link.node();
            match answers(link, self.config.connect_timeout_ms).await {
                Ok(link) => {
                    *kept = Some(link);
                    return Ok(());
                }
                Err(error) => drop(node.blamed(error)),
            }
        }
        *kept = Some(Link::connect(&self.config, "probe").await?);
        Ok(())
    }
}

/// The link, if the broker answers a call on it that changes nothing.
async fn answers(link: Link, limit_ms: u64) -> Result<Link, RabbitError> {
    call("probe the broker", limit_ms, async move {
        let nothing = BasicQosArguments::new(0, 1, false);
        link.channel.basic_qos(nothing).await.map_err(|error| RabbitError::Closed(error.to_string()))?;
        Ok(link)
    })
    .await
}

/// The depth of every queue of the topology, within `connect_timeout_ms` of the connection. Queues are read in turn, so a
/// message on its way between two may be counted twice or not at all.
///
/// # Errors
/// [`RabbitError::NoQueue`] naming a queue that does not exist; else why there is no answer.
pub async fn queue_depths(config: &RabbitConfig) -> Result<Vec<QueueDepth>, RabbitError> {
    let mut link = Link::connect(config, "admin").await?;
    let (node, queues) = (link.node(), Topology::new(config).all_queues());
    let counting = async move {
        let mut depths = Vec::new();
        for queue in queues {
            depths.push(depth(&mut link, queue).await?);
        }
        Ok(depths)
    };
    call("count the messages", config.connect_timeout_ms, counting).await.map_err(|error| node.blamed(error))
}

async fn depth(link: &mut Link, queue: String) -> Result<QueueDepth, RabbitError> {
    let what = || format!("inspect queue {queue}");
    match depth_on(&link.channel, queue.clone()).await {
        Ok(Some(depth)) => Ok(depth),
        Ok(None) => Err(RabbitError::Refused { what: what(), reason: "no answer".to_owned() }),
        Err(error) => {
            let gone = link.why(&error).await;
            if gone.code == Some(NOT_FOUND) {
                return Err(RabbitError::NoQueue { queue });
            }
            Err(RabbitError::Refused { what: what(), reason: gone.to_string() })
        }
    }
}

/// Inspects one queue; run inside [`call`]. After an error, which is the library's own, the channel is of no use.
pub(super) async fn depth_on(
    channel: &Channel,
    queue: String,
) -> std::result::Result<Option<QueueDepth>, amqprs::error::Error> {
    let arguments = QueueDeclareArguments::durable_client_named(&queue).passive(true).finish();
    let answer = channel.queue_declare(arguments).await?;
    Ok(answer.map(|(_, ready, consumers)| QueueDepth { ready: u64::from(ready), consumers, queue }))
}
