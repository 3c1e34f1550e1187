//! A replica of an environment's Redis, for settings under which a purchase counts only when a replica has it.

use seckill::cli::Failure;
use seckill::dev::{self, Server};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// It is in step within this time, and answers each question within it.
const IN_STEP: Duration = Duration::from_secs(30);
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Starts one of the Redis at `port` on loopback; returns when it is in step.
pub(super) async fn start(dir: &Path, port: u16) -> Result<Server, Failure> {
    let replica = dev::redis::start(&dir.join("replica"), dev::ports::free_port()?).await?;
    ask(port, "CONFIG SET repl-diskless-sync-delay 0").await?;
    ask(replica.port(), &format!("REPLICAOF 127.0.0.1 {port}")).await?;
    let until = Instant::now() + IN_STEP;
    while !ask(replica.port(), "INFO replication").await?.contains("master_link_status:up") {
        if Instant::now() > until {
            return Err(Failure::Failed("the replica of Redis is not in step in time".to_owned()));
        }
        sleep(CHECK_EVERY).await;
    }
    Ok(replica)
}

/// One command, and the first piece of its answer.
async fn ask(port: u16, command: &str) -> Result<String, Failure> {
    let conversation = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("{command}\r\n").as_bytes()).await?;
        let mut answer = vec![0; 4096];
        let bytes = stream.read(&mut answer).await?;
        answer.truncate(bytes);
        Ok::<_, std::io::Error>(answer)
    };
    let late = |_elapsed| Failure::Failed(format!("Redis did not answer {command} in time"));
    let answer = timeout(IN_STEP, conversation).await.map_err(late)??;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.starts_with('-') { Err(Failure::Failed(format!("{command}: {answer}"))) } else { Ok(answer) }
}
