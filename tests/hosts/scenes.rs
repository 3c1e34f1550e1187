//! The scenes by name: which fault, on the host that has what, for how long.

use crate::network::{self, LinkFault, NUMBERS, Number};
use crate::servers::roles::PREFIX;
use crate::servers::{galera, rabbit, redis};
use crate::site::Site;
use crate::time::time_passes;

/// What happens to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// The link is down, then its processes are gone.
    PowerCut,
    /// Its link is bad.
    Link(LinkFault),
    /// All its processes stand still; packets are acknowledged.
    Frozen,
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

const FAULTS: [(&str, HostFault, u64); 6] = [
    ("power-cut", HostFault::PowerCut, 25_000),
    ("cut-off", HostFault::Link(LinkFault::Cut), 25_000),
    ("cut-in", HostFault::Link(LinkFault::CutIn), 25_000),
    ("cut-out", HostFault::Link(LinkFault::CutOut), 25_000),
    ("lossy", HostFault::Link(LinkFault::Lossy), 25_000),
    ("frozen", HostFault::Frozen, 60_000),
];

const TARGETS: [(&str, Target); 4] = [
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
    for (target_name, target) in TARGETS {
        for (fault_name, fault, lasts_ms) in FAULTS {
            let name = format!("{fault_name}-{target_name}").leak();
            scenes.push(Scene { name, act: Act::One(fault, target), lasts_ms });
        }
    }
    for (name, fault) in [("two-power-cuts", HostFault::PowerCut), ("two-cut-off", HostFault::Link(LinkFault::Cut))] {
        scenes.push(Scene { name, act: Act::Two(fault), lasts_ms: 20_000 });
    }
    scenes
}

/// Faults for a random run: of one host at a time.
pub fn random_acts() -> Vec<Act> {
    let one = FAULTS.iter().flat_map(|(_, fault, _)| TARGETS.map(|(_, target)| Act::One(*fault, target)));
    one.chain([Silenced::Redis, Silenced::Rabbit, Silenced::Database].map(Act::Silence)).collect()
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

/// Looks at who leads; call it while all is well.
pub async fn placement() -> Placement {
    let writer = galera::WRITER;
    let leader = galera::reconcile_leader(writer).await;
    let reconciler = leader.and_then(|from| network::host_at(from.split(':').next()?));
    Placement { broker: rabbit::leader_of_orders(PREFIX).await, reconciler, writer }
}

/// The hosts that an act is about; none when it is about connections.
pub async fn hosts_of(act: Act, placed: &Placement) -> Vec<Number> {
    match act {
        Act::Silence(_) => Vec::new(),
        Act::Two(_) => vec![placed.writer, placed.writer % 3 + 1],
        Act::One(_, Target::Redis) => vec![redis::group_of_shard(0).await],
        Act::One(_, Target::Broker) => vec![placed.broker.unwrap_or(2)],
        Act::One(_, Target::Writer) => vec![placed.writer],
        Act::One(_, Target::Reconciler) => vec![placed.reconciler.unwrap_or(placed.writer)],
    }
}

/// Does it. Returns how many connections went dumb, if it is about them.
pub async fn begin(site: &Site, act: Act, hosts: &[Number]) -> usize {
    let fault = match act {
        Act::Silence(server) => return silence(server).await,
        Act::One(fault, _) | Act::Two(fault) => fault,
    };
    for number in hosts {
        let host = site.host(*number);
        match fault {
            HostFault::PowerCut => host.lose_power().await,
            HostFault::Link(link) => network::break_link(*number, link),
            HostFault::Frozen => host.freeze().await,
        }
        if hosts.len() > 1 {
            time_passes(500).await;
        }
    }
    0
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
