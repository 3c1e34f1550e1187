//! The store for RabbitMQ on virtual hosts of its own, without any role: messages to send, and to wait for.

use crate::support::world::shared;
use seckill::dev::PrivateServers;
use seckill::store::rabbit::{
    Confirms, Consumer, Delivery, Outgoing, PublishEvent, PublishResult, PublishRoute, Publisher, RabbitConfig,
    RabbitError, Topology,
};
use std::time::{Duration, Instant};

/// A virtual host of its own on the shared broker.
pub async fn config(name: &str) -> RabbitConfig {
    config_on(shared().await, name).await
}

/// A virtual host of its own on these servers.
pub async fn config_on(servers: &PrivateServers, name: &str) -> RabbitConfig {
    let vhost = format!("store-{name}");
    servers.add_vhost(&vhost).await.unwrap();
    // Fast enough for tests, and a frozen broker is noticed after 4 s.
    RabbitConfig {
        heartbeat_s: 2,
        connect_timeout_ms: 10_000,
        retry_delay_ms: 200,
        retry_delay_max_ms: 400,
        ..RabbitConfig::new(servers.urls().amqp_url.replace("%2f", &vhost))
    }
}

pub fn order(config: &RabbitConfig, key: &str, id: usize) -> Outgoing {
    let exchange = Topology::new(config).orders_exchange();
    Outgoing::new(PublishRoute { exchange: &exchange, key }, format!("id-{id}"), format!("body {id}"))
}

/// Waits until every publish has its answer.
pub async fn settle<T>(publisher: &mut Publisher, confirms: &mut Confirms<T>) -> Vec<(T, PublishResult)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut answers = Vec::new();
    while !confirms.is_empty() {
        let event = publisher.next_event(deadline).await.expect("an answer in time");
        assert!(!matches!(event, PublishEvent::Closed(_)), "{event:?}");
        answers.extend(confirms.apply(event));
    }
    answers
}

pub async fn send(publisher: &mut Publisher, message: Outgoing) -> PublishResult {
    let mut confirms = Confirms::new();
    let tag = publisher.publish(message).await.unwrap();
    confirms.sent(tag, (), Instant::now());
    settle(publisher, &mut confirms).await.pop().unwrap().1
}

/// Publishes with a window, as the relay does.
pub async fn send_many(publisher: &mut Publisher, messages: impl Iterator<Item = Outgoing>, window: usize) -> usize {
    let deadline = Instant::now() + Duration::from_secs(60);
    let (mut confirms, mut confirmed) = (Confirms::new(), 0);
    let count =
        |answers: Vec<((), PublishResult)>| answers.iter().filter(|(_, v)| *v == PublishResult::Confirmed).count();
    for message in messages {
        while confirms.len() >= window {
            confirmed += count(confirms.apply(publisher.next_event(deadline).await.unwrap()));
        }
        let tag = publisher.publish(message).await.unwrap();
        confirms.sent(tag, (), Instant::now());
    }
    confirmed + count(settle(publisher, &mut confirms).await)
}

/// Waits until `count` deliveries are there.
pub async fn receive(consumer: &mut Consumer, count: usize) -> Vec<Delivery> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut all = Vec::new();
    while all.len() < count && Instant::now() < deadline {
        all.extend(consumer.recv_group(count - all.len(), Duration::from_secs(1)).await.unwrap());
    }
    assert_eq!(all.len(), count);
    all
}

/// Publishes and listens until the publisher says that it is closed; returns how long that took.
pub async fn until_closed(publisher: &mut Publisher, config: &RabbitConfig) -> Duration {
    let start = Instant::now();
    let deadline = start + Duration::from_secs(15);
    loop {
        // Errors here are as good as the event, which must still come.
        drop(publisher.publish(order(config, "0", 9)).await);
        match publisher.next_event(deadline.min(Instant::now() + Duration::from_millis(100))).await {
            Some(PublishEvent::Closed(_)) => break,
            Some(_) | None => assert!(Instant::now() < deadline, "the publisher noticed nothing"),
        }
    }
    assert!(!publisher.is_open());
    assert!(matches!(publisher.publish(order(config, "0", 9)).await, Err(RabbitError::Closed(_))));
    assert!(matches!(publisher.try_event(), Some(PublishEvent::Closed(_))));
    start.elapsed()
}

/// Receives until the consumer says that it is closed; returns how long that took.
pub async fn until_gone(consumer: &mut Consumer) -> Duration {
    let start = Instant::now();
    loop {
        match consumer.recv_group(10, Duration::from_secs(15)).await {
            Err(RabbitError::Closed(_)) => break,
            Err(other) => panic!("{other}"),
            Ok(group) => assert!(!group.is_empty(), "the consumer noticed nothing"),
        }
    }
    assert!(matches!(consumer.ack(&[]).await, Err(RabbitError::Closed(_))));
    start.elapsed()
}
