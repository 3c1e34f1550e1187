//! The web server of a login service: it shows a set of keys, and can be away, slow, endless or wrong.

use super::certificates::Certificates;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// What a caller gets.
#[derive(Clone)]
enum Behaviour {
    /// These bytes, then the end.
    Answers(Vec<u8>),
    /// The end, in place of an answer.
    Away,
    /// Nothing, for ever.
    Silent,
    /// A body without a length that does not end.
    Endless,
}

#[derive(Default)]
struct Shared {
    behaviour: Mutex<Option<Behaviour>>,
    fetches: AtomicUsize,
}

/// Listens until it is dropped.
pub struct Issuer {
    /// For `auth.jwks_url`.
    pub url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a server with the certificate `server` takes connections with.
pub fn acceptor(certificates: &Certificates) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(certificates.file("server.pem")).expect("a file");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(certificates.file("server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("a pair");
    TlsAcceptor::from(Arc::new(config))
}

impl Issuer {
    /// One that shows this set.
    pub async fn start(set: &Value) -> Self {
        Self::listening(set, None).await
    }

    /// The same over TLS, with the certificate `server` for `localhost`.
    pub async fn start_tls(set: &Value, certificates: &Certificates) -> Self {
        Self::listening(set, Some(acceptor(certificates))).await
    }

    async fn listening(set: &Value, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url = match &tls {
            Some(_) => format!("https://localhost:{port}/keys?of=buyers"),
            None => format!("http://127.0.0.1:{port}/keys?of=buyers"),
        };
        let shared = Arc::new(Shared::default());
        let all = shared.clone();
        let task = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, tls) = (all.clone(), tls.clone());
                clients.spawn(async move {
                    match tls {
                        None => serve(stream, &shared).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &shared).await,
                            Err(_) => drop(shared.fetches.fetch_add(1, Ordering::SeqCst)),
                        },
                    }
                });
            }
        });
        let issuer = Self { url, shared, task };
        issuer.publish(set);
        issuer
    }

    /// Shows another set from now on.
    pub fn publish(&self, set: &Value) {
        self.answer("200 OK", "Content-Type: application/json\r\n", set.to_string().as_bytes());
    }

    /// Answers this.
    pub fn answer(&self, status: &str, headers: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        self.behaves(Behaviour::Answers([head.as_bytes(), body].concat()));
    }

    /// Closes every connection without an answer.
    pub fn goes_away(&self) {
        self.behaves(Behaviour::Away);
    }

    /// Takes requests and says nothing.
    pub fn falls_silent(&self) {
        self.behaves(Behaviour::Silent);
    }

    /// Answers without an end.
    pub fn never_ends(&self) {
        self.behaves(Behaviour::Endless);
    }

    /// How often it was asked, whatever it answered.
    pub fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    fn behaves(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = Some(behaviour);
    }
}

/// Answers one request; the caller goes away by itself.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) {
    shared.fetches.fetch_add(1, Ordering::SeqCst);
    let behaviour = shared.behaviour.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("get /keys?of=buyers http/1.1\r\n") && head.contains("\r\nhost: "), "{head}");
    match behaviour {
        None | Some(Behaviour::Away) => return,
        Some(Behaviour::Answers(bytes)) => drop(stream.write_all(&bytes).await),
        Some(Behaviour::Endless) => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = [b"1000\r\n".as_slice(), &[b' '; 4096], b"\r\n"].concat();
            let mut sent = stream.write_all(head).await;
            while sent.is_ok() {
                sent = stream.write_all(&chunk).await;
            }
        }
        Some(Behaviour::Silent) => {}
    }
    // Kept open, as servers do, until the caller closes it.
    while stream.read_u8().await.is_ok() {}
}
