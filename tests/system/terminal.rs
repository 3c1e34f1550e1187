//! What a terminal sees of the program: the commands that `seckill dev` prints work, and closing it is an orderly end.

use crate::support::basics::files::without_surroundings;
use crate::support::processes::programs::{Folder, Program, seckill, signal};
use crate::support::world::{QUICK, World, eventually, run_waiting};
use seckill::roles::Role;
use std::path::Path;
use std::process::Command;

/// A shell in an empty folder, without settings of the surroundings.
fn shell(folder: &Path, script: &str) -> (bool, String) {
    let mut command = without_surroundings(Path::new("/bin/sh"), &["-c", script]);
    let output = command.current_dir(folder).output().expect("a shell");
    (
        output.status.success(),
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
    )
}

#[test]
fn the_commands_that_a_local_stack_prints_work_as_they_stand() {
    run_waiting(async {
        let folder = Folder::new("printed");
        let (elsewhere, data) = (Folder::new("elsewhere"), folder.path().join("its own folder"));
        let said = folder.path().join("stdout");
        let quick = QUICK.into_iter().filter(|set| !set.contains("secret")).chain(["admin.listen=127.0.0.1:0"]);
        let mut args: Vec<&str> = quick.flat_map(|set| ["--set", set]).collect();
        args.extend(["dev", "--data-dir", data.to_str().unwrap()]);
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" >\"$0\""]).arg(&said).arg(seckill(&[]).get_program()).args(&args);
        let mut dev = Program::run(folder.path(), command);
        let mut printed = String::new();
        eventually("the greeting", async || {
            dev.must_run();
            printed = std::fs::read_to_string(&said).unwrap_or_default();
            printed.contains(" audit\n")
        })
        .await;
        let (_, commands) = printed.split_once("in this folder:\n").expect("commands");
        assert_eq!(commands.lines().filter(|line| line.starts_with("  ")).count(), 3, "{printed}");
        let (fine, answered) = shell(elsewhere.path(), &format!("set -e\n{commands}"));
        assert!(fine && answered.contains("HTTP/1.1 202"), "{commands}{answered}");
        let here = format!("the local stack in {}", data.display());
        assert!(answered.matches(&here).count() == 2 && answered.contains("consistent"), "{answered}");

        assert_eq!(dev.terminate().await.0, Some(0), "{}", dev.stderr());
        let again = "stopped; the data are kept: ";
        let kept = dev.stderr().lines().find_map(|line| line.strip_prefix(again)).expect("how to go on").to_owned();
        assert!(kept.contains("--data-dir '") && kept.contains("dev --keep goes on with them"), "{kept}");
    });
}

#[test]
fn a_hangup_drains_a_role_and_hurries_none_unless_it_was_to_be_ignored() {
    run_waiting(async {
        // With a handler here the signal is not ignored in a process that starts, also when the tests run under nohup.
        let _handler = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).expect("a handler");
        let world = World::with(&[], &[]).await;
        let mut relay = world.process("relay", "", &[]);
        relay.program.until_logged("starting").await;
        relay.program.until_logged("admin: ").await;
        for _ in 0..3 {
            signal(relay.program.pid(), libc::SIGHUP);
        }
        assert_eq!(relay.program.ended().await, Some(0), "{}", relay.program.stderr());
        assert!(relay.program.stderr().contains("stopped"), "{}", relay.program.stderr());

        // As nohup starts it.
        let folder = Folder::new("nohup");
        let role = world.binary(
            Path::new(env!("CARGO_BIN_EXE_seckill")),
            "",
            &["--set", "admin.listen=127.0.0.1:0", "--role", "relay"],
        );
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(role.get_program()).args(role.get_args());
        let mut kept = Program::run(folder.path(), command);
        kept.until_logged("admin: ").await;
        signal(kept.pid(), libc::SIGHUP);
        let sale = world.sale("hup", 10, Some(1)).await;
        let mut world = world;
        world.start_roles(&[Role::Api, Role::Consumer]).await;
        let id = world.bought(&sale, "alice").await;
        eventually("the relay goes on", async || world.status_of(&sale, "alice", id).await.0 == "CONFIRMED").await;
        kept.must_run();
        assert_eq!(kept.terminate().await.0, Some(0), "{}", kept.stderr());
        world.finish().await;
    });
}
