//! Exchanges and queues are declared at every connect of a publisher: in a few round trips, however many queues there are.

use crate::support::links::link::Link;
use crate::support::world::fault_injection::port_of;
use crate::support::world::parts::rabbit_store::{config, order, send};
use crate::support::world::run;
use seckill::config::QueueType;
use seckill::store::rabbit::{PublishResult, Publisher, RabbitConfig, RabbitError, declare, queue_depths};

const QUEUES: u16 = 100;

#[test]
fn a_publisher_of_many_queues_connects_in_a_few_round_trips() {
    run(async {
        let near = RabbitConfig { queues: QUEUES, queue_type: QueueType::Classic, ..config("far").await };
        let link = Link::slow(port_of(&near.urls[0]), 5).await;
        let far = RabbitConfig { urls: vec![link.url(&near.urls[0])], ..near.clone() };
        // Made by the first one, found by the second.
        for (what, config) in [
            ("made", far.clone()),
            ("found", far.clone()),
            ("only checked", RabbitConfig { declare: false, ..far.clone() }),
        ] {
            let before = link.trips();
            let mut publisher = Publisher::connect(&config).await.unwrap();
            let trips = link.trips() - before;
            assert!(trips < u64::from(QUEUES) / 2, "{what}: {trips} round trips for {QUEUES} queues");
            let last = (QUEUES - 1).to_string();
            assert_eq!(send(&mut publisher, order(&config, &last, 1)).await, PublishResult::Confirmed, "{what}");
        }
        assert_eq!(queue_depths(&near).await.unwrap().iter().map(|depth| depth.ready).sum::<u64>(), 3);
    });
}

#[test]
fn what_the_broker_refuses_among_many_is_named() {
    run(async {
        let config = RabbitConfig { queues: 40, queue_type: QueueType::Classic, ..config("among").await };
        let one = RabbitConfig { queues: 1, ..config.clone() };
        declare(&one).await.unwrap();
        let other = RabbitConfig { queue_type: QueueType::Quorum, ..config.clone() };
        match Publisher::connect(&other).await.map(drop) {
            Err(RabbitError::Mismatch { name, .. }) => assert_eq!(name, format!("{}.orders.0", config.prefix)),
            other => panic!("{other:?}"),
        }
        let only_checks = RabbitConfig { declare: false, ..config };
        let missing = format!("{}.orders.1", only_checks.prefix);
        match declare(&only_checks).await {
            Err(RabbitError::NoQueue { queue }) => assert_eq!(queue, missing),
            other => panic!("{other:?}"),
        }
    });
}
