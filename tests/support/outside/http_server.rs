//! A small HTTP server in the test's process: every call gets what a function says of it. It can answer in pieces, stay silent, hang
//! up, send a body without an end, vanish and come back at its address, and serve over TLS.

use super::certificates::Certificates;
use crate::support::basics::time::eventually;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A call, as it came.
#[derive(Debug, Clone)]
pub struct HttpCall {
    /// Request line.
    pub line: String,
    /// Header fields, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The raw body.
    pub body: Vec<u8>,
    /// Calls before this one on its connection.
    pub before: usize,
}

/// What a caller gets.
#[derive(Debug, Clone)]
pub struct HttpReply {
    pieces: Vec<Vec<u8>>,
    then: After,
}

#[derive(Debug, Clone, Copy)]
enum After {
    NextCall,
    HangUp,
    Silence,
    Endless,
}

impl HttpReply {
    /// This status, these header lines, each with its end, and this body.
    pub fn new(status: &str, headers: &str, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        Self::pieces(vec![[head.as_bytes(), body].concat()])
    }

    /// These bytes, piece by piece; the connection stays.
    pub fn pieces(pieces: Vec<Vec<u8>>) -> Self {
        Self { pieces, then: After::NextCall }
    }

    /// These bytes, and the end of the connection.
    pub fn last(pieces: Vec<Vec<u8>>) -> Self {
        Self { pieces, then: After::HangUp }
    }

    /// The end of the connection, in place of an answer.
    pub fn hang_up() -> Self {
        Self::last(vec![])
    }

    /// Nothing, for ever.
    pub fn silence() -> Self {
        Self { pieces: vec![], then: After::Silence }
    }

    /// A body without a length that does not end.
    pub fn endless() -> Self {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        Self { pieces: vec![head.to_vec()], then: After::Endless }
    }

    /// Whether it is an answer of 2xx.
    pub fn is_success(&self) -> bool {
        self.pieces.first().is_some_and(|piece| piece.starts_with(b"HTTP/1.1 2"))
    }
}

type Handler = dyn Fn(HttpCall) -> HttpReply + Send + Sync;

/// Listens until it is closed or dropped.
pub struct HttpServer {
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    handler: Arc<Handler>,
    connections: Arc<AtomicUsize>,
    task: Option<JoinHandle<()>>,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.close();
    }
}

impl HttpServer {
    /// With certificates it serves over TLS, with the certificate `server` for `localhost`.
    pub async fn start(
        certificates: Option<&Certificates>,
        handler: impl Fn(HttpCall) -> HttpReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, tls) = (listener.local_addr().expect("an address"), certificates.map(acceptor));
        let mut server = Self { address, tls, handler: Arc::new(handler), connections: Arc::default(), task: None };
        server.serve(listener);
        server
    }

    fn serve(&mut self, listener: TcpListener) {
        let (handler, tls, connections) = (self.handler.clone(), self.tls.clone(), self.connections.clone());
        self.task = Some(tokio::spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (handler, tls) = (handler.clone(), tls.clone());
                clients.spawn(async move {
                    stream.set_nodelay(true).ok();
                    match tls {
                        None => serve(stream, &*handler).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &*handler).await,
                            Err(_refused) => None,
                        },
                    }
                });
            }
        }));
    }

    /// The address of a path, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        match self.tls {
            None => format!("http://{}{path}", self.address),
            Some(_) => format!("https://localhost:{}{path}", self.address.port()),
        }
    }

    /// Connections so far, those that broke off in TLS among them.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Nothing listens at its address any more, and its connections end.
    pub fn close(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// It listens at the same address again.
    pub async fn open(&mut self) {
        let mut listener = None;
        eventually("its port is free", async || {
            listener = TcpListener::bind(self.address).await.ok();
            listener.is_some()
        })
        .await;
        self.serve(listener.expect("a listener"));
    }
}

/// Answers the calls of a connection until one of both sides ends it.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, handler: &Handler) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut before = 0;
    loop {
        let reply = handler(read_call(&mut stream, before).await?);
        for piece in reply.pieces {
            stream.write_all(&piece).await.ok()?;
            stream.flush().await.ok()?;
            tokio::task::yield_now().await;
        }
        match reply.then {
            After::NextCall => before += 1,
            After::HangUp => return None,
            After::Silence => while stream.read_u8().await.is_ok() {},
            After::Endless => {
                let chunk = [b"1000\r\n".as_slice(), &[b' '; 4096], b"\r\n"].concat();
                while stream.write_all(&chunk).await.is_ok() {}
            }
        }
    }
}

async fn read_call(stream: &mut (impl AsyncBufReadExt + Unpin), before: usize) -> Option<HttpCall> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    let line = lines.next().expect("a request line");
    let fields = lines
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())));
    let headers: BTreeMap<String, String> = fields.collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(HttpCall { line, headers, body, before })
}

/// What a server with the certificate `server` takes connections with.
fn acceptor(certificates: &Certificates) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(certificates.file("server.pem")).expect("a file");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(certificates.file("server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("a pair");
    TlsAcceptor::from(Arc::new(config))
}
