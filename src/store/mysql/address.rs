//! Where the database is, and connections to it, plain or encrypted: to one server, or to that of several which takes writes.
//!
//! Input: the settings. Output: connections, and which server they are to. The certificates are read once for each
//! [`DatabaseAddress`]. A crash leaves nothing.

use super::database_server::{DatabaseServer, Established};
use crate::config::Mysql;
use crate::store::address_in_use::AddressInUse;
use crate::store::tls::{ClientCertificate, TlsError, TlsFiles, Trust};
use diesel::{ConnectionError, ConnectionResult};
use mysql_async::{ClientIdentity, SslOpts};
use pkcs8::{ObjectIdentifier, PrivateKeyInfo};
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use std::time::Duration;

/// The scheme of an encrypted connection.
const ENCRYPTED: &str = "mysqls://";
const ADDRESS: &str =
    "mysql://USER:PASSWORD@HOST:PORT/DATABASE, what is no letter or digit of the password percent-encoded";
const RSA_KEY: &str = "an RSA key (openssl genrsa): the database's driver takes no other";
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// Longest wait for each server, where no setting says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a call under way checks whether its server is still in use.
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
        let address = Self { connect_timeout, ..Self::of(urls.collect(), tls) };
        match address.servers.iter().find_map(DatabaseServer::unreadable) {
            Some(problem) => Err(TlsError::new("mysql", "url", problem.to_owned(), ADDRESS)),
            None => Ok(address),
        }
    }

    fn of(urls: Vec<String>, tls: Option<SslOpts>) -> Self {
        let in_use = AddressInUse::first_of(urls.len());
        let servers = urls.into_iter().map(|url| DatabaseServer::new(url, tls.as_ref())).collect();
        Self { servers, in_use, tls, connect_timeout: CONNECT_TIMEOUT }
    }

    /// The URL of the first server, as the driver reads it.
    pub(crate) fn url(&self) -> &str {
        self.servers.first().map_or("", |server| server.url())
    }

    /// The same servers with other URLs.
    pub(crate) fn map(&self, change: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let urls = self.servers.iter().map(|server| change(server.url())).collect::<Option<Vec<String>>>()?;
        Some(Self { connect_timeout: self.connect_timeout, ..Self::of(urls, self.tls.clone()) })
    }

    /// Longest wait for a connection: each server has the time-out.
    pub(crate) fn patience(&self) -> Duration {
        self.connect_timeout.saturating_mul(u32::try_from(self.servers.len()).unwrap_or(u32::MAX))
    }

    /// All servers, in the order of the settings.
    pub(super) fn servers(&self) -> &[DatabaseServer] {
        &self.servers
    }

    /// Longest wait for a connection to one server.
    pub(super) const fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// The place of the server in use.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use.index()
    }

    /// Waits until another server than this one was reached; for ever where there is no other.
    pub(crate) async fn left(&self, server: usize) {
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
    pub(crate) fn give_up(&self, server: usize) {
        if self.in_use.give_up(server) {
            let shown = self.servers.get(server).map(DatabaseServer::shown);
            tracing::warn!(server = shown, "a database server is given up, the next one is tried");
        }
    }

    /// Connects to the server in use, else to the next that can be used, within [`DatabaseAddress::patience`]. Of several servers
    /// one that is read-only is none: it is a replica, whose rows may be old. A single one may answer reads.
    pub(crate) async fn establish(&self) -> ConnectionResult<Established> {
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
                Ok(Err(error)) => error.to_string(),
                Err(_elapsed) => "connecting took too long".to_owned(),
            };
            refused.push(format!("{}: {error}", server.shown()));
        }
        Err(ConnectionError::BadConnection(refused.join("; ")))
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
