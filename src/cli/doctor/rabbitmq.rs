//! The checks of RabbitMQ: version, queue type, topology, consumers.

use super::check::{CheckVerdict, DoctorCheck, at_least, dlq_check};
use crate::config::QueueType;
use crate::store::rabbit::{RabbitConfig, RabbitError, Topology, broker_info, declare, queue_depths};

/// Name of the check of the topology.
pub(super) const DECLARED: &str = "queues and exchanges";

pub(super) async fn check_rabbitmq(config: &RabbitConfig) -> Vec<DoctorCheck> {
    const SERVER: &str = "rabbitmq";
    let info = match broker_info(config).await {
        Ok(info) => info,
        Err(error) => return vec![DoctorCheck::away(SERVER, &error)],
    };
    let ok = at_least(&info.version, [3, 10]);
    let mut found = vec![
        DoctorCheck::new(SERVER, "version", format!("{} {}", info.product, info.version), "3.10 or newer").judged(
            ok,
            CheckVerdict::Wrong,
            "older quorum queues do not know message TTL and at-least-once dead-lettering",
            "upgrade RabbitMQ",
        ),
        DoctorCheck::new(SERVER, "rabbitmq.queue_type", format!("{:?}", config.queue_type).to_lowercase(), "quorum")
            .judged(
                config.queue_type == QueueType::Quorum,
                CheckVerdict::Warning,
                "classic queues may lose a message while they dead-letter it; P5 then lands it from the ledger",
                "rabbitmq.queue_type = \"quorum\"",
            ),
    ];
    found.extend(topology(config).await);
    if config.queue_type == QueueType::Quorum {
        found.push(members());
    }
    found.push(policies());
    found
}

/// A policy beats what a queue was declared with, and a connection of a client does not show it.
fn policies() -> DoctorCheck {
    DoctorCheck::new("rabbitmq", "policies", "not shown to clients", "").noted(
        "none may match these queues with message-ttl, max-length, overflow or expires: it beats the queues' own arguments, and \
         orders vanish without a word until P5 writes them",
        "rabbitmqctl list_policies -p VHOST; rabbitmqctl list_operator_policies -p VHOST",
    )
}

/// A connection of a client learns neither who leads a queue nor who has a copy of it.
fn members() -> DoctorCheck {
    DoctorCheck::new("rabbitmq", "leader and members of each queue", "not shown to clients", "").noted(
        "each queue should have a member on every node, and the nodes as many leaders as each other; a queue that was declared \
         while a node was away has no member there, and leaders stay where a failure put them",
        "rabbitmqctl list_queues -p VHOST name leader members online; then rabbitmq-queues grow NODE all, rabbitmq-queues \
         rebalance quorum",
    )
}

/// Queues and exchanges: there, as this build makes them, consumed.
async fn topology(config: &RabbitConfig) -> Vec<DoctorCheck> {
    const SERVER: &str = "rabbitmq";
    let depths = match queue_depths(config).await {
        Ok(depths) => depths,
        Err(error @ RabbitError::NoQueue { .. }) => {
            let check = DoctorCheck::new(SERVER, DECLARED, error.to_string(), "all there");
            return vec![if config.declare {
                check.judged(
                    false,
                    CheckVerdict::Warning,
                    "a relay or a consumer makes them when it starts",
                    "start the roles",
                )
            } else {
                check.judged(
                    false,
                    CheckVerdict::Wrong,
                    "with rabbitmq.declare = false the roles do not make them",
                    "seckill topology",
                )
            }];
        }
        Err(error) => return vec![DoctorCheck::away(SERVER, &error)],
    };
    // Everything is there, so declaring creates nothing: it only compares the arguments.
    let same = declare(config).await;
    let fine = if config.declare { "as this build makes them" } else { "all there; not compared (rabbitmq.declare)" };
    let value = same.as_ref().map_or_else(ToString::to_string, |()| fine.to_owned());
    let change = match &same {
        Err(error) if error.is_denied() => "give the account the right, or set rabbitmq.declare = false",
        Ok(()) | Err(_) => {
            "let the queue drain, delete it and let a role make it again, or choose another rabbitmq.prefix"
        }
    };
    let mut found = vec![DoctorCheck::new(SERVER, DECLARED, value, "as this build makes them").judged(
        same.is_ok(),
        CheckVerdict::Wrong,
        "with other arguments messages could be dropped, or the roles cannot connect",
        change,
    )];
    let names = Topology::new(config);
    let orders: Vec<String> = (0..config.queues).map(|index| names.orders_queue(index)).collect();
    for depth in depths {
        if depth.queue == names.dlq() {
            found.push(dlq_check(SERVER, depth.queue, depth.ready));
            continue;
        }
        let value = format!("{} ready, {} consumers", depth.ready, depth.consumers);
        if !orders.contains(&depth.queue) {
            found.push(DoctorCheck::new(SERVER, depth.queue, value, "for information"));
            continue;
        }
        found.push(DoctorCheck::new(SERVER, depth.queue, value, "a consumer").judged(
            depth.consumers > 0,
            CheckVerdict::Warning,
            "this queue has no consumer: orders wait",
            "start a consumer: seckill --role consumer",
        ));
    }
    found
}
