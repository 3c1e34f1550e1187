//! Containers of the image `seckill`, as an administrator starts them who grants nothing: a read-only root, no capabilities, the
//! image's own user. They share the machine's network, where the harness' servers are.

use crate::support::processes::command_line::CommandOutput;
use crate::support::processes::programs::signal;
use crate::support::world::{QUICK, World, eventually};
use seckill::dev::ports::free_port;
use std::path::Path;
use std::process::Command;

/// What every container of the tests is started with.
const GRANTED: [&str; 5] =
    ["--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pull=never"];

/// podman or docker, which scripts/containers.sh chose.
fn program() -> String {
    std::env::var("CONTAINER_ENGINE").expect("CONTAINER_ENGINE is not set: run make image-test or make compose")
}

/// Runs a command of the engine to its end.
pub fn engine(args: &[&str]) -> CommandOutput {
    let output = Command::new(program()).args(args).output().expect("the engine of containers");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// One property of an image or container, by a template of the engine.
pub fn inspected(name: &str, template: &str) -> String {
    engine(&["inspect", "--format", template, name]).exits(0).out.trim().to_owned()
}

/// What the engine adds by itself and the tests do not want: podman mounts writable folders into a read-only root.
fn granted() -> Vec<String> {
    let mut all: Vec<String> = GRANTED.map(str::to_owned).into();
    if program().ends_with("podman") {
        all.push("--read-only-tmpfs=false".to_owned());
    }
    all
}

/// What a container is started with, beside the image's own.
#[derive(Default)]
pub struct Given<'a> {
    /// Settings, `section.key=value`, as variables of its environment.
    pub sets: &'a [String],
    /// More options of the engine.
    pub options: &'a [&'a str],
}

impl Given<'_> {
    fn words(&self, args: &[&str]) -> Vec<String> {
        let variable = |set: &String| {
            let (key, value) = set.split_once('=').expect("section.key=value");
            format!("--env=SECKILL__{}={value}", key.replace('.', "__").to_uppercase())
        };
        let options = self.options.iter().map(|option| (*option).to_owned());
        let image = std::iter::once("seckill".to_owned());
        let args = args.iter().map(|arg| (*arg).to_owned());
        granted().into_iter().chain(self.sets.iter().map(variable)).chain(options).chain(image).chain(args).collect()
    }

    /// Runs `seckill` in a container to its end.
    pub fn runs(&self, args: &[&str]) -> CommandOutput {
        let words = self.words(args);
        let all: Vec<&str> = ["run", "--rm"].into_iter().chain(words.iter().map(String::as_str)).collect();
        engine(&all)
    }

    /// Starts `seckill` in a container that goes away with the value.
    pub fn starts(&self, args: &[&str]) -> Container {
        let words = self.words(args);
        let all: Vec<&str> = ["run", "--detach"].into_iter().chain(words.iter().map(String::as_str)).collect();
        Container { id: engine(&all).exits(0).out.trim().to_owned() }
    }
}

impl World {
    /// The quick settings and where this world's servers are.
    pub fn container_sets(&self) -> Vec<String> {
        QUICK.iter().map(|set| (*set).to_owned()).chain(self.own_sets()).collect()
    }

    /// Starts a role in a container, with more settings; returns its addresses too: public, admin.
    pub fn role_in_container(&self, role: &str, sets: &[&str]) -> (Container, String, String) {
        let address = || format!("127.0.0.1:{}", free_port().expect("a port"));
        let (listen, admin) = (address(), address());
        let mut all = self.container_sets();
        all.extend([
            format!("runtime.node={}-{role}", self.settings.runtime.node),
            format!("http.listen={listen}"),
            format!("admin.listen={admin}"),
        ]);
        all.extend(sets.iter().map(|set| (*set).to_owned()));
        let container = Given { sets: &all, options: &[] }.starts(&["--role", role]);
        (container, format!("http://{listen}"), format!("http://{admin}"))
    }
}

/// A running container.
pub struct Container {
    id: String,
}

impl Container {
    /// Its first process, as the machine sees it.
    pub fn pid(&self) -> u32 {
        inspected(&self.id, "{{.State.Pid}}").parse().expect("a pid")
    }

    /// A line of `/proc/<pid>/status`: who it is, what it may do.
    pub fn status(&self, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.expect("a field").trim().to_owned()
    }

    /// A property, by a template of the engine.
    pub fn inspected(&self, template: &str) -> String {
        inspected(&self.id, template)
    }

    /// What it has said.
    pub fn log(&self) -> String {
        let said = engine(&["logs", &self.id]);
        said.out + &said.err
    }

    /// SIGTERM to its first process.
    pub fn terminate(&self) {
        signal(self.pid(), libc::SIGTERM);
    }

    /// Waits until it has ended, and returns its exit code.
    pub async fn ended(&self) -> i32 {
        eventually("the container ends", async || self.inspected("{{.State.Running}}") == "false").await;
        self.inspected("{{.State.ExitCode}}").parse().expect("an exit code")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        engine(&["rm", "--force", "--time=0", &self.id]);
    }
}

/// Waits until an address answers with 200.
pub async fn until_ok(url: &str) {
    let ok = async || reqwest::get(url).await.is_ok_and(|answer| answer.status() == 200);
    eventually(url, ok).await;
}

/// Hands a folder's file to the image's user, with no other user allowed to read it.
pub fn for_the_image(file: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::os::unix::fs::chown(file, Some(65532), Some(65532)).expect("root may give files away");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).expect("its mode");
}
