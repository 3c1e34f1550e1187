//! P2, the reservation: the script in Redis, its boot fence, sales over several buckets.

mod crash;
mod damage;
mod drops;
mod fence;
mod given_up;
mod keys_lost;
mod many_grants;
mod script_model;
mod shard_sales;
mod shards;
mod transfers;
mod window;
mod withdrawals;
