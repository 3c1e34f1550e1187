//! A server of a Redis Cluster is lost while a crowd buys: the cases that `tests/system` has no time for.

use crate::support::processes::lost_primary::{Loss, lose_a_primary};
use crate::support::world::run_waiting;

#[test]
fn a_primary_frozen_in_a_crowd_stops_its_share_only_and_nothing_is_lost() {
    run_waiting(lose_a_primary("load-freeze", Loss::Frozen, &[]));
}

#[test]
fn with_lists_a_primary_killed_in_a_crowd_stops_its_share_only_and_nothing_is_lost() {
    run_waiting(lose_a_primary("load-list", Loss::Killed, &["redis.outbox=list"]));
}
