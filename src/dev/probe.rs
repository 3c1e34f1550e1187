//! Is the server ready? Asked in its own protocol, because an open port proves nothing: Redis listens while it still
//! loads its file, and a restarting broker accepts before it serves.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::server::ServerKind;

/// One question and its answer, connect included.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const AMQP_0_9_1_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// True when the server on this loopback port gives the answer of a server that is ready.
pub(super) async fn answers(kind: ServerKind, port: u16) -> bool {
    matches!(timeout(PROBE_TIMEOUT, ask(kind, port)).await, Ok(Ok(true)))
}

async fn ask(kind: ServerKind, port: u16) -> io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    match kind {
        ServerKind::Redis => {
            stream.write_all(b"PING\r\n").await?;
            // While it loads its data the answer is `-LOADING …`.
            Ok(&read::<5>(&mut stream).await? == b"+PONG")
        }
        ServerKind::Rabbitmq => {
            stream.write_all(AMQP_0_9_1_HEADER).await?;
            // Connection.Start is a method frame (1); a refusal repeats the header ('A').
            Ok(read::<1>(&mut stream).await? == [1])
        }
        ServerKind::Mysql => {
            // Three bytes of length, sequence number 0, protocol version 10; an error packet has 255 there.
            let [.., sequence, version] = read::<5>(&mut stream).await?;
            Ok(sequence == 0 && version == 10)
        }
    }
}

async fn read<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut answer = [0; N];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
