//! The scenes by name: which fault, on the host that has what, for how long.

use crate::network::{self, LinkFault, NUMBERS, Number};
use crate::servers::roles::PREFIX;
use crate::servers::{self, galera, rabbit, redis, replicated};
use crate::site::Site;
use crate::time::time_passes;
use seckill::dev::ServerKind;

/// What happens to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// The link is down, then its processes are gone.
    PowerCut,
    /// Its link is bad.
    Link(LinkFault),
    /// All its processes stand still; packets are acknowledged.
    Frozen,
    /// It loses power, and a file of this server is another one when it comes back.
    Damaged(ServerKind),
}

/// Which host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// With the Redis primary of shard 0.
    Redis,
    /// With the leader of the order queue.
    Broker,
    /// With the database that is written to.
    Writer,
    /// With the leading reconciler.
    Reconciler,
}

/// A server whose established connections go dumb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silenced {
    /// Redis.
    Redis,
    /// RabbitMQ.
    Rabbit,
    /// MariaDB.
    Database,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// To one host.
    One(HostFault, Target),
    /// To the writer's host, and a moment later to the next one.
    Two(HostFault),
    /// The replica of the database falls behind, then the host with the primary loses power, and the replica is promoted.
    LosesCommits,
    /// On every host, to the connections of one server that stand at the moment.
    Silence(Silenced),
}

/// A scene.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// Its name, in results and in `SCENES`.
    pub name: &'static str,
    /// What happens.
    pub act: Act,
    /// For how long, milliseconds.
    pub lasts_ms: u64,
}

/// The plainest first: a run may be cut short.
const FAULTS: [(&str, HostFault, u64); 6] = [
    ("power-cut", HostFault::PowerCut, 20_000),
    ("cut-off", HostFault::Link(LinkFault::Cut), 20_000),
    ("frozen", HostFault::Frozen, 60_000),
    ("lossy", HostFault::Link(LinkFault::Lossy), 20_000),
    ("cut-in", HostFault::Link(LinkFault::CutIn), 20_000),
    ("cut-out", HostFault::Link(LinkFault::CutOut), 20_000),
];

/// The hosts that have something which the others do not.
pub const TARGETS: [(&str, Target); 4] = [
    ("redis", Target::Redis),
    ("broker", Target::Broker),
    ("writer", Target::Writer),
    ("reconciler", Target::Reconciler),
];

/// All of them.
pub fn all() -> Vec<Scene> {
    let silenced = [
        ("silent-redis", Silenced::Redis),
        ("silent-rabbitmq", Silenced::Rabbit),
        ("silent-database", Silenced::Database),
    ];
    let mut scenes: Vec<Scene> =
        silenced.map(|(name, server)| Scene { name, act: Act::Silence(server), lasts_ms: 20_000 }).to_vec();
    for (name, fault) in [("two-power-cuts", HostFault::PowerCut), ("two-cut-off", HostFault::Link(LinkFault::Cut))] {
        scenes.push(Scene { name, act: Act::Two(fault), lasts_ms: 20_000 });
    }
    for (fault_name, fault, lasts_ms) in FAULTS {
        for (target_name, target) in TARGETS {
            let name = format!("{fault_name}-{target_name}").leak();
            scenes.push(Scene { name, act: Act::One(fault, target), lasts_ms });
        }
    }
    scenes
}

/// Faults for a random run: of one host at a time.
pub fn random_acts() -> Vec<Act> {
    let one = FAULTS.iter().flat_map(|(_, fault, _)| TARGETS.map(|(_, target)| Act::One(*fault, target)));
    one.chain([Silenced::Redis, Silenced::Rabbit, Silenced::Database].map(Act::Silence)).collect()
}

/// For [`Act::LosesCommits`]: how long the replica gets nothing, and how long the fail-over takes.
const BEHIND_MS: u64 = 4_000;
const DECIDES_MS: u64 = 3_000;

/// Those of replicas instead of clusters.
pub fn on_replicas() -> Vec<Scene> {
    let scene = |name, act| Scene { name, act, lasts_ms: 25_000 };
    vec![
        scene("sentinel-power-cut-redis", Act::One(HostFault::PowerCut, Target::Redis)),
        scene("sentinel-cut-off-redis", Act::One(HostFault::Link(LinkFault::Cut), Target::Redis)),
        scene("sentinel-frozen-redis", Act::One(HostFault::Frozen, Target::Redis)),
        scene("lost-commits-writer", Act::LosesCommits),
    ]
}

/// What each host has.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Placement {
    /// Host of the leader of the order queue.
    pub broker: Option<Number>,
    /// Host of the leading reconciler.
    pub reconciler: Option<Number>,
    /// Host of the database that is written to.
    pub writer: Number,
}

/// Reads who leads; call it while all is well.
pub async fn placement() -> Placement {
    let writer = servers::writer();
    let leader = galera::reconcile_leader(writer).await;
    let reconciler = leader.and_then(|from| network::host_at(from.split(':').next()?));
    Placement { broker: rabbit::leader_of_orders(PREFIX).await, reconciler, writer }
}

/// The hosts that an act is about; none when it is about connections.
pub async fn hosts_of(act: Act, placed: &Placement) -> Vec<Number> {
    match act {
        Act::Silence(_) => Vec::new(),
        Act::Two(_) => vec![placed.writer, placed.writer % 3 + 1],
        Act::One(_, Target::Redis) => {
            let mut with_shard_0 = Vec::new();
            for number in NUMBERS {
                if servers::shards_on(&[number]).await.contains(&0) {
                    with_shard_0.push(number);
                }
            }
            with_shard_0
        }
        Act::LosesCommits => vec![placed.writer],
        Act::One(_, Target::Broker) => vec![placed.broker.unwrap_or(2)],
        Act::One(_, Target::Writer) => vec![placed.writer],
        Act::One(_, Target::Reconciler) => vec![placed.reconciler.unwrap_or(placed.writer)],
    }
}

/// Does it. Returns how many connections went dumb, or how many orders the promoted replica lacks, if it is about them.
pub async fn begin(site: &Site, act: Act, hosts: &[Number], seed: u64) -> usize {
    let fault = match act {
        Act::Silence(server) => return silence(server).await,
        Act::One(fault, _) | Act::Two(fault) => fault,
        Act::LosesCommits => return lose_commits(site, hosts[0]).await,
    };
    for number in hosts {
        let host = site.host(*number);
        match fault {
            HostFault::PowerCut => host.lose_power().await,
            HostFault::Link(link) => network::break_link(*number, link),
            HostFault::Frozen => host.freeze().await,
            HostFault::Damaged(server) => site.damage(*number, server, seed).await,
        }
        if hosts.len() > 1 {
            time_passes(500).await;
        }
    }
    0
}

async fn lose_commits(site: &Site, host: Number) -> usize {
    replicated::fall_behind().await;
    time_passes(BEHIND_MS).await;
    let committed = replicated::orders(host).await;
    site.host(host).lose_power().await;
    // What a fail-over manager, or a person, needs to notice it.
    time_passes(DECIDES_MS).await;
    let kept = replicated::orders(replicated::REPLICA).await;
    replicated::promote().await;
    let lacks = committed.zip(kept).map(|(committed, kept)| committed.saturating_sub(kept));
    let lacks = lacks.expect("both were counted");
    assert!(lacks > 0, "the replica lacks nothing: {committed:?}, {kept:?}");
    usize::try_from(lacks).expect("few")
}

async fn silence(server: Silenced) -> usize {
    let mut count = 0;
    for number in NUMBERS {
        match server {
            Silenced::Redis => {
                for group in NUMBERS {
                    let spared = redis::replica_links(number, group).await;
                    count += network::drop_established(number, redis::port(group), &spared);
                }
            }
            Silenced::Rabbit => count += network::drop_established(number, rabbit::PORT, &[]),
            Silenced::Database => count += network::drop_established(number, galera::PORT, &[]),
        }
    }
    count
}
