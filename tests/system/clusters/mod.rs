//! A Redis Cluster, and a Redis with sentinels, of a test's own.

mod access;
mod cluster_harness;
mod failover;
mod load;
mod promises;
mod sales;
mod sentinel;
mod sentinel_harness;
mod shards;
