//! Faults on the links between a process and a server, and between buyers and an api.

use super::plan::{Fault, LINKS, Place};
use super::{Field, Outcome};
use crate::support::links::conditions::{LinkConditions, OneWayConditions};
use crate::support::links::link::Link;
use crate::time::{pause, time_passes};
use seckill::roles::Role;
use std::time::Instant;

/// Longest delay, milliseconds, and the narrowest link, bytes a second.
const DELAY_MS_MAX: u32 = 1_000;
const NARROWEST: u32 = 2_000;

/// What the server says comes late, or both directions do.
pub(super) fn delay(dice: u32) -> LinkConditions {
    let late = OneWayConditions { delay_ms: u64::from(20 + dice % DELAY_MS_MAX), ..OneWayConditions::default() };
    let to_server = if dice.is_multiple_of(2) { late } else { OneWayConditions::default() };
    LinkConditions { to_server, to_client: late, ..LinkConditions::default() }
}

/// A narrow link.
pub(super) fn throttle(dice: u32) -> LinkConditions {
    let narrow = OneWayConditions { bytes_per_s: (NARROWEST + dice % 30_000) as usize, ..OneWayConditions::default() };
    LinkConditions { to_server: narrow, to_client: narrow, ..LinkConditions::default() }
}

/// Nothing goes through to the server, to the client, or at all.
pub(super) fn partition(to_server: bool, to_client: bool) -> LinkConditions {
    let lane = |black_hole| OneWayConditions { black_hole, ..OneWayConditions::default() };
    LinkConditions { to_server: lane(to_server), to_client: lane(to_client), ..LinkConditions::default() }
}

impl Field {
    fn link(&self, target: Place) -> &Link {
        let Place::Link(_, _, link) = target else { panic!("{target} is no link") };
        let links = &self.process(target).links;
        links.all().find(|(name, _)| *name == LINKS[link]).map(|(_, link)| link).expect("of the plan")
    }

    /// Changes the conditions for a while.
    pub(super) async fn conditions(&self, fault: Fault, conditions: LinkConditions) -> Outcome {
        let link = self.link(fault.target);
        link.change(|now| now.set_to(conditions));
        time_passes(fault.length_ms).await;
        link.change(LinkConditions::clear);
        Outcome::of(true)
    }

    pub(super) fn reset(&self, target: Place) -> Outcome {
        let link = self.link(target);
        let open = link.open();
        link.reset();
        Outcome::of(open > 0)
    }

    /// Counts only when a request came by and its reply was really thrown away.
    pub(super) async fn drop_reply(&self, fault: Fault) -> Outcome {
        let (link, patterns) = (self.link(fault.target), patterns(fault.target));
        let pattern = patterns[fault.dice as usize % patterns.len()];
        let (before, begun) = (link.fired(), Instant::now());
        link.drop_next_reply(pattern);
        while link.fired() == before && begun.elapsed().as_millis() < u128::from(fault.length_ms) {
            pause().await;
        }
        link.disarm();
        let note = Some(pattern.escape_ascii().to_string());
        Outcome { injected: link.fired() > before, note }
    }
}

/// Requests whose reply is worth losing: what executes something in the server.
fn patterns(target: Place) -> &'static [&'static [u8]] {
    /// `basic.publish` and `basic.ack` as they stand in a frame.
    const PUBLISH: &[u8] = b"\x00\x3c\x00\x28";
    const ACK: &[u8] = b"\x00\x3c\x00\x50";
    let Place::Link(role, _, link) = target else { panic!("{target} is no link") };
    match (role, LINKS[link]) {
        (Role::Api, "redis") => &[b"EVALSHA"],
        (Role::Relay, "redis") => &[b"XREADGROUP", b"EVALSHA", b"XAUTOCLAIM"],
        (Role::Relay, "amqp") => &[PUBLISH],
        (Role::Consumer, "amqp") => &[ACK, ACK, PUBLISH],
        (Role::Consumer | Role::Reconcile, "mysql") => &[b"COMMIT", b"INSERT", b""],
        (Role::Api, "clients") => &[b"POST "],
        (Role::Api | Role::Relay | Role::Consumer | Role::Reconcile, _) => &[b""],
    }
}
