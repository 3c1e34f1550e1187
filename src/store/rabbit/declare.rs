//! Making sure that exchanges and queues exist.
//!
//! Declaring is idempotent and done by every new publisher, and by a consumer whose queue is missing (unless `rabbitmq.declare`
//! is off), so a queue deleted by hand is back after a reconnect. A crash in the middle leaves a part of the topology, which the
//! next one completes. A consumer consumes first: on a slow broker with many queues declaring everything within one deadline
//! failed each time, and nothing was persisted (a slow broker is not a dead one).

use super::config::RabbitConfig;
use super::error::{RabbitError, RabbitResult};
use super::link::{Link, call};
use super::topology::{QueueSpec, Topology, table};
use amqprs::FieldValue;
use amqprs::channel::{ExchangeDeclareArguments, QueueBindArguments, QueueDeclareArguments};

const NOT_FOUND: u16 = 404;
const PRECONDITION_FAILED: u16 = 406;

/// Creates what is missing (without `declare` only checks), over a connection of its own. Each call to the broker has
/// `connect_timeout_ms`.
///
/// # Errors
/// [`RabbitError::Mismatch`] naming the queue or exchange that exists with other settings; else why there is no
/// connection, or what the broker refused.
pub async fn declare(config: &RabbitConfig) -> RabbitResult<()> {
    declare_of(config, Topology::new(config)).await
}

/// The same for a part of the topology.
pub(crate) async fn declare_of(config: &RabbitConfig, topology: Topology) -> RabbitResult<()> {
    connect_and_declare(config, topology, "declare").await.map(drop)
}

/// A link on which all of `topology` has been declared, or without `declare` only checked. `role` shows in the broker's list of
/// connections.
///
/// Nearly always everything is there, so it is first declared without waiting for each answer: with hundreds of queues and a
/// broker that is far away, an answer a step is seconds of waiting at every reconnect. If anything goes wrong, it is declared
/// again on a new connection, step by step: only so the broker's refusal can be assigned to a queue, and a broker that takes its
/// time with each of thirty steps is slow, not gone, and would never be done within one deadline.
pub(super) async fn connect_and_declare(
    config: &RabbitConfig,
    topology: Topology,
    role: &'static str,
) -> RabbitResult<Link> {
    match declare_together(Link::connect(config, role).await?, config, &topology).await {
        Ok(link) => Ok(link),
        Err(error) => {
            tracing::debug!(%error, "declaring exchanges and queues step by step");
            let link = Link::connect(config, role).await?;
            let node = link.node();
            declare_stepwise(link, config, &topology).await.map_err(|error| node.blamed(error))
        }
    }
}

/// Steps that are sent together; the last of them is answered, and by that all of them. The broker works off a channel in order.
const STEPS_TOGETHER: usize = 64;

/// One declaration.
enum DeclareStep {
    Exchange(ExchangeDeclareArguments),
    Queue(QueueDeclareArguments),
    Binding(QueueBindArguments),
}

impl DeclareStep {
    async fn send(self, link: &Link, no_wait: bool) -> Result<(), amqprs::error::Error> {
        match self {
            Self::Exchange(mut arguments) => link.channel.exchange_declare(arguments.no_wait(no_wait).finish()).await,
            Self::Queue(mut arguments) => {
                link.channel.queue_declare(arguments.no_wait(no_wait).finish()).await.map(|_depth| ())
            }
            Self::Binding(mut arguments) => link.channel.queue_bind(arguments.no_wait(no_wait).finish()).await,
        }
    }
}

impl Topology {
    fn steps(&self) -> Vec<DeclareStep> {
        let check_only = !self.declare;
        let exchange = |(name, kind): (String, &'static str)| {
            DeclareStep::Exchange(ExchangeDeclareArguments::new(&name, kind).durable(true).passive(check_only).finish())
        };
        let mut steps: Vec<DeclareStep> = self.exchanges().into_iter().map(exchange).collect();
        for spec in self.specs() {
            let binding = QueueBindArguments::new(&spec.name, &spec.exchange, &spec.routing_key);
            steps.push(DeclareStep::Queue(queue_arguments(&spec.name, spec.arguments, check_only)));
            if !check_only {
                steps.push(DeclareStep::Binding(binding));
            }
        }
        steps
    }
}

fn queue_arguments(name: &str, arguments: Vec<(&'static str, FieldValue)>, check_only: bool) -> QueueDeclareArguments {
    QueueDeclareArguments::durable_client_named(name).arguments(table(arguments)).passive(check_only).finish()
}

async fn declare_together(mut link: Link, config: &RabbitConfig, topology: &Topology) -> RabbitResult<Link> {
    let mut steps = topology.steps().into_iter().peekable();
    while steps.peek().is_some() {
        let together: Vec<DeclareStep> = steps.by_ref().take(STEPS_TOGETHER).collect();
        link = call("declare exchanges and queues", config.connect_timeout_ms, async move {
            let last = together.len() - 1;
            for (at, step) in together.into_iter().enumerate() {
                if let Err(error) = step.send(&link, at < last).await {
                    let reason = link.why(&error).await.to_string();
                    return Err(RabbitError::Refused { what: "declare exchanges and queues".to_owned(), reason });
                }
            }
            Ok(link)
        })
        .await?;
    }
    Ok(link)
}

/// A step has `connect_timeout_ms`, not the whole.
async fn declare_stepwise(mut link: Link, config: &RabbitConfig, topology: &Topology) -> RabbitResult<Link> {
    let check_only = !topology.declare;
    for (name, kind) in topology.exchanges() {
        link = call("declare an exchange", config.connect_timeout_ms, async move {
            let arguments = ExchangeDeclareArguments::new(&name, kind).durable(true).passive(check_only).finish();
            match link.channel.exchange_declare(arguments).await {
                Ok(()) => Ok(link),
                Err(error) => Err(refused(&mut link, "exchange", name, &error).await),
            }
        })
        .await?;
    }
    for spec in topology.specs() {
        link = call("declare a queue", config.connect_timeout_ms, declare_queue(link, spec, check_only)).await?;
    }
    Ok(link)
}

async fn declare_queue(mut link: Link, spec: QueueSpec, check_only: bool) -> RabbitResult<Link> {
    let arguments = queue_arguments(&spec.name, spec.arguments, check_only);
    if let Err(error) = link.channel.queue_declare(arguments).await {
        return Err(refused(&mut link, "queue", spec.name, &error).await);
    }
    if check_only {
        return Ok(link);
    }
    let binding = QueueBindArguments::new(&spec.name, &spec.exchange, &spec.routing_key);
    match link.channel.queue_bind(binding).await {
        Ok(()) => Ok(link),
        Err(error) => Err(refused(&mut link, "binding of queue", spec.name, &error).await),
    }
}

pub(super) async fn refused(
    link: &mut Link,
    kind: &'static str,
    name: String,
    error: &amqprs::error::Error,
) -> RabbitError {
    let gone = link.why(error).await;
    match gone.code {
        Some(PRECONDITION_FAILED) => return RabbitError::Mismatch { kind, name, reason: gone.to_string() },
        Some(NOT_FOUND) => return RabbitError::NoQueue { queue: name },
        Some(_) | None => {}
    }
    RabbitError::Refused { what: format!("declare {kind} {name}"), reason: gone.to_string() }
}
