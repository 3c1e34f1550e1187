//! What H1 promises of time and of other buyers, as bounds of a scene. And that the scene was one: a crowd bought, the fault bit.

use crate::network::LinkFault;
use crate::play::Played;
use crate::scenes::{Act, HostFault};
use crate::servers::{self, Kind, roles};

/// From the loss of a host until its servers have failed over, seconds: `cluster-node-timeout`, `evs.inactive_timeout` and
/// `net_ticktime` of `deploy/three-hosts`, and an election.
const FAILED_OVER_S: f64 = 8.0;
/// After the fail-over all is whole again within this time.
const WHOLE_S: f64 = 10.0;
/// A shorter fault may end before the fail-over, and then nothing need be whole during it.
const LONG_MS: u64 = 18_000;
/// The crowd buys 15 times a second; also with two of three hosts gone it bought before and after.
const ACCEPTED_MIN: u64 = 60;

/// What was promised and is not so; nothing when all is.
pub fn broken(played: &Played) -> Vec<String> {
    let mut broken = Vec::new();
    let accepted = played.totals.accepted;
    if accepted < ACCEPTED_MIN {
        broken.push(format!("{accepted} purchases of the crowd were accepted, at least {ACCEPTED_MIN} are expected"));
    }
    match played.scene.act {
        Act::Silence(_) if played.touched == 0 => broken.push("no connection went dumb: there was no fault".into()),
        Act::One(fault, _) => of_one_host(played, fault, &mut broken),
        Act::Silence(_) | Act::Two(_) | Act::LosesCommits => {}
    }
    broken
}

fn of_one_host(played: &Played, fault: HostFault, broken: &mut Vec<String>) {
    let (times, long) = (played.times, played.scene.lasts_ms >= LONG_MS);
    let is_lossy = fault == HostFault::Link(LinkFault::Lossy);
    // Nothing fails over for lost packets; and one of the replicas' hosts has the only database.
    if is_lossy || servers::kind() == Kind::Replicas {
        return;
    }
    if times.own == Some(0.0) && long {
        broken.push("every purchase on the host's shards was accepted: there was no fault".into());
    }
    // Also behind a balancer, which has to notice that one of three apis is gone and to keep the others.
    if times.others.is_some_and(|seconds| seconds > 0.0) || (times.others.is_none() && long) {
        broken.push(format!("buyers of other shards were refused until {:?} s after the fault", times.others));
    }
    if played.under_way > usize::from(roles::SHARDS) {
        broken.push(format!("{} purchases had no answer: one buyer a shard can have one under way", played.under_way));
    }
    let whole = [("the host's shards", times.own), ("a purchase that landed", times.again), ("landing", times.landing)];
    for (what, seconds) in whole.into_iter().filter(|_| long) {
        if seconds.is_none_or(|seconds| seconds > FAILED_OVER_S + WHOLE_S) {
            broken.push(format!("{what}: {seconds:?} s after the fault, promised are {FAILED_OVER_S} + {WHOLE_S} s"));
        }
    }
}
