//! The private servers, for real: they start, keep their data through kill -9, and leave nothing behind.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use amqprs::channel::QueueDeclareArguments;
use amqprs::connection::{Connection, OpenConnectionArguments};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::dev::{DevError, External, PrivateServers, ServerKind};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("seckill-servers-{:x}", rand::random::<u64>()));
        fs::create_dir(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_keep_their_data_through_kill_9_and_stop_leaves_no_process() -> Result<()> {
    let folder = Folder::new()?;
    // Longer than a socket path may be.
    let dir = folder.0.join("long".repeat(25));
    let begin = Instant::now();
    let mut servers = PrivateServers::start(&dir, &|progress| eprintln!("{progress:?}")).await?;
    eprintln!("started in {:?}", begin.elapsed());
    let urls = servers.urls();

    let second = PrivateServers::start(&dir, &|_| ()).await.err();
    assert!(matches!(second, Some(DevError::Busy { .. })), "{second:?}");

    assert_eq!(redis(&urls.redis_url, "SET kept yes")?, "+OK");
    assert_eq!(redis(&urls.redis_url, "CONFIG GET appendfsync")?, "*2");
    sql(&urls.mysql_url, "CREATE TABLE kept (id INT PRIMARY KEY); INSERT INTO kept VALUES (1)").await?;
    queue(&urls.amqp_url, false).await?;
    servers.add_vhost("one_test").await?;
    servers.add_vhost("one_test").await?;
    assert!(servers.add_vhost("\">>").await.is_err());

    let before = servers.pids();
    for kind in ServerKind::ALL {
        let begin = Instant::now();
        servers.kill_and_restart(kind).await?;
        eprintln!("{kind} back in {:?}", begin.elapsed());
    }
    assert_eq!(servers.urls(), urls);
    assert_eq!(redis(&urls.redis_url, "GET kept")?, "$3");
    sql(&urls.mysql_url, "INSERT INTO kept SELECT id + 1 FROM kept").await?;
    assert!(sql(&urls.mysql_url, "INSERT INTO kept VALUES (2)").await.is_err(), "row 1 was lost");
    queue(&urls.amqp_url, true).await?;
    assert!(before.values().all(|pid| !runs(*pid)));

    // A death nobody ordered; and a server that is stopped (SIGSTOP) can still be restarted and stopped.
    assert!(servers.check_and_restart_dead().await.is_empty());
    servers.server(ServerKind::Redis)?.kill().await?;
    let restarted = servers.check_and_restart_dead().await;
    assert!(matches!(restarted.as_slice(), [(ServerKind::Redis, Ok(()))]), "{restarted:?}");
    assert_eq!(redis(&urls.redis_url, "GET kept")?, "$3");
    servers.server(ServerKind::Mysql)?.pause()?;

    let pids = servers.pids();
    assert!(pids.len() == 3 && pids.values().all(|pid| runs(*pid)));
    let begin = Instant::now();
    servers.stop().await?;
    eprintln!("stopped in {:?}", begin.elapsed());
    assert!(pids.values().all(|pid| !runs(*pid)));
    nobody_works_in(&folder.0);

    // Another start on the same folder finds the data, on whatever port.
    let again = PrivateServers::start(&dir, &|_| ()).await?;
    assert_eq!(redis(&again.urls().redis_url, "GET kept")?, "$3");
    queue(&again.urls().amqp_url, true).await?;
    let pids = again.pids();
    drop(again);
    assert!(pids.values().all(|pid| !runs(*pid)));
    Ok(())
}

#[test]
fn kill_9_of_the_parent_leaves_no_server_behind() -> Result<()> {
    let folder = Folder::new()?;
    let mut parent = Command::new(std::env::current_exe()?)
        .args(["--exact", "helper_starts_servers_and_waits", "--ignored"])
        .env("SECKILL_TEST_SERVERS_DIR", &folder.0)
        .spawn()?;
    let pids = loop {
        if let Ok(text) = fs::read_to_string(folder.0.join("pids.json")) {
            break serde_json::from_str::<BTreeMap<String, u32>>(&text)?;
        }
        assert!(parent.try_wait()?.is_none(), "the helper ended early");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(pids.len() == 3 && pids.values().all(|pid| runs(*pid)));
    parent.kill()?;
    parent.wait()?;
    let end = Instant::now() + Duration::from_secs(10);
    while pids.values().any(|pid| runs(*pid)) {
        assert!(Instant::now() < end, "a server outlived its parent: {pids:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    nobody_works_in(&folder.0);
    Ok(())
}

#[test]
#[ignore = "run as a child process by kill_9_of_the_parent_leaves_no_server_behind"]
fn helper_starts_servers_and_waits() -> Result<()> {
    let Some(dir) = std::env::var_os("SECKILL_TEST_SERVERS_DIR").map(PathBuf::from) else { return Ok(()) };
    let runtime = tokio::runtime::Runtime::new()?;
    let servers = runtime.block_on(PrivateServers::start_beside(External::default(), &dir.join("data"), &|_| ()))?;
    fs::write(dir.join("pids.new"), serde_json::to_vec(&servers.pids())?)?;
    fs::rename(dir.join("pids.new"), dir.join("pids.json"))?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// False also for a zombie, whose new parent may be slow to reap it.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}

/// No process, helpers of the servers included, names the folder in its arguments or sits in it.
fn nobody_works_in(folder: &Path) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let workers: Vec<PathBuf> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
            .collect();
        if workers.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "still there: {workers:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// First line of the answer to an inline command.
fn redis(url: &str, command: &str) -> Result<String> {
    let mut stream = TcpStream::connect(url.trim_start_matches("redis://"))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    writeln!(stream, "{command}\r")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

async fn sql(url: &str, statements: &str) -> Result<()> {
    Ok(AsyncMysqlConnection::establish(url).await?.batch_execute(statements).await?)
}

async fn queue(url: &str, passive: bool) -> Result<()> {
    let port = url.trim_end_matches("/%2f").rsplit(':').next().unwrap_or_default().parse()?;
    let connection = Connection::open(&OpenConnectionArguments::new("127.0.0.1", port, "guest", "guest")).await?;
    let channel = connection.open_channel(None).await?;
    let mut queue = QueueDeclareArguments::durable_client_named("kept");
    queue.passive(passive);
    channel.queue_declare(queue).await?;
    connection.close().await?;
    Ok(())
}
