//! Notices a Redis server that fell silent, also while no order lands.
//!
//! A connection is given up when commands have waited on it and nothing was answered (`store/redis/connection/link.rs`), so
//! somebody has to ask. The api and the relay ask all the time; the consumer has only marks for the ledgers. Without this
//! worker it noticed a single server that vanished without a word at its next mark, and one of a Cluster after some twelve
//! seconds: the question about slots waits for half a second only, every one and a half.
//!
//! Input: none. Output: a PING a second to each server that has data, and faults while one does not answer; nothing waits for
//! it. Keeps nothing; a crash leaves nothing.

use crate::domain::fault::{Fault, Progress};
use crate::runtime::Worker;
use crate::store::redis::{RedisFault, RedisHealth};

/// The worker; one in each process with the consumer role.
pub(crate) struct RedisWatch {
    health: RedisHealth,
}

impl RedisWatch {
    /// Over the connections that marks are written on.
    #[must_use]
    pub(crate) fn new(health: RedisHealth) -> Self {
        Self { health }
    }
}

impl Worker for RedisWatch {
    fn name(&self) -> &'static str {
        "p4_redis"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        match self.health.ping().await {
            // A refusal is an answer, too.
            Ok(()) | Err(RedisFault::Refused(_) | RedisFault::NoScript | RedisFault::Contract(_)) => Ok(Progress::Idle),
            Err(fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_))) => Err(Fault::back_off(fault)),
        }
    }
}
