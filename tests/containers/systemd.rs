//! The units of deploy/systemd, started by a real systemd with all that it takes away from them: a filter of system calls, a user
//! without a name, a root that nothing can be written to. It is the first process of a container on the machine's network.

use crate::engine::{engine, inspected, until_ok};
use crate::support::processes::command_line::CommandOutput;
use crate::support::world::{World, eventually, run};
use crate::units::Machine;
use seckill::dev::ports::free_port;
use seckill::roles::Role;

/// A container whose first process is systemd.
struct Systemd {
    id: String,
}

impl Systemd {
    async fn boot(machine: &Machine) -> Self {
        let units = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/systemd:/units:ro");
        let program = concat!(env!("CARGO_BIN_EXE_seckill"), ":/usr/local/bin/seckill:ro");
        let settings = format!("{}:/etc/seckill", machine.settings().display());
        let start = ["run", "--detach", "--systemd=always", "--privileged", "--network=host", "--pull=never"];
        let mounts = ["--volume", units, "--volume", program, "--volume", &settings, "localhost/seckill-systemd"];
        let this = Self { id: engine(&[&start[..], &mounts].concat()).exits(0).out.trim().to_owned() };
        eventually("systemd has booted", async || {
            let state = this.runs("systemctl is-system-running").out;
            ["running", "degraded"].contains(&state.trim())
        })
        .await;
        this.runs("cp /units/* /etc/systemd/system/ && systemctl daemon-reload").exits(0);
        this
    }

    fn runs(&self, words: &str) -> CommandOutput {
        engine(&["exec", &self.id, "sh", "-c", words])
    }

    /// A property of a role's unit.
    fn shows(&self, role: &str, property: &str) -> String {
        self.runs(&format!("systemctl show -P {property} seckill@{role}")).exits(0).out.trim().to_owned()
    }

    /// What the kernel says of a role's process.
    fn status(&self, role: &str) -> String {
        self.runs(&format!("cat /proc/{}/status", self.shows(role, "MainPID"))).exits(0).out
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.runs("journalctl --no-pager -n 60 -u 'seckill*'").out);
        }
        engine(&["rm", "--force", "--time=2", &self.id]);
    }
}

#[test]
fn systemd_runs_the_roles_starts_a_killed_one_again_and_stops_them_in_order() {
    run(async {
        let mut world = World::with(&[], &[]).await;
        let sale = world.sale("systemd", 10, Some(1)).await;
        let machine = Machine::new(&world, "systemd");
        let systemd = Systemd::boot(&machine).await;
        assert_eq!(inspected(&systemd.id, "{{.State.Running}}"), "true");
        systemd.runs("systemctl start seckill-migrate").exits(0);
        let public = format!("127.0.0.1:{}", free_port().unwrap());
        world.api = format!("http://{public}");
        let roles = Role::ALL.map(|role| (role.name(), format!("127.0.0.1:{}", free_port().unwrap())));
        // Without its file a role does not start, and says so.
        assert_ne!(systemd.runs("systemctl start seckill@relay").code, Some(0));
        for (role, admin) in &roles {
            let own = format!("SECKILL__ADMIN__LISTEN={admin}\nSECKILL__HTTP__LISTEN={public}\n");
            machine.write(&format!("{role}.env"), &own);
            systemd.runs(&format!("systemctl start seckill@{role}")).exits(0);
        }
        for (role, admin) in &roles {
            until_ok(&format!("http://{admin}/readyz")).await;
            let status = systemd.status(role);
            for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
                assert!(status.contains(line), "{role}: {line}: {status}");
            }
            assert!(!status.contains("Uid:\t0"), "{role}: {status}");
        }
        confirmed(&world, &sale, "alice").await;
        systemd.runs("systemctl kill -s KILL seckill@consumer").exits(0);
        eventually("it is started again", async || systemd.shows("consumer", "NRestarts") == "1").await;
        confirmed(&world, &sale, "bob").await;
        for (role, _) in &roles {
            systemd.runs(&format!("systemctl stop seckill@{role}")).exits(0);
            assert_eq!(
                (systemd.shows(role, "Result").as_str(), systemd.shows(role, "ExecMainStatus").as_str()),
                ("success", "0")
            );
        }
        world.finish().await;
    });
}

async fn confirmed(world: &World, sale: &seckill::domain::ids::SaleId, user: &str) {
    let id = world.bought(sale, user).await.to_string();
    assert_eq!(world.status(sale, user, &id, 30).await.text("status"), "CONFIRMED");
}

#[test]
fn systemd_tries_a_taken_port_again_and_a_mistake_never() {
    run(async {
        let world = World::with(&[], &[]).await;
        let machine = Machine::new(&world, "systemd-port");
        let systemd = Systemd::boot(&machine).await;
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        machine.write("relay.env", &format!("SECKILL__ADMIN__LISTEN={address}\n"));
        systemd.runs("systemctl start seckill@relay").exits(0);
        eventually("it was tried again", async || systemd.shows("relay", "NRestarts").parse::<u32>().unwrap() >= 2)
            .await;
        drop(taken);
        until_ok(&format!("http://{address}/livez")).await;
        machine.write("relay.env", "SECKILL__ADMIN__LISTEN=here\n");
        systemd.runs("systemctl restart seckill@relay").exits(0);
        eventually("it has failed", async || systemd.shows("relay", "ActiveState") == "failed").await;
        let restarts = systemd.shows("relay", "NRestarts");
        assert_eq!((systemd.shows("relay", "ExecMainStatus").as_str(), restarts.as_str()), ("64", "0"));
        world.finish().await;
    });
}
