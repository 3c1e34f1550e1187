//! Where the database is, and connections to it, plain or encrypted. Nothing is kept; the certificates are read once for
//! each [`DatabaseAddress`].

use crate::config::Mysql;
use crate::store::tls::{ClientCertificate, TlsError, TlsFiles, Trust, advised};
use diesel::{ConnectionError, ConnectionResult};
use diesel_async::{AsyncConnection, AsyncMysqlConnection};
use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};
use pkcs8::{ObjectIdentifier, PrivateKeyInfo};
use rustls::pki_types::PrivateKeyDer;

/// The scheme of an encrypted connection.
const ENCRYPTED: &str = "mysqls://";
const RSA_KEY: &str = "an RSA key (openssl genrsa): the database's driver takes no other";
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// How to reach the database. Clones share the certificates. Deliberately without `Debug`: it holds the password.
#[derive(Clone)]
pub struct DatabaseAddress {
    url: String,
    /// What is believed, and the options that hold it for this URL; they share one TLS configuration.
    tls: Option<(SslOpts, Result<Opts, String>)>,
}

impl DatabaseAddress {
    /// From `mysql.url` and the certificates it needs.
    pub fn new(settings: &Mysql) -> Result<Self, TlsError> {
        let files = TlsFiles {
            section: "mysql",
            ca: &settings.tls_ca_file,
            cert: &settings.tls_cert_file,
            key: &settings.tls_key_file,
        };
        let Some(rest) = settings.url.expose().strip_prefix(ENCRYPTED) else {
            return Ok(Self::from(settings.url.expose()));
        };
        Ok(Self::encrypted(format!("mysql://{rest}"), options(&Trust::read(files)?)?))
    }

    fn encrypted(url: String, tls: SslOpts) -> Self {
        // As diesel's own `establish` does it, which knows no certificates.
        let options = Opts::from_url(&url).map_err(|error| error.to_string()).map(|options| {
            let options = OptsBuilder::from_opts(options).stmt_cache_size(0).client_found_rows(true);
            options.ssl_opts(tls.clone()).into()
        });
        Self { url, tls: Some((tls, options)) }
    }

    /// The URL as the driver reads it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The same server, another URL.
    pub(super) fn at(&self, url: String) -> Self {
        match &self.tls {
            Some((tls, _)) => Self::encrypted(url, tls.clone()),
            None => Self { url, tls: None },
        }
    }

    pub(super) async fn establish(&self) -> ConnectionResult<AsyncMysqlConnection> {
        let options = match &self.tls {
            None => return AsyncMysqlConnection::establish(&self.url).await.map_err(|error| explained(false, &error)),
            Some((_, options)) => options.clone().map_err(ConnectionError::InvalidConnectionUrl)?,
        };
        AsyncMysqlConnection::try_from(mysql_async::Conn::new(options).await.map_err(|error| explained(true, &error))?)
            .await
    }
}

/// Without certificates; `mysqls://` is refused by the driver then.
impl From<&str> for DatabaseAddress {
    fn from(url: &str) -> Self {
        Self { url: url.to_owned(), tls: None }
    }
}

impl From<String> for DatabaseAddress {
    fn from(url: String) -> Self {
        Self { url, tls: None }
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
