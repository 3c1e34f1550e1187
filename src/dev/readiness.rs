//! Whether a server is ready, by its own protocol, because an open port proves nothing: Redis listens while it still
//! loads its file, and a restarting broker accepts before it serves.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::DevError;
use super::encryption::Encryption;
use super::kind::ServerKind;
use crate::store::tls::Trust;

/// One question and its answer, connect included.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const AMQP_0_9_1_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// The probe of a server, on its loopback port.
pub(super) struct ReadinessCheck {
    pub(super) kind: ServerKind,
    pub(super) port: u16,
    pub(super) tls: Option<(Arc<Trust>, String)>,
}

/// How to probe an encrypted server.
pub(super) fn tls(encryption: &Encryption) -> Result<(Arc<Trust>, String), DevError> {
    Ok((encryption.trust()?, encryption.name.clone()))
}

/// True when the server there gives the answer of a server that is ready.
pub(super) async fn is_ready(check: &ReadinessCheck) -> bool {
    matches!(timeout(PROBE_TIMEOUT, connect_and_ask(check)).await, Ok(Ok(true)))
}

async fn connect_and_ask(check: &ReadinessCheck) -> io::Result<bool> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, check.port)).await?;
    match &check.tls {
        // Its greeting comes before the encryption.
        Some((trust, name)) if check.kind != ServerKind::Mysql => {
            let name = ServerName::try_from(name.clone()).map_err(io::Error::other)?;
            ask(check.kind, trust.connector().connect(name, stream).await?).await
        }
        Some(_) | None => ask(check.kind, stream).await,
    }
}

async fn ask(kind: ServerKind, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<bool> {
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

async fn read<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut answer = [0; N];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
