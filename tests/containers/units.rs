//! The units of deploy/systemd without systemd: their ExecStart lines as they stand, in a mount namespace that has the paths they
//! name, as a user without rights on a read-only root. Needs root. What systemd itself would refuse is `systemd-analyze verify`'s.

use crate::engine::until_ok;
use crate::support::processes::programs::{Folder, Program};
use crate::support::world::{World, eventually, run};
use seckill::dev::ports::free_port;
use seckill::roles::Role;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user as `DynamicUser=` takes one: it owns nothing.
const USER: &str = "61234";

/// What the units expect of the machine, then the program: FOLDER PROGRAM USER WORDS…
const NAMESPACE: &str = r#"
set -eu
folder=$1 program=$2 user=$3
shift 3
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$folder/upper,workdir=$folder/work" /etc
mount -t tmpfs tmpfs /usr/local/bin
touch /usr/local/bin/seckill
mount --bind "$program" /usr/local/bin/seckill
mount -t tmpfs tmpfs /tmp
mount -o remount,bind,ro /
exec setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"
"#;

/// A unit file with its instance.
struct Unit {
    text: String,
    instance: &'static str,
}

impl Unit {
    fn read(file: &str, instance: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd").join(file);
        Self { text: std::fs::read_to_string(path).unwrap(), instance }
    }

    /// The values of an option, with the specifiers that the units use.
    fn values(&self, option: &str) -> Vec<String> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let lines = self.text.lines().filter_map(|line| line.strip_prefix(option)?.strip_prefix('='));
        lines.map(|value| value.replace("%i", self.instance).replace("%H", host.trim())).collect()
    }
}

/// A machine with `/etc/seckill`, and where a world's servers are.
pub struct Machine {
    folder: Folder,
}

impl Machine {
    /// With the settings of the world's servers in `secrets.env`.
    pub fn new(world: &World, name: &str) -> Self {
        let machine = Self { folder: Folder::new(name) };
        for at in ["upper/seckill", "work"] {
            std::fs::create_dir_all(machine.folder.path().join(at)).unwrap();
        }
        machine.write("seckill.toml", "[p5_reconcile]\nwindow_ms = 3000\n");
        let variables = world.container_sets().into_iter().map(|set| {
            let (key, value) = set.split_once('=').unwrap();
            format!("SECKILL__{}={value}\n", key.replace('.', "__").to_uppercase())
        });
        machine.write("secrets.env", &variables.collect::<String>());
        machine
    }

    /// `/etc/seckill`.
    pub fn settings(&self) -> PathBuf {
        self.folder.path().join("upper/seckill")
    }

    /// A file of it, for root's eyes.
    pub fn write(&self, name: &str, text: &str) {
        let file = self.settings().join(name);
        std::fs::write(&file, text).unwrap();
        let mode = if name.ends_with(".env") { 0o600 } else { 0o644 };
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// What systemd would give the unit's processes: its files of variables, then its own.
    fn variables(&self, unit: &Unit) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for file in unit.values("EnvironmentFile") {
            let optional = file.starts_with('-');
            let name = file.trim_start_matches('-').strip_prefix("/etc/seckill/").unwrap();
            match std::fs::read_to_string(self.settings().join(name)) {
                Ok(text) => all.extend(text.lines().map(str::to_owned)),
                Err(error) => assert!(optional, "{name}: {error}"),
            }
        }
        all.extend(unit.values("Environment"));
        all.iter().map(|line| line.split_once('=').unwrap()).map(|(key, value)| (key.into(), value.into())).collect()
    }

    /// Starts an ExecStart line.
    fn start(&self, unit: &Unit, line: &str) -> Program {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation=private", "sh", "-c", NAMESPACE, "sh"]).arg(self.folder.path());
        command.args([env!("CARGO_BIN_EXE_seckill"), USER]).args(line.split_whitespace());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SECKILL")) {
            command.env_remove(name);
        }
        command.envs(self.variables(unit));
        Program::run(self.folder.path(), command)
    }
}

#[test]
fn the_units_start_lines_set_up_and_run_a_system_as_they_stand() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let sale = world.sale("units", 10, Some(1)).await;
        let machine = Machine::new(&world, "units");
        let setup = Unit::read("seckill-migrate.service", "");
        assert_eq!(setup.values("ExecStart").len(), 2, "tables, then queues");
        for line in setup.values("ExecStart") {
            let mut program = machine.start(&setup, &line);
            assert_eq!(program.ended().await, Some(0), "{line}: {}", program.stderr());
        }
        let public = format!("127.0.0.1:{}", free_port().unwrap());
        world.api = format!("http://{public}");
        let mut running = Vec::new();
        for role in Role::ALL.map(Role::name) {
            let admin = format!("127.0.0.1:{}", free_port().unwrap());
            let own = format!("SECKILL__ADMIN__LISTEN={admin}\nSECKILL__HTTP__LISTEN={public}\n");
            machine.write(&format!("{role}.env"), &own);
            let unit = Unit::read("seckill@.service", role);
            let program = machine.start(&unit, &unit.values("ExecStart")[0]);
            until_ok(&format!("http://{admin}/readyz")).await;
            let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
            for line in [&format!("Uid:\t{USER}\t{USER}"), "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
                assert!(status.contains(line), "{role}: {line}");
            }
            running.push((role, program));
        }
        let id = world.bought(&sale, "alice").await.to_string();
        assert_eq!(world.status(&sale, "alice", &id, 30).await.text("status"), "CONFIRMED");
        for (role, program) in &mut running {
            assert_eq!(program.terminate().await.0, Some(0), "{role}: {}", program.stderr());
        }
        world.finish().await;
    });
}

#[test]
fn a_port_that_is_taken_lets_systemd_try_again_and_a_mistake_does_not() {
    run(async {
        let world = World::with(&[], &[]).await;
        let machine = Machine::new(&world, "units-port");
        let unit = Unit::read("seckill@.service", "relay");
        let final_codes = unit.values("RestartPreventExitStatus");
        assert_eq!(final_codes, ["64"]);
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        machine.write("relay.env", &format!("SECKILL__ADMIN__LISTEN={}\n", taken.local_addr().unwrap()));
        let line = &unit.values("ExecStart")[0];
        let mut program = machine.start(&unit, line);
        assert_eq!(program.ended().await, Some(1), "{}", program.stderr());
        assert!(program.stderr().contains("admin.listen"), "{}", program.stderr());
        drop(taken);
        let mut program = machine.start(&unit, line);
        eventually("it runs now", async || program.stderr().contains("role starts")).await;
        assert_eq!(program.terminate().await.0, Some(0), "{}", program.stderr());
        machine.write("relay.env", "SECKILL__ADMIN__LISTEN=here\n");
        let mut program = machine.start(&unit, line);
        assert_eq!(program.ended().await, Some(64), "{}", program.stderr());
        world.finish().await;
    });
}
