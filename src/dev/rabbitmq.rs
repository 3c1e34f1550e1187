//! A private RabbitMQ node: loopback only, without epmd, without plugins.
//!
//! Input: a folder and two ports. What a crash leaves behind: the node's data, recovered at the next start.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::encryption::Encryption;
use super::kind::ServerKind;
use super::server::{self, Server, ServerLauncher};
use super::{DevError, binaries};

/// Data folder and node belong together by this name, so it must never change. Two nodes differ only by their folder:
/// without epmd the same name may run many times on one machine.
const NODE: &str = "seckill@localhost";
/// One administrative call; a fraction of a second is normal.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// After how long a dead letter that no queue took is offered again; the server's own is three minutes.
const UNPLACED_RETRY_MS: u32 = 3_000;

/// A developer's disk is often nearly full, and at the default limit the broker then stops taking messages without a word.
/// A small write-ahead log keeps memory and the recovery after a kill small.
const CONFIG: &str = "disk_free_limit.absolute = 50MB\nraft.wal_max_size_bytes = 67108864\n";

/// The two ports a node listens on.
#[derive(Debug, Clone, Copy)]
pub struct RabbitPorts {
    /// The AMQP port for clients.
    pub amqp: u16,
    /// For administration (Erlang distribution).
    pub dist: u16,
}

/// The program, its data and its ports.
#[derive(Debug)]
struct RabbitLauncher {
    program: PathBuf,
    dir: PathBuf,
    ports: RabbitPorts,
    encryption: Option<Encryption>,
}

/// Starts a RabbitMQ node on the data in `dir` (made when missing) and waits until it answers the AMQP header.
pub async fn start(dir: &Path, ports: RabbitPorts) -> Result<Server, DevError> {
    start_with(dir, ports, None).await
}

/// The same, on request encrypted.
pub(super) async fn start_with(
    dir: &Path,
    ports: RabbitPorts,
    encryption: Option<Encryption>,
) -> Result<Server, DevError> {
    let program = binaries::find_rabbitmq_server()?;
    let dir = server::make_dir(dir)?;
    for folder in ["home", "data", "log", "generated"] {
        server::make_dir(&dir.join(folder))?;
    }
    let config = CONFIG.to_owned() + &encryption.as_ref().map_or_else(String::new, |tls| listener(tls, ports.amqp));
    for (name, text) in [("rabbitmq.conf", config.as_str()), ("env.conf", ""), ("plugins", "[].\n")] {
        let path = dir.join(name);
        fs::write(&path, text).map_err(DevError::io("write", path))?;
    }
    Server::start(RabbitLauncher { program, dir: dir.clone(), ports, encryption }, &dir).await
}

/// In place of the plain listener.
fn listener(encryption: &Encryption, port: u16) -> String {
    let Encryption { ca, cert, key, .. } = encryption;
    let verify = if encryption.clients_too { "verify_peer" } else { "verify_none" };
    format!(
        "listeners.tcp = none\nlisteners.ssl.1 = 127.0.0.1:{port}\nssl_options.cacertfile = {}\n\
         ssl_options.certfile = {}\nssl_options.keyfile = {}\nssl_options.verify = {verify}\n\
         ssl_options.fail_if_no_peer_cert = {}\n",
        ca.display(),
        cert.display(),
        key.display(),
        encryption.clients_too
    )
}

impl ServerLauncher for RabbitLauncher {
    fn kind(&self) -> ServerKind {
        ServerKind::Rabbitmq
    }

    fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }

    fn port(&self) -> u16 {
        self.ports.amqp
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let dist = self.ports.dist;
        // From an empty environment: RABBITMQ_* and ERL_* of the caller would bend the node in any direction.
        command.env_clear().env("PATH", search_path()).env("LANG", "C.UTF-8").env("HOME", self.dir.join("home"));
        command.current_dir(&self.dir);
        command.env("RABBITMQ_NODENAME", NODE).env("RABBITMQ_DIST_PORT", dist.to_string());
        // These two would bring the plain listener back.
        if self.encryption.is_none() {
            command.env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1");
            command.env("RABBITMQ_NODE_PORT", self.ports.amqp.to_string());
        }
        for (variable, place) in [
            ("RABBITMQ_MNESIA_BASE", "data"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "generated"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_CONF_ENV_FILE", "env.conf"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
            ("RABBITMQ_PID_FILE", "pid"),
        ] {
            command.env(variable, self.dir.join(place));
        }
        // Log to stdout. And exec all the way, so that the child's pid is the node itself and signals reach it.
        command.env("RABBITMQ_LOGS", "-").env("RUNNING_UNDER_SYSTEMD", "true");
        // With its name and distribution set from the start, the node needs no epmd and starts none. Its schedulers are
        // set not to spin while they wait: they share this machine with everything else.
        let erl_args = format!(
            "+sbwt none +sbwtdcpu none +sbwtdio none -sname {NODE} -start_epmd false -erl_epmd_port {dist} -kernel inet_dist_use_interface {{127,0,0,1}} \
             -rabbit dead_letter_worker_publisher_confirm_timeout {UNPLACED_RETRY_MS}"
        );
        command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", erl_args);
        command
    }
}

/// A node to administrate, whether it runs or is being restarted.
#[derive(Debug, Clone)]
pub(super) struct BrokerNode {
    pub(super) dir: PathBuf,
    pub(super) ports: RabbitPorts,
}

impl BrokerNode {
    /// Makes the virtual host `name` and lets `guest` in. Fine when it is there already.
    pub(super) async fn add_vhost(&self, name: &str) -> Result<(), DevError> {
        if !is_vhost_name(name) {
            return Err(DevError::Broker { action: format!("add the vhost {name:?}"), answer: VHOST_NAME.to_owned() });
        }
        let program = format!(
            "rabbit_vhost:add(<<\"{name}\">>, <<\"guest\">>), \
             rabbit_auth_backend_internal:set_permissions(<<\"guest\">>, <<\"{name}\">>, <<\".*\">>, <<\".*\">>, <<\".*\">>, <<\"guest\">>).\n"
        );
        let answer = self.evaluate(&program).await?;
        if answer.contains("{ok, ok}") {
            Ok(())
        } else {
            Err(DevError::Broker { action: format!("add the vhost {name:?}"), answer })
        }
    }

    /// Removes a virtual host with everything in it. Fine when it is gone already.
    pub(super) async fn remove_vhost(&self, name: &str) -> Result<(), DevError> {
        let action = || format!("remove the vhost {name:?}");
        if !is_vhost_name(name) {
            return Err(DevError::Broker { action: action(), answer: VHOST_NAME.to_owned() });
        }
        let answer = self.evaluate(&format!("catch rabbit_vhost:delete(<<\"{name}\">>, <<\"guest\">>).\n")).await?;
        // `{error, {no_such_vhost, …}}` too.
        if answer.contains("{ok, ok}") || answer.contains("no_such_vhost") {
            Ok(())
        } else {
            Err(DevError::Broker { action: action(), answer })
        }
    }

    /// Runs an Erlang expression in the node.
    pub(super) async fn evaluate(&self, program: &str) -> Result<String, DevError> {
        evaluate(&self.dir, self.ports, program).await
    }
}

const VHOST_NAME: &str = "a name has letters, digits, _ and - only";

fn is_vhost_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Runs an Erlang expression in the node of `dir`, and returns `{ok, Value}` or what went wrong, as text. Needs no handle on
/// the server, so that it works while another task waits for its restart.
pub async fn evaluate(dir: &Path, ports: RabbitPorts, program: &str) -> Result<String, DevError> {
    let name = "erl_call";
    let spawn_error = |source| DevError::Spawn { name: name.to_owned(), source };
    let address = format!("localhost:{}", ports.dist);
    let mut child = tokio::process::Command::new(binaries::find(ServerKind::Rabbitmq, name)?)
        // Its own random names (-r) repeat among calls of the same moment, and the node refuses a name it has.
        .args(["-address", &address, "-h", &format!("call-{:x}", rand::random::<u64>()), "-e"])
        .env("HOME", dir.join("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(spawn_error)?;
    let call = async {
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(program.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let late = |_elapsed| DevError::Broker { action: "evaluate".to_owned(), answer: "no answer in time".to_owned() };
    let output = timeout(CALL_TIMEOUT, call).await.map_err(late)?.map_err(spawn_error)?;
    let mut answer = String::from_utf8_lossy(&output.stdout).into_owned();
    answer.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(answer)
}

/// The caller's PATH and the system's folders: the start script needs `erl`, `sed` and their like. A broker of another
/// version brings its own `erl`.
fn search_path() -> std::ffi::OsString {
    let mut path = binaries::preferred_folder().map_or_else(Default::default, |mut folder| {
        folder.as_mut_os_string().push(":");
        folder.into_os_string()
    });
    path.push(env::var_os("PATH").unwrap_or_default());
    path.push(":/usr/local/bin:/usr/bin:/bin");
    path
}
