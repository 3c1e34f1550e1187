//! The store for RabbitMQ when all is well: round trips, confirms, retries, dead letters, counting.

use crate::support::world::parts::rabbit_store::{config, order, receive, send, send_many};
use crate::support::world::run;
use seckill::config::QueueType;
use seckill::store::rabbit::{
    ATTEMPT_HEADER, Consumer, Delivery, DlqReader, HeaderValue, Outgoing, ParkedMessage, PublishResult, PublishRoute,
    Publisher, RabbitConfig, RabbitError, Topology, broker_info, browse_dlq, declare, queue_depths,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_message_goes_round_with_everything_it_carries() {
    run(async {
        for (prefix, queue_type) in [("round", QueueType::Quorum), ("classic", QueueType::Classic)] {
            let config = RabbitConfig { queue_type, queues: 2, ..config(prefix).await };
            let mut publisher = Publisher::connect(&config).await.unwrap();
            let mut consumer = Consumer::connect(&config, &[0, 1], 10).await.unwrap();
            let message = order(&config, "1", 7)
                .header(ATTEMPT_HEADER, HeaderValue::Int(2))
                .header("x-death", HeaderValue::Text("not ours to send".to_owned()));
            assert_eq!(send(&mut publisher, message).await, PublishResult::Confirmed);
            let got = receive(&mut consumer, 1).await.pop().unwrap();
            assert_eq!((got.body.as_slice(), got.message_id.as_deref()), (b"body 7".as_slice(), Some("id-7")));
            assert_eq!((&*got.routing_key, got.attempts, got.redelivered), ("1", 2, false));
            assert!(!got.headers.contains_key("x-death"));
            consumer.ack(&[got.id]).await.unwrap();
            assert!(matches!(consumer.ack(&[got.id]).await, Err(RabbitError::Stale { .. })));
            let mut other = Consumer::connect(&config, &[0, 1], 10).await.unwrap();
            assert!(matches!(other.ack(&[got.id]).await, Err(RabbitError::Stale { .. })));
            drop(consumer);
            assert!(other.recv_group(9, SHORT).await.unwrap().is_empty());
        }
    });
}

#[test]
fn an_unroutable_message_is_a_failure_although_the_broker_acknowledges_it() {
    run(async {
        let config = config("unroutable").await;
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let verdict = send(&mut publisher, order(&config, "77", 1)).await;
        assert_eq!(verdict, PublishResult::Unroutable("312 NO_ROUTE".to_owned()));
        assert_eq!(send(&mut publisher, order(&config, "0", 2)).await, PublishResult::Confirmed);
        let events = Topology::new(&config).events_exchange();
        let event = Outgoing::new(PublishRoute { exchange: &events, key: "order.confirmed" }, "1", "{}").optional();
        assert_eq!(send(&mut publisher, event).await, PublishResult::Confirmed);
    });
}

#[test]
fn a_thousand_messages_arrive_exactly_once() {
    run(async {
        let config = RabbitConfig { queues: 3, ..config("thousand").await };
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let messages = (0..1_000).map(|n| order(&config, ["0", "1", "2"][n % 3], n));
        assert_eq!(send_many(&mut publisher, messages, 256).await, 1_000);
        let mut consumer = Consumer::connect(&config, &[0, 1, 2], 100).await.unwrap();
        let mut seen = BTreeSet::new();
        while seen.len() < 1_000 {
            let group = consumer.recv_group(64, Duration::from_secs(5)).await.unwrap();
            assert!(!group.is_empty(), "only {} arrived", seen.len());
            for delivery in &group {
                assert!(seen.insert(delivery.body.clone()), "came twice");
            }
            // In two steps and out of order, so that single and multiple acks both happen.
            let ids: Vec<_> = group.iter().rev().map(|d| d.id).collect();
            let (late, early) = ids.split_at(ids.len() / 2);
            consumer.ack(late).await.unwrap();
            consumer.ack(early).await.unwrap();
        }
        assert_eq!(consumer.unacked(), 0);
        assert!(consumer.recv_group(1, SHORT).await.unwrap().is_empty());
        drop(consumer);
        assert!(
            Consumer::connect(&config, &[0, 1, 2], 9).await.unwrap().recv_group(1, SHORT).await.unwrap().is_empty()
        );
    });
}

/// Sends the orders with these numbers as one message.
async fn send_bundle(config: &RabbitConfig, publisher: &mut Publisher, ids: Range<usize>) -> PublishResult {
    let orders: Vec<_> = ids.map(|n| (format!("id-{n}"), format!("body {n}"))).collect();
    let parts = orders.iter().map(|(id, body)| (id.as_str(), body.as_bytes()));
    let exchange = Topology::new(config).orders_exchange();
    send(publisher, Outgoing::bundle(PublishRoute { exchange: &exchange, key: "0" }, parts)).await
}

#[test]
fn the_orders_of_a_message_are_given_out_one_by_one_and_it_is_gone_with_the_last() {
    run(async {
        let config = config("bundle").await;
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        assert_eq!(send_bundle(&config, &mut publisher, 0..5).await, PublishResult::Confirmed);
        send(&mut publisher, order(&config, "0", 5)).await;
        // No more than was asked for, and the rest without waiting for another message.
        let (two, four) = (receive(&mut consumer, 2).await, receive(&mut consumer, 4).await);
        let all: Vec<&Delivery> = two.iter().chain(&four).collect();
        for (n, delivery) in all.iter().enumerate() {
            assert_eq!(delivery.message_id, Some(format!("id-{n}")));
            assert_eq!((delivery.body.clone(), delivery.redelivered), (format!("body {n}").into_bytes(), false));
        }
        assert_eq!(consumer.unacked(), 2, "messages");
        consumer.ack(&[all[5].id, all[0].id, all[3].id, all[1].id, all[4].id]).await.unwrap();
        assert_eq!(consumer.unacked(), 1);
        assert!(matches!(consumer.ack(&[all[0].id]).await, Err(RabbitError::Stale { .. })));
        drop(consumer);
        // One of the five was not acknowledged: all of them come again.
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        let again = receive(&mut consumer, 5).await;
        assert!(again.iter().all(|delivery| delivery.redelivered));
        consumer.ack(&again.iter().map(|delivery| delivery.id).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(consumer.unacked(), 0);
        assert!(consumer.recv_group(1, SHORT).await.unwrap().is_empty());
        drop(consumer);
        assert!(Consumer::connect(&config, &[0], 9).await.unwrap().recv_group(1, SHORT).await.unwrap().is_empty());
    });
}

#[test]
fn the_orders_of_a_dead_message_are_read_one_by_one_and_it_is_gone_with_the_last() {
    run(async {
        let config = RabbitConfig { queues: 2, ..config("dead-bundle").await };
        let mut publisher = Publisher::connect(&config).await.unwrap();
        send_bundle(&config, &mut publisher, 0..3).await;
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        let group = receive(&mut consumer, 3).await;
        consumer.reject(group[1].id).await.unwrap();
        let dlq = Topology::new(&config).dlq();
        wait_for_depth(&config, &dlq, 1).await;
        let named = |parked: &[ParkedMessage]| parked.iter().map(|p| p.message_id.clone().unwrap()).collect::<Vec<_>>();
        let all = browse_dlq(&config, 10).await.unwrap();
        assert_eq!(named(&all), ["id-0", "id-1", "id-2"]);
        assert_eq!(named(&browse_dlq(&config, 2).await.unwrap()), ["id-0", "id-1"]);
        for (removed, left) in [(2, 1), (3, 0)] {
            let mut reader = DlqReader::connect(&config).await.unwrap();
            let mut held = Vec::new();
            while let Some(parked) = reader.next().await.unwrap() {
                held.push(parked);
            }
            for parked in &held[..removed] {
                reader.remove(parked).await.unwrap();
                assert!(matches!(reader.remove(parked).await, Err(RabbitError::Stale { .. })));
            }
            reader.close().await.unwrap();
            wait_for_depth(&config, &dlq, left).await;
        }
    });
}

#[test]
fn a_retry_comes_back_after_its_delay_with_its_routing_key_any_number_of_times() {
    run(async {
        let config = RabbitConfig { queues: 2, ..config("retry").await };
        let topology = Topology::new(&config);
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let mut consumer = Consumer::connect(&config, &[0, 1], 10).await.unwrap();
        send(&mut publisher, order(&config, "1", 5)).await;
        for attempt in 1..=4 {
            let got = receive(&mut consumer, 1).await.pop().unwrap();
            assert_eq!((got.attempts, &*got.routing_key), (attempt - 1, "1"));
            let start = Instant::now();
            let again = Outgoing::new(
                PublishRoute { exchange: &topology.retry_exchange(attempt), key: &got.routing_key },
                "id-5",
                got.body,
            )
            .headers(got.headers)
            .header(ATTEMPT_HEADER, HeaderValue::Int(i64::from(attempt)));
            assert_eq!(send(&mut publisher, again).await, PublishResult::Confirmed);
            consumer.ack(&[got.id]).await.unwrap();
            let early =
                Duration::from_millis(topology.retry_delay_ms(attempt)).saturating_sub(Duration::from_millis(50));
            assert!(consumer.recv_group(1, early.saturating_sub(start.elapsed())).await.unwrap().is_empty());
        }
        let got = receive(&mut consumer, 1).await.pop().unwrap();
        assert_eq!(
            (got.attempts, got.message_id.as_deref(), got.body.as_slice()),
            (4, Some("id-5"), b"body 5".as_slice())
        );
    });
}

#[test]
fn what_is_not_acknowledged_comes_again() {
    run(async {
        let config = config("again").await;
        let mut publisher = Publisher::connect(&config).await.unwrap();
        send_many(&mut publisher, (0..3).map(|n| order(&config, "0", n)), 3).await;
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        let group = receive(&mut consumer, 3).await;
        consumer.ack(&[group[1].id]).await.unwrap();
        consumer.requeue(group[2].id).await.unwrap();
        let back = receive(&mut consumer, 1).await.pop().unwrap();
        assert!(back.redelivered && back.body == b"body 2");
        drop(consumer);
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        let rest = receive(&mut consumer, 2).await;
        assert!(rest.iter().all(|d| d.redelivered));
        assert!(rest.iter().any(|d| d.body == b"body 0") && rest.iter().any(|d| d.body == b"body 2"));
    });
}

#[test]
fn dead_letters_are_counted_read_and_removed_one_by_one() {
    run(async {
        let config = RabbitConfig { queues: 2, ..config("dead").await };
        assert!(
            matches!(queue_depths(&config).await, Err(RabbitError::NoQueue { queue }) if queue == "seckill.orders.0")
        );
        let mut publisher = Publisher::connect(&config).await.unwrap();
        send_many(&mut publisher, (0..3).map(|n| order(&config, "1", n)), 3).await;
        let mut consumer = Consumer::connect(&config, &[0, 1], 10).await.unwrap();
        for delivery in receive(&mut consumer, 3).await {
            consumer.reject(delivery.id).await.unwrap();
        }
        let dlq = Topology::new(&config).dlq();
        wait_for_depth(&config, &dlq, 3).await;
        let all = browse_dlq(&config, 10).await.unwrap();
        assert_eq!(all.len(), 3);
        assert!(all.iter().all(|p| p.routing_key == "1" && p.message_id.is_some()));
        assert_eq!(all[0].headers.get("x-first-death-reason"), Some(&HeaderValue::Text("rejected".to_owned())));
        assert_eq!(browse_dlq(&config, 2).await.unwrap().len(), 2);
        wait_for_depth(&config, &dlq, 3).await;
        let mut reader = DlqReader::connect(&config).await.unwrap();
        let (first, second) = (reader.next().await.unwrap().unwrap(), reader.next().await.unwrap().unwrap());
        assert!(matches!(reader.remove(&all[0]).await, Err(RabbitError::Stale { .. })));
        reader.remove(&second).await.unwrap();
        reader.close().await.unwrap();
        wait_for_depth(&config, &dlq, 2).await;
        let left = browse_dlq(&config, 10).await.unwrap();
        assert!(left.iter().any(|p| p.body == first.body) && left.iter().all(|p| p.body != second.body));
    });
}

/// Dead-lettering and requeueing go on after the call that caused them.
async fn wait_for_depth(config: &RabbitConfig, queue: &str, ready: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let depths = queue_depths(config).await.unwrap();
        assert_eq!(depths.len(), 2 + 2 + 1);
        let now = depths.iter().find(|d| d.queue == queue).unwrap().ready;
        if now == ready {
            return;
        }
        assert!(Instant::now() < deadline, "{queue} has {now} messages, not {ready}");
    }
}

#[test]
fn declaring_again_changes_nothing_and_a_wrong_queue_is_named() {
    run(async {
        let config = config("declare").await;
        declare(&config).await.unwrap();
        declare(&config).await.unwrap();
        assert_eq!(broker_info(&config).await.unwrap().product, "RabbitMQ");
        let wrong = RabbitConfig { queue_type: QueueType::Classic, ..config };
        let error = declare(&wrong).await.unwrap_err();
        assert!(matches!(&error, RabbitError::Mismatch { name, .. } if name == "seckill.orders.0"), "{error}");
        assert!(error.to_string().contains("let it drain"), "{error}");
        assert_eq!(Publisher::connect(&wrong).await.err(), Some(error));
        // A consumer takes what is there, whatever it was declared with.
        assert!(Consumer::connect(&wrong, &[0], 1).await.is_ok());
    });
}
