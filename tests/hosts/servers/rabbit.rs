//! A RabbitMQ cluster of three nodes, one a host, without epmd; quorum queues have a member on each.

use crate::host::Host;
use crate::network::{NUMBERS, Number, address, command_on};
use crate::time::eventually;
use seckill::dev::{ServerKind, find_rabbitmq_server, server_program};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// AMQP.
pub const PORT: u16 = 5_672;
/// Between the nodes.
const DIST_PORT: u16 = 25_672;
const COOKIE: &str = "SECKILLHOSTS";
const ANSWER: Duration = Duration::from_secs(5);
/// Seconds after which a node that is silent is taken for gone; 60 by default.
const TICK_S: u8 = 5;
/// Between two rounds of the queues' own failure detector; 5 s by default.
const POLL_MS: u16 = 1_000;

fn node(number: Number) -> String {
    format!("seckill@{}", address(number))
}

/// As they are given to users, with the nodes' names here.
fn config() -> String {
    let settings = include_str!("../../../deploy/three-hosts/rabbitmq.conf");
    let named = NUMBERS
        .into_iter()
        .fold(settings.to_owned(), |text, number| text.replace(&format!("rabbit@seckill-{number}"), &node(number)));
    named + "disk_free_limit.absolute = 50MB\nraft.wal_max_size_bytes = 67108864\n"
}

/// Starts a host's node; at the first start it finds the others.
pub async fn start(host: &Arc<Host>) {
    use std::os::unix::fs::PermissionsExt;
    let dir = host.folder("rabbitmq");
    for folder in ["home", "data", "log", "generated"] {
        std::fs::create_dir_all(dir.join(folder)).expect("a folder");
    }
    for (name, text) in [("rabbitmq.conf", config()), ("env.conf", String::new()), ("plugins", "[].\n".to_owned())] {
        std::fs::write(dir.join(name), text).expect("a settings file");
    }
    let cookie = dir.join("home/.erlang.cookie");
    std::fs::write(&cookie, COOKIE).expect("the cookie");
    std::fs::set_permissions(&cookie, std::fs::Permissions::from_mode(0o400)).expect("the cookie");
    let number = host.number();
    host.run("rabbitmq", Box::new(move || command(number, &dir))).await;
}

fn command(number: Number, dir: &Path) -> Command {
    let mut command = command_on(number);
    command.arg(find_rabbitmq_server().expect("a rabbitmq-server"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("LANG", "C.UTF-8").env("HOME", dir.join("home")).current_dir(dir);
    command.env("RABBITMQ_USE_LONGNAME", "true").env("RABBITMQ_NODENAME", node(number));
    command.env("RABBITMQ_DIST_PORT", DIST_PORT.to_string());
    command.env("RABBITMQ_NODE_IP_ADDRESS", address(number)).env("RABBITMQ_NODE_PORT", PORT.to_string());
    for (variable, place) in [
        ("RABBITMQ_MNESIA_BASE", "data"),
        ("RABBITMQ_LOG_BASE", "log"),
        ("RABBITMQ_GENERATED_CONFIG_DIR", "generated"),
        ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
        ("RABBITMQ_CONF_ENV_FILE", "env.conf"),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
        ("RABBITMQ_PID_FILE", "pid"),
    ] {
        command.env(variable, dir.join(place));
    }
    command.env("RABBITMQ_LOGS", "-").env("RUNNING_UNDER_SYSTEMD", "true");
    let args = format!(
        "+sbwt none +sbwtdcpu none +sbwtdio none -name {} -start_epmd false -erl_epmd_port {DIST_PORT} \
         -kernel net_ticktime {TICK_S} -aten poll_interval {POLL_MS}",
        node(number)
    );
    command.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", args);
    command
}

/// Runs an Erlang expression in a host's node.
async fn evaluate(number: Number, expression: &str) -> Option<String> {
    let home: PathBuf = crate::site_folder().join(format!("host{number}/rabbitmq/home"));
    let program = server_program(ServerKind::Rabbitmq, "erl_call").expect("erl_call");
    let at = format!("{}:{DIST_PORT}", address(number));
    let mut child = tokio::process::Command::new(program)
        .args(["-address", &at, "-h", &format!("call-{:x}", rand::random::<u64>()), "-e"])
        .env("HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("erl_call runs");
    let call = async {
        let mut input = child.stdin.take()?;
        input.write_all(format!("{expression}.\n").as_bytes()).await.ok()?;
        drop(input);
        child.wait_with_output().await.ok()
    };
    let output = tokio::time::timeout(ANSWER, call).await.ok()??;
    let text = String::from_utf8(output.stdout).ok()?;
    text.strip_prefix("{ok, ")?.strip_suffix('}').map(str::to_owned)
}

/// The host with the leader of the first order queue.
pub async fn leader_of_orders(prefix: &str) -> Option<Number> {
    let queue = format!("rabbit_misc:r(<<\"/\">>, queue, <<\"{prefix}.orders.0\">>)");
    let ask = format!("{{ok, Q}} = rabbit_amqqueue:lookup({queue}), {{_, N}} = amqqueue:get_pid(Q), N");
    for number in NUMBERS {
        if let Some(answer) = evaluate(number, &ask).await {
            return NUMBERS.into_iter().find(|number| answer.contains(&node(*number)));
        }
    }
    None
}

/// What keeps the cluster from being whole, if anything.
pub async fn lacks() -> Option<String> {
    for number in NUMBERS {
        let running = evaluate(number, "rabbit_nodes:all_running()").await.unwrap_or_default();
        if let Some(away) = NUMBERS.into_iter().find(|other| !running.contains(&node(*other))) {
            return Some(format!("rabbitmq on host {number} runs without {away}: {running:?}"));
        }
        // A node that comes back from a minority runs for a while before it listens.
        if !listens(number).await {
            return Some(format!("rabbitmq on host {number} does not listen"));
        }
    }
    None
}

/// A node whose files are damaged is forgotten by the others, and begins without files: it joins them when it has started.
pub async fn join_anew(host: &Arc<Host>) {
    let name = node(host.number());
    let other = NUMBERS.into_iter().find(|number| *number != host.number()).expect("one of three");
    let data = host.folder("rabbitmq").join("data");
    host.while_ended("rabbitmq", || {
        std::fs::remove_dir_all(&data).expect("its files");
        std::fs::create_dir(&data).expect("a folder");
    })
    .await;
    // What `rabbitmqctl forget_cluster_node` does, before the node starts.
    let forget = format!(
        "N = '{name}', try rabbit_db_cluster:forget_member(N, false) catch error:undef -> \
         rabbit_mnesia:forget_cluster_node(N, false) end, rabbit_quorum_queue:shrink_all(N)"
    );
    eventually("the others forget the node", async || evaluate(other, &forget).await.is_some()).await;
}

/// Gives a node that joined anew its members of the queues: `rabbitmq-queues grow`.
pub async fn grow_queues(host: &Arc<Host>) {
    let grow = format!("rabbit_quorum_queue:grow('{}', <<\".*\">>, <<\".*\">>, all)", node(host.number()));
    eventually("the queues have a member on it", async || evaluate(host.number(), &grow).await.is_some()).await;
}

async fn listens(number: Number) -> bool {
    let connecting = tokio::net::TcpStream::connect((address(number), PORT));
    matches!(tokio::time::timeout(ANSWER, connecting).await, Ok(Ok(_)))
}

/// A node that fewer nodes see than the others; or that runs, and was not seen to listen.
pub async fn odd_one_out() -> Option<Number> {
    let mut views = Vec::new();
    for number in NUMBERS {
        views.push(evaluate(number, "rabbit_nodes:all_running()").await.unwrap_or_default());
    }
    for number in NUMBERS {
        let runs = views.iter().all(|view| view.contains(&node(number)));
        if runs && !listens(number).await {
            return Some(number);
        }
    }
    let seen_by = |number: Number| views.iter().filter(|view| view.contains(&node(number))).count();
    NUMBERS.into_iter().filter(|number| seen_by(*number) < NUMBERS.len()).min_by_key(|number| seen_by(*number))
}
