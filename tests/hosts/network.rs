//! The network of three hosts: a namespace each, on one bridge; the test's process is on the bridge, too.
//!
//! Input: which link is to fail how. Output: nothing; packets are dropped by the host's own rules, so that neither side gets a
//! word. `scripts/hosts.sh` gives the process a network, mounts and process ids of its own: a crash leaves nothing behind.

use std::process::Command;

/// First three bytes of every address.
const NET: &str = "10.77.0";
/// The address of what is on no host: the test itself, and what is in front of the hosts.
pub const OUTSIDE: &str = "10.77.0.254";
/// Packets lost of each hundred, each way, on a bad line.
const LOSS: &str = "0.3";

/// A host's number, 1 to 3.
pub type Number = u8;

/// The three of them.
pub const NUMBERS: [Number; 3] = [1, 2, 3];

/// What a host's link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// The cable is out.
    Down,
    /// Nothing comes in, nothing goes out.
    Cut,
    /// Nothing comes in.
    CutIn,
    /// Nothing goes out.
    CutOut,
    /// Some packets are lost, both ways.
    Lossy,
}

/// The address of a host.
pub fn address(number: Number) -> String {
    format!("{NET}.{number}")
}

/// The host that has an address.
pub fn host_at(address: &str) -> Option<Number> {
    address.strip_prefix(NET)?.strip_prefix('.')?.parse().ok().filter(|number| NUMBERS.contains(number))
}

/// Only the own loopback: for what needs no hosts.
pub fn lay_loopback() {
    run("ip link set lo up");
}

/// Lays the bridge, the namespaces and the links.
pub fn lay() {
    run("mount -t tmpfs tmpfs /run");
    std::fs::create_dir_all("/run/netns").expect("a folder for the namespaces");
    run("ip link set lo up");
    run("ip link add name seckill type bridge");
    run(&format!("ip address add {OUTSIDE}/24 dev seckill"));
    run("ip link set seckill up");
    for number in NUMBERS {
        run(&format!("ip netns add host{number}"));
        run(&format!("ip link add link{number} type veth peer name eth0 netns host{number}"));
        run(&format!("ip link set link{number} master seckill up"));
        for line in
            ["ip link set lo up", &format!("ip address add {}/24 dev eth0", address(number)), "ip link set eth0 up"]
        {
            run(&inside(number, line));
        }
    }
}

/// A command line that runs on a host.
pub fn inside(number: Number, line: &str) -> String {
    format!("nsenter --net=/run/netns/host{number} {line}")
}

/// A command that runs on a host, without the surroundings' settings.
pub fn command_on(number: Number) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/host{number}"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL")) {
        command.env_remove(name);
    }
    command
}

/// Breaks a host's link.
pub fn break_link(number: Number, fault: LinkFault) {
    let rules: &[&str] = match fault {
        LinkFault::Down => {
            run(&format!("ip link set link{number} down"));
            return;
        }
        LinkFault::Cut => &["INPUT -i eth0", "OUTPUT -o eth0"],
        LinkFault::CutIn => &["INPUT -i eth0"],
        LinkFault::CutOut => &["OUTPUT -o eth0"],
        LinkFault::Lossy => {
            for rule in ["INPUT -i eth0", "OUTPUT -o eth0"] {
                let chance = format!("-m statistic --mode random --probability {LOSS}");
                run(&inside(number, &format!("iptables -w -A {rule} {chance} -j DROP")));
            }
            return;
        }
    };
    for rule in rules {
        run(&inside(number, &format!("iptables -w -A {rule} -j DROP")));
    }
}

/// Every link of the host is as it was.
pub fn mend_link(number: Number) {
    run(&inside(number, "iptables -w -F"));
    run(&format!("ip link set link{number} up"));
}

/// Drops the packets of the connections that stand now to a port of the host, those from `spared` aside; new ones go through.
/// Returns how many.
pub fn drop_established(number: Number, port: u16, spared: &[String]) -> usize {
    let listed = run(&inside(number, &format!("ss -Htn state established ( sport = :{port} )")));
    let mut count = 0;
    for line in listed.lines() {
        let Some(peer) = line.split_whitespace().nth(3) else { continue };
        let Some((peer_address, peer_port)) = peer.rsplit_once(':') else { continue };
        if spared.iter().any(|spared| spared == peer) {
            continue;
        }
        let (host, of) = (address(number), "-p tcp");
        let rules = [
            format!("INPUT {of} -s {peer_address} --sport {peer_port} -d {host} --dport {port}"),
            format!("OUTPUT {of} -d {peer_address} --dport {peer_port} -s {host} --sport {port}"),
        ];
        for rule in rules {
            run(&inside(number, &format!("iptables -w -A {rule} -j DROP")));
        }
        count += 1;
    }
    count
}

/// Runs a command line; what it prints.
fn run(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap_or_else(|error| panic!("{line}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    String::from_utf8(output.stdout).expect("text")
}
