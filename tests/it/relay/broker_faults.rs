//! The store for RabbitMQ when queues, channels and logins go wrong. Nothing may hang, nothing may be believed.

use crate::support::world::fault_injection::delete_order_queue;
use crate::support::world::parts::rabbit_store::{config, order, send, until_closed, until_gone};
use crate::support::world::{eventually, run};
use seckill::store::rabbit::{Consumer, PublishEvent, PublishResult, Publisher, RabbitConfig, RabbitError, declare};
use std::time::{Duration, Instant};

#[test]
fn a_wrong_password_is_reported_without_showing_it() {
    run(async {
        let good = config("login").await;
        let wrong = RabbitConfig { urls: vec![good.urls[0].replace("guest:guest", "guest:hunter2")], ..good };
        let error = declare(&wrong).await.unwrap_err();
        assert!(matches!(error, RabbitError::Connect { .. }), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    });
}

#[test]
fn a_closed_channel_ends_the_publisher_with_the_brokers_reason() {
    run(async {
        let config = config("noexchange").await;
        let mut publisher = Publisher::connect(&config).await.unwrap();
        let lost = seckill::store::rabbit::Outgoing::new(
            seckill::store::rabbit::PublishRoute { exchange: "no.such.exchange", key: "0" },
            "1",
            "{}",
        );
        publisher.publish(lost).await.unwrap();
        match publisher.next_event(Instant::now() + Duration::from_secs(5)).await {
            Some(PublishEvent::Closed(reason)) => assert!(reason.contains("404 NOT_FOUND"), "{reason}"),
            other => panic!("{other:?}"),
        }
        until_closed(&mut publisher, &config).await;
    });
}

#[test]
fn a_deleted_queue_ends_its_consumer_and_the_next_one_makes_it_again() {
    run(async {
        let config = config("deleted").await;
        let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
        delete_order_queue(&config).await;
        until_gone(&mut consumer).await;
        let mut publisher = Publisher::connect(&config).await.unwrap();
        assert_eq!(send(&mut publisher, order(&config, "0", 1)).await, PublishResult::Confirmed);
        delete_order_queue(&config).await;
        let verdict = send(&mut publisher, order(&config, "0", 2)).await;
        assert!(matches!(verdict, PublishResult::Unroutable(_)), "{verdict:?}");
    });
}

#[test]
fn a_queue_that_is_made_again_behind_its_consumer_does_not_starve_it() {
    run(async {
        let config = config("anew").await;
        for round in 0..5 {
            let mut consumer = Consumer::connect(&config, &[0], 10).await.unwrap();
            // Declared in the very moments of its deletion, the broker may not notify the consumer (window 59).
            let declaring = (0..3).map(|_| {
                let config = config.clone();
                tokio::spawn(async move {
                    for _ in 0..5 {
                        // Refused when the queue goes between its declaration and its binding.
                        drop(declare(&config).await);
                    }
                })
            });
            let declaring: Vec<_> = declaring.collect();
            delete_order_queue(&config).await;
            for task in declaring {
                task.await.unwrap();
            }
            let mut publisher = Publisher::connect(&config).await.unwrap();
            let noticed = async || {
                // What the broker has given to a consumer that is none fills its prefetch first.
                assert_eq!(send(&mut publisher, order(&config, "0", round)).await, PublishResult::Confirmed);
                match consumer.recv_group(10, Duration::from_millis(250)).await {
                    Err(RabbitError::Closed(_) | RabbitError::Starved { .. }) => true,
                    Err(other) => panic!("{other}"),
                    Ok(group) => !group.is_empty(),
                }
            };
            eventually("a consumer that is fed, or knows that it is not", noticed).await;
        }
    });
}
