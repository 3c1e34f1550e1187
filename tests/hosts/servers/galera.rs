//! A Galera cluster of three MariaDB nodes, one a host. One of them is written to; the balancers say which.
//!
//! The servers run as the user `mysql`: rsync, which copies the data to a node that lacks too much, gives its rights up when it
//! is root. A node that starts on its data finds out its position first, as Debian's unit does; then the others send it only what
//! it missed.

use crate::host::Host;
use crate::network::{NUMBERS, Number, address, command_on};
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Of the servers.
pub const PORT: u16 = 3_306;
/// The host whose server is written to while it is well.
pub const WRITER: Number = 1;
const USER: &str = "mysql";
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
const ANSWER: Duration = Duration::from_secs(2);

const SQL: &str = "CREATE DATABASE IF NOT EXISTS seckill CHARACTER SET utf8mb4;\n\
    CREATE USER IF NOT EXISTS 'root'@'%';\nGRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;\n\
    CREATE USER IF NOT EXISTS 'seckill'@'%';\nGRANT ALL PRIVILEGES ON seckill.* TO 'seckill'@'%';\n";

/// Finds out the position, then runs the server: FOLDER OPTION…
const START: &str = r#"
folder=$1
shift
position=
if [ -e "$folder/started" ]; then
    mariadbd "$@" --wsrep-recover --log-error="$folder/recover.log" >/dev/null 2>&1
    position=$(sed -n 's/.*WSREP: Recovered position: *//p' "$folder/recover.log" | tail -n 1)
fi
touch "$folder/started"
exec mariadbd "$@" ${position:+--wsrep-start-position=$position}
"#;

/// Of every node, as they are given to users.
const SETTINGS: &str = include_str!("../../../deploy/three-hosts/galera.cnf");
/// Small, because all three are on one machine.
const OWN: [&str; 3] = ["--no-defaults", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"];

/// The settings as options of the command line.
pub(super) fn options() -> Vec<String> {
    let lines = SETTINGS.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    let option = |line: &str| match line.split_once(" = ") {
        Some((name, value)) => format!("--{name}={}", value.trim_matches('"')),
        None => format!("--{line}"),
    };
    OWN.into_iter().map(str::to_owned).chain(lines.map(option)).collect()
}

/// Makes a data folder that all nodes begin with.
pub fn install(dir: &Path) {
    let data = format!("--datadir={}", dir.join("data").display());
    let login = "--auth-root-authentication-method=normal";
    let made = Command::new("mariadb-install-db")
        .args(["--no-defaults", &data, login, "--skip-test-db", "--skip-name-resolve", &format!("--user={USER}")])
        .output()
        .expect("mariadb-install-db runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::write(dir.join("init.sql"), SQL).expect("written");
}

/// A host's folder for its server, with the template's data, the server's own.
pub(super) fn own_folder(host: &Host, template: &Path) -> PathBuf {
    let dir = host.folder("mariadb");
    std::fs::create_dir_all(dir.join("tmp")).expect("a folder");
    let copied = Command::new("cp").arg("-a").arg(template.join("data")).arg(&dir).status().expect("cp runs");
    let owned = Command::new("chown").arg("-R").arg(format!("{USER}:{USER}")).arg(&dir).status().expect("chown runs");
    assert!(copied.success() && owned.success());
    std::fs::copy(template.join("init.sql"), dir.join("init.sql")).expect("copied");
    dir
}

/// Options for what a server keeps in its folder.
pub(super) fn places(dir: &Path) -> Vec<String> {
    let places = [("datadir", "data"), ("socket", "socket"), ("pid-file", "pid"), ("tmpdir", "tmp")];
    places.map(|(option, place)| format!("--{option}={}", dir.join(place).display())).to_vec()
}

/// Starts a host's server. The first server of all begins the cluster.
pub async fn start(host: &Arc<Host>, template: &Path, first: bool) {
    let dir = own_folder(host, template);
    let (number, begins) = (host.number(), AtomicBool::new(first));
    host.run(
        "mariadb",
        Box::new(move || {
            let mut command = command_on(number);
            let user = [format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".to_owned()];
            command.arg("setpriv").args(user).args(["sh", "-c", START, "sh"]).arg(&dir).args(options());
            let nodes: Vec<String> = NUMBERS.map(address).to_vec();
            let at = address(number);
            command.args([
                format!("--wsrep-provider={PROVIDER}"),
                format!("--wsrep-cluster-address=gcomm://{}", nodes.join(",")),
                format!("--wsrep-node-address={at}"),
                format!("--wsrep-node-name=host{number}"),
                format!("--bind-address={at}"),
                format!("--port={PORT}"),
                format!("--init-file={}", dir.join("init.sql").display()),
            ]);
            command.args(places(&dir));
            if begins.swap(false, SeqCst) {
                command.arg("--wsrep-new-cluster");
            }
            command
        }),
    )
    .await;
}

/// A server whose files are damaged begins with the template's, and the others send it theirs.
pub async fn join_anew(host: &Arc<Host>, template: &Path) {
    let dir = host.folder("mariadb");
    host.while_ended("mariadb", || {
        std::fs::remove_dir_all(dir.join("data")).expect("its files");
        drop(std::fs::remove_file(dir.join("started")));
        own_folder(host, template);
    })
    .await;
}

/// The address of one host's server.
pub fn url(number: Number) -> String {
    format!("mysql://root@{}:{PORT}/seckill?prefer_socket=false", address(number))
}

#[derive(QueryableByName)]
struct Value {
    #[diesel(sql_type = Text)]
    value: String,
}

/// One value from a host's server; `None` when it does not answer.
pub async fn ask(number: Number, query: &str) -> Option<String> {
    let url = url(number);
    let asking = async {
        let mut connection = AsyncMysqlConnection::establish(&url).await.ok()?;
        let found: Vec<Value> = diesel::sql_query(query).load(&mut connection).await.ok()?;
        found.into_iter().next().map(|found| found.value)
    };
    tokio::time::timeout(ANSWER, asking).await.ok()?
}

fn status(name: &str) -> String {
    format!("SELECT VARIABLE_VALUE AS value FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = '{name}'")
}

/// What keeps the cluster from being whole, if anything.
pub async fn lacks() -> Option<String> {
    for number in NUMBERS {
        for (name, wanted) in
            [("wsrep_cluster_size", "3"), ("wsrep_local_state_comment", "Synced"), ("wsrep_ready", "ON")]
        {
            let found = ask(number, &status(name)).await;
            if found.as_deref() != Some(wanted) {
                return Some(format!("mariadb on host {number}: {name} is {found:?}"));
            }
        }
    }
    None
}

/// The host whose server takes a statement, of those that are in the cluster.
pub async fn any_ready() -> Option<Number> {
    for number in NUMBERS {
        if ask(number, &status("wsrep_ready")).await.as_deref() == Some("ON") {
            return Some(number);
        }
    }
    None
}

/// The host that the leader of the reconcilers connects from.
pub async fn reconcile_leader(writer: Number) -> Option<String> {
    let lock = "CONCAT('seckill.', LEFT(SHA2(CONCAT('seckill', '.', 'reconcile'), 256), 40))";
    let query = format!(
        "SELECT CAST(HOST AS CHAR) AS value FROM information_schema.PROCESSLIST WHERE ID = IS_USED_LOCK({lock})"
    );
    ask(writer, &query).await
}

/// After all nodes were away the last of them may wait for one that does not come: makes the furthest one the beginning of a new
/// majority, as the manual says, if none of them has one.
pub async fn bootstrap_if_stuck() -> Option<Number> {
    if any_ready().await.is_some() {
        return None;
    }
    let mut furthest = None;
    for number in NUMBERS {
        let committed = ask(number, &status("wsrep_last_committed")).await.and_then(|text| text.parse::<i64>().ok());
        furthest = furthest.max(committed.map(|committed| (committed, number)));
    }
    let (_, number) = furthest?;
    let act = "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'";
    crate::raw_commands::try_sql(&url(number), act).await.ok()?;
    Some(number)
}

/// Servers that run, but have left the cluster and do not try to come back.
pub async fn left_for_good() -> Vec<Number> {
    let mut left = Vec::new();
    for number in NUMBERS {
        if ask(number, &status("wsrep_cluster_status")).await.as_deref() == Some("Disconnected") {
            left.push(number);
        }
    }
    left
}
