//! Commands whose output cannot be written: a reader that has gone ends them quietly, anything else is said.

use crate::support::processes::programs::{scratch, seckill};
use crate::support::world::{World, run};
use seckill::roles::Role;
use std::fs::File;
use std::process::{Command, Stdio};

/// How it ended, and its standard error.
fn with_output(mut command: Command, out: impl Into<Stdio>) -> (Option<i32>, String) {
    let output = command.stdout(out).stderr(Stdio::piped()).output().expect("the binary runs");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

/// A pipe whose reader has gone, as after `… | head -1`.
fn without_a_reader() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// A disk without room.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("a device of Linux")
}

fn judge(command: impl Fn() -> Command, words: &[&str]) {
    let (code, said) = with_output(command(), without_a_reader());
    assert!(code == Some(0) && !said.contains("error") && !said.contains("panicked"), "{words:?}: {code:?} {said}");
    let (code, said) = with_output(command(), full());
    let says = said.contains("standard output cannot be written") && said.contains("No space left");
    assert!(code == Some(1) && says && !said.contains("panicked"), "{words:?}: {code:?} {said}");
}

#[test]
fn commands_without_servers_end_quietly_without_a_reader_and_with_1_on_a_full_disk() {
    for words in [&["config", "reference"][..], &["config", "check"], &["--help"], &["sale", "--help"], &["--version"]]
    {
        judge(|| seckill(words), words);
    }
}

#[test]
fn a_complaint_that_cannot_be_written_leaves_the_exit_code_as_it_is() {
    for err in [without_a_reader(), full().into()] {
        let mut command = seckill(&["config", "check"]);
        command.env("SECKILL__P3_RELAY__WINDOW_MAX", "many").stderr(err);
        assert_eq!(command.status().expect("the binary runs").code(), Some(64));
    }
}

#[test]
fn commands_on_servers_end_quietly_without_a_reader_and_with_1_on_a_full_disk() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale("out", 10, None).await;
        world.bought(&sale, "alice").await;
        world.settled(&sale).await;
        let sets = world.sets();
        for words in [
            &["order", "export"][..],
            &["order", "list"],
            &["sale", "list"],
            &["sale", "list", "--json"],
            &["audit", "--json"],
            &["audit"],
        ] {
            let all: Vec<&str> = sets.iter().map(String::as_str).chain(words.iter().copied()).collect();
            // What remarks which system it is.
            judge(|| seckill(&all), words);
        }
        world.finish().await;
    });
}

/// Tests run in the folder of the sources, where a `make run` may be.
#[test]
fn a_command_of_a_test_does_not_run_where_a_local_stack_of_this_checkout_would_be_found() {
    let command = seckill(&["audit"]);
    let folder = command.get_current_dir().expect("a folder of its own");
    assert!(folder.is_absolute() && folder != std::path::Path::new(env!("CARGO_MANIFEST_DIR")), "{}", folder.display());
    assert!(!folder.join(".seckill").exists() && scratch("output").starts_with(folder), "{}", folder.display());
}
