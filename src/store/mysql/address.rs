//! Where the database is, and connections to it, plain or encrypted: to one server, or to that of several which takes writes.
//!
//! Input: the settings. Output: connections, and which server they are to. The certificates are read once for each
//! [`DatabaseAddress`]. A crash leaves nothing.

use super::checks::{self, Check};
use super::database_state::DatabaseState;
use crate::config::Mysql;
use crate::store::address_in_use::AddressInUse;
use crate::store::tls::{ClientCertificate, TlsError, TlsFiles, Trust, advised};
use diesel::{ConnectionError, ConnectionResult};
use diesel_async::{AsyncConnection, AsyncMysqlConnection};
use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};
use pkcs8::{ObjectIdentifier, PrivateKeyInfo};
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The scheme of an encrypted connection.
const ENCRYPTED: &str = "mysqls://";
const RSA_KEY: &str = "an RSA key (openssl genrsa): the database's driver takes no other";
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// Longest wait for each server, where no setting says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a call under way looks whether its server is still in use.
const LEFT_CHECK: Duration = Duration::from_secs(1);

/// How to reach the database: one server, or several of which one is the primary. Clones share the certificates, and the server
/// in use. Deliberately without `Debug`: it holds the password.
#[derive(Clone)]
pub struct DatabaseAddress {
    servers: Arc<[DatabaseServer]>,
    in_use: AddressInUse,
    /// What is believed, for encrypted connections.
    tls: Option<SslOpts>,
    connect_timeout: Duration,
}

struct DatabaseServer {
    /// As the driver reads it.
    url: String,
    /// The options with the certificates; they share one TLS configuration.
    encrypted: Option<Result<Opts, String>>,
}

/// A new connection, and what its server is.
pub(super) struct Established {
    pub(super) conn: AsyncMysqlConnection,
    /// The server's place in the list.
    pub(super) server: usize,
    /// Whether it is a node of a Galera cluster.
    pub(super) is_galera: bool,
    is_read_only: bool,
}

impl DatabaseAddress {
    /// From `mysql.url` or `mysql.urls`, and the certificates they need.
    pub fn new(settings: &Mysql) -> Result<Self, TlsError> {
        let files = TlsFiles {
            section: "mysql",
            ca: &settings.tls_ca_file,
            cert: &settings.tls_cert_file,
            key: &settings.tls_key_file,
        };
        let urls = settings.urls_in_use();
        let encrypted = urls.iter().any(|url| url.expose().starts_with(ENCRYPTED));
        let tls = encrypted.then(|| options(&Trust::read(files)?)).transpose()?;
        let urls = urls.iter().map(|url| match url.expose().strip_prefix(ENCRYPTED) {
            Some(rest) => format!("mysql://{rest}"),
            None => url.expose().to_owned(),
        });
        let connect_timeout = Duration::from_millis(settings.connect_timeout_ms);
        Ok(Self { connect_timeout, ..Self::of(urls.collect(), tls) })
    }

    fn of(urls: Vec<String>, tls: Option<SslOpts>) -> Self {
        let in_use = AddressInUse::first_of(urls.len());
        let servers = urls.into_iter().map(|url| DatabaseServer::new(url, tls.as_ref())).collect();
        Self { servers, in_use, tls, connect_timeout: CONNECT_TIMEOUT }
    }

    /// The URL of the first server, as the driver reads it.
    pub(super) fn url(&self) -> &str {
        self.servers.first().map_or("", |server| &server.url)
    }

    /// The same servers with other URLs.
    pub(super) fn map(&self, change: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let urls = self.servers.iter().map(|server| change(&server.url)).collect::<Option<Vec<String>>>()?;
        Some(Self { connect_timeout: self.connect_timeout, ..Self::of(urls, self.tls.clone()) })
    }

    /// Longest wait for a connection: each server has the time-out.
    pub(super) fn patience(&self) -> Duration {
        self.connect_timeout.saturating_mul(u32::try_from(self.servers.len()).unwrap_or(u32::MAX))
    }

    /// The place of the server in use.
    pub(super) fn in_use(&self) -> usize {
        self.in_use.index()
    }

    /// Waits until another server than this one was reached; for ever where there is no other.
    pub(super) async fn left(&self, server: usize) {
        if self.servers.len() < 2 {
            return std::future::pending().await;
        }
        // At first a pause: most calls are over by then.
        loop {
            tokio::time::sleep(LEFT_CHECK).await;
            if self.in_use.was_left(server) {
                return;
            }
        }
    }

    /// This server is silent, takes no writes, or is not ready: the next connection is to another, if there is one that can be
    /// used.
    pub(super) fn give_up(&self, server: usize) {
        if self.in_use.give_up(server) {
            let shown = self.servers.get(server).map(DatabaseServer::shown);
            tracing::warn!(server = shown, "a database server is given up, the next one is tried");
        }
    }

    /// Connects to the server in use, else to the next that can be used, within [`DatabaseAddress::patience`]. Of several servers
    /// one that is read-only is none: it is a replica, whose rows may be old. A single one may answer reads.
    pub(super) async fn establish(&self) -> ConnectionResult<Established> {
        let mut refused = Vec::new();
        for index in self.in_use.in_turn() {
            let Some(server) = self.servers.get(index) else { continue };
            let connecting = server.connect(index, self.servers.len() > 1);
            let error = match tokio::time::timeout(self.connect_timeout, connecting).await {
                Ok(Ok(established)) => {
                    if self.in_use.switch_to(index) {
                        tracing::warn!(
                            server = server.shown(),
                            refused = refused.join("; "),
                            "another database server is used"
                        );
                    }
                    return Ok(established);
                }
                Ok(Err(error)) if self.servers.len() == 1 => return Err(error),
                Ok(Err(error)) => error.to_string(),
                Err(_elapsed) => "connecting took too long".to_owned(),
            };
            refused.push(format!("{}: {error}", server.shown()));
        }
        Err(ConnectionError::BadConnection(refused.join("; ")))
    }
}

/// What one address of several is at this moment.
pub(crate) struct AddressState {
    /// Host and port.
    pub(crate) address: String,
    /// In two words, or why there is no connection.
    pub(crate) found: Result<&'static str, String>,
    /// Whether its commits are on its disk; nothing without a connection.
    pub(crate) of_disk: Vec<Check>,
}

impl DatabaseAddress {
    /// Connects to each server in turn, within the time-out each.
    pub(super) async fn states(&self) -> Vec<AddressState> {
        let mut states = Vec::new();
        for (index, server) in self.servers.iter().enumerate() {
            let reading = tokio::time::timeout(self.connect_timeout, server.state(index));
            let read = reading.await.unwrap_or_else(|_elapsed| Err("connecting took too long".to_owned()));
            let (found, of_disk) = match read {
                Ok((found, of_disk)) => (Ok(found), of_disk),
                Err(error) => (Err(error), Vec::new()),
            };
            states.push(AddressState { address: server.shown(), found, of_disk });
        }
        states
    }
}

impl DatabaseServer {
    fn new(url: String, tls: Option<&SslOpts>) -> Self {
        let url = over_the_network(url);
        // As diesel's own `establish` does it, which knows no certificates.
        let encrypted = tls.map(|tls| {
            let options = Opts::from_url(&url).map_err(|error| error.to_string())?;
            let options = OptsBuilder::from_opts(options).stmt_cache_size(0).client_found_rows(true);
            Ok(options.ssl_opts(tls.clone()).into())
        });
        Self { url, encrypted }
    }

    /// Host and port, fit for a message.
    fn shown(&self) -> String {
        let url = Url::parse(&self.url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or("unreadable address").to_owned();
        url.and_then(|url| url.port()).map_or(host.clone(), |port| format!("{host}:{port}"))
    }

    /// What it is, and its settings.
    async fn state(&self, server: usize) -> Result<(&'static str, Vec<Check>), String> {
        let mut established = self.connect(server, false).await.map_err(|error| error.to_string())?;
        let found = match &established {
            Established { is_galera: true, .. } => "node of Galera",
            Established { is_read_only: true, .. } => "read-only",
            Established { .. } => "takes writes",
        };
        let of_disk = checks::of_server(&mut established.conn).await.map_err(|error| error.to_string())?;
        Ok((found, of_disk))
    }

    async fn connect(&self, server: usize, must_write: bool) -> ConnectionResult<Established> {
        let mut conn = match &self.encrypted {
            None => AsyncMysqlConnection::establish(&self.url).await.map_err(|error| explained(false, &error))?,
            Some(options) => {
                let options = options.clone().map_err(ConnectionError::InvalidConnectionUrl)?;
                let conn = mysql_async::Conn::new(options).await.map_err(|error| explained(true, &error))?;
                AsyncMysqlConnection::try_from(conn).await?
            }
        };
        let state = DatabaseState::of(&mut conn).await.map_err(ConnectionError::CouldntSetupConfiguration)?;
        if must_write && state.is_read_only {
            return Err(ConnectionError::BadConnection("is read-only".to_owned()));
        }
        Ok(Established { conn, server, is_galera: state.is_galera, is_read_only: state.is_read_only })
    }
}

/// The address as it stands is meant. Left alone, the driver asks the server for its Unix socket and connects again over the path
/// of that name on this machine: another server, where this machine has one of its own, and without TLS.
/// Source: mysql_async 0.36, `Opts::prefer_socket`.
fn over_the_network(url: String) -> String {
    const CHOICE: &str = "prefer_socket";
    match Url::parse(&url) {
        Ok(mut parsed) if !parsed.query_pairs().any(|(name, _)| name == CHOICE) => {
            parsed.query_pairs_mut().append_pair(CHOICE, "false");
            parsed.into()
        }
        Ok(_) | Err(_) => url,
    }
}

/// Without certificates; `mysqls://` is refused by the driver then.
impl From<&str> for DatabaseAddress {
    fn from(url: &str) -> Self {
        Self::from(url.to_owned())
    }
}

impl From<String> for DatabaseAddress {
    fn from(url: String) -> Self {
        Self::of(vec![url], None)
    }
}

impl From<&String> for DatabaseAddress {
    fn from(url: &String) -> Self {
        Self::from(url.as_str())
    }
}

fn explained(encrypted: bool, error: &impl ToString) -> ConnectionError {
    ConnectionError::BadConnection(advised("mysql", encrypted, &error.to_string()))
}

fn options(trust: &Trust) -> Result<SslOpts, TlsError> {
    let roots = trust.roots.iter().map(|root| root.as_ref().to_vec().into()).collect();
    let identity = trust.identity.as_ref().map(identity).transpose()?;
    Ok(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots).with_client_identity(identity))
}

/// The driver takes RSA keys in PKCS#1 only, so one in PKCS#8 is unpacked.
fn identity(identity: &ClientCertificate) -> Result<ClientIdentity, TlsError> {
    let other = || TlsError::new("mysql", "tls_key_file", "is not an RSA key".to_owned(), RSA_KEY);
    let key = match &identity.key {
        PrivateKeyDer::Pkcs1(key) => key.secret_pkcs1_der().to_vec(),
        PrivateKeyDer::Pkcs8(key) => {
            let key = PrivateKeyInfo::try_from(key.secret_pkcs8_der()).ok().filter(|key| key.algorithm.oid == RSA);
            key.ok_or_else(other)?.private_key.to_vec()
        }
        // Foreign enum that may grow.
        PrivateKeyDer::Sec1(_) | _ => return Err(other()),
    };
    Ok(ClientIdentity::new(identity.cert_file.clone().into(), key.into()))
}
