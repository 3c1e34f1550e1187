//! Trust between this program and the three servers, and the issuer of access tokens: the trusted certificates, and this
//! program's own. Written by hand because three client libraries take the same three files in different forms, and errors have to name the configuration key.
//!
//! Input: three PEM files a server section. Output: what each client library takes. Always rustls with `aws-lc-rs`, TLS 1.2 or
//! 1.3, the server's name verified; there is no switch that turns the verification off. The files are read when a process
//! starts, so a renewed one counts from the next start on.

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

/// Paths of one server section: `tls_ca_file`, `tls_cert_file`, `tls_key_file`. An empty path means no file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TlsFiles<'a> {
    /// The section, for messages: `redis`, `rabbitmq`, `mysql` or `auth`.
    pub section: &'static str,
    pub ca: &'a str,
    pub cert: &'a str,
    pub key: &'a str,
}

/// A file that cannot be used, or files that do not go together. Names the key and the path, never what is in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{section}.{key}: {problem}; expected {expected}")]
pub struct TlsError {
    section: &'static str,
    key: &'static str,
    problem: String,
    expected: &'static str,
}

impl TlsError {
    pub(super) fn new(section: &'static str, key: &'static str, problem: String, expected: &'static str) -> Self {
        Self { section, key, problem, expected }
    }
}

const CA: &str = "a PEM file with the certificate of the CA that signed the server's (-----BEGIN CERTIFICATE-----)";
const CERT: &str = "a PEM file with this program's certificate, followed by the certificates between it and the CA";
const KEY: &str = "a PEM file with the key of tls_cert_file without a password (BEGIN PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY)";

/// This program's own certificate and its key.
pub(super) struct ClientCertificate {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) cert_file: PathBuf,
}

/// The trusted certificates, and the own one.
pub struct Trust {
    section: &'static str,
    /// All of them are usable.
    pub(super) roots: Vec<CertificateDer<'static>>,
    pub(super) identity: Option<ClientCertificate>,
    connector: tokio_rustls::TlsConnector,
}

/// Nothing of what is in the files.
impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust")
            .field("section", &self.section)
            .field("roots", &self.roots.len())
            .finish_non_exhaustive()
    }
}

impl Trust {
    /// Reads the files.
    pub(crate) fn read(files: TlsFiles<'_>) -> Result<Self, TlsError> {
        only_one_provider();
        let wrong = |key, problem, expected| TlsError::new(files.section, key, problem, expected);
        let given = if files.ca.is_empty() { system_roots() } else { certificates(Path::new(files.ca)) };
        let given = given.map_err(|problem| wrong("tls_ca_file", problem, CA))?;
        let (mut store, mut roots) = (RootCertStore::empty(), Vec::new());
        for root in given {
            match store.add(root.clone()) {
                Ok(()) => roots.push(root),
                // Some certificates of the system are not usable any more.
                Err(_) if files.ca.is_empty() => {}
                Err(error) => return Err(wrong("tls_ca_file", format!("{}: {error}", files.ca), CA)),
            }
        }
        let identity = identity(files)?;
        let builder = ClientConfig::builder().with_root_certificates(store);
        let config = match &identity {
            None => builder.with_no_client_auth(),
            Some(ClientCertificate { chain, key, .. }) => {
                builder.with_client_auth_cert(chain.clone(), key.clone_key()).map_err(|error| {
                    wrong("tls_key_file", format!("{} does not fit {}: {error}", files.key, files.cert), KEY)
                })?
            }
        };
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        Ok(Self { section: files.section, roots, identity, connector })
    }

    /// Makes TLS connections that believe the roots only.
    #[must_use]
    pub(crate) fn connector(&self) -> tokio_rustls::TlsConnector {
        self.connector.clone()
    }
}

/// For a client that connects by itself. Without trust it believes no certificate.
pub(crate) fn client_config(trust: Option<&Trust>) -> ClientConfig {
    only_one_provider();
    let nothing = || ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    trust.map_or_else(nothing, |trust| trust.connector.config().as_ref().clone())
}

/// mysql_async makes its configuration itself, from the provider of the process.
fn only_one_provider() {
    static ONCE: Once = Once::new();
    // An error says that there is one already; then it is the same one.
    ONCE.call_once(|| drop(rustls::crypto::aws_lc_rs::default_provider().install_default()));
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err("is empty, and this system has no CA certificates (package ca-certificates)".to_owned());
    }
    Ok(found.certs)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match found {
        Ok(found) if found.is_empty() => Err(format!("{} has no certificate in it", file.display())),
        Ok(found) => Ok(found),
        Err(error) => Err(unreadable(file, &error)),
    }
}

fn identity(files: TlsFiles<'_>) -> Result<Option<ClientCertificate>, TlsError> {
    let wrong = |key, problem, expected| TlsError::new(files.section, key, problem, expected);
    match (files.cert, files.key) {
        ("", "") => Ok(None),
        ("", key) => Err(wrong("tls_cert_file", format!("is empty, but tls_key_file is {key}"), CERT)),
        (cert, "") => Err(wrong("tls_key_file", format!("is empty, but tls_cert_file is {cert}"), KEY)),
        (cert, key) => {
            let cert_file = PathBuf::from(cert);
            let chain = certificates(&cert_file).map_err(|problem| wrong("tls_cert_file", problem, CERT))?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| wrong("tls_key_file", unreadable(Path::new(key), &error), KEY))?;
            Ok(Some(ClientCertificate { chain, key, cert_file }))
        }
    }
}

/// Never with a part of the file: it may be a key.
fn unreadable(file: &Path, error: &PemError) -> String {
    let file = file.display();
    // A foreign enum that may grow: what is not about reading is about what was read.
    if let PemError::Io(error) = error {
        format!("{file} cannot be read: {error}")
    } else {
        format!("{file} is something else")
    }
}

/// Words of a failed TLS connection, and what they mean. `{s}` is the section.
const MEANINGS: [(&[&str], &str); 7] = [
    (
        &["UnknownIssuer"],
        "its certificate is not signed by a CA of {s}.tls_ca_file (empty: the system's): name the file of the CA that signed it",
    ),
    (
        &["not valid for name", "NotValidForName"],
        "the server has a certificate for another name: write that name as the host in {s}.url, or give the server a certificate \
         for this one",
    ),
    (&["certificate expired", "Expired"], "the server's certificate has expired, or this machine's clock is wrong"),
    (&["CaUsedAsEndEntity"], "the server shows the certificate of a CA: give it one that the CA signed"),
    (
        &["CertificateRequired", "HandshakeFailure", "BadCertificate", "UnknownCA", "CertificateUnknown"],
        "the server wants a certificate of this program from a CA that it believes: {s}.tls_cert_file and {s}.tls_key_file",
    ),
    (
        &["InvalidContentType", "corrupt message", "server does not have this capability"],
        "the server does not speak TLS there: name its TLS port in {s}.url, or switch its TLS on",
    ),
    (&["insecure transport"], "the server wants TLS: write {s}.url with {tls}://"),
];
/// How a plain connection ends at a port that takes TLS only; also how any other lost connection ends.
/// MariaDB does not say that it is about TLS. RabbitMQ 4 closes quietly, and the driver's words for it are the last ones.
const CUT: [&str; 7] = [
    "reset by peer",
    "ConnectionReset",
    "UnexpectedEof",
    "eof",
    "EOF",
    "Access denied for user",
    "connection interrupted",
];

/// The words of a failed connection, and behind them what they mean and what to do about it, as far as that is known.
#[must_use]
pub(crate) fn advised(section: &str, encrypted: bool, words: &str) -> String {
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let meaning = match MEANINGS.iter().find(|(parts, _)| has(parts)) {
        Some((_, meaning)) => meaning,
        None if !encrypted && has(&CUT) => "if it takes TLS only, write {s}.url with {tls}://",
        None => return words.to_owned(),
    };
    let tls = match section {
        "redis" => "rediss",
        "rabbitmq" => "amqps",
        _ => "mysqls",
    };
    format!("{words}; {}", meaning.replace("{s}", section).replace("{tls}", tls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_connection_that_ends_gets_an_error_about_tls_in_the_words_of_every_server() {
        let ends = [
            ("redis", "IO Error: Connection reset by peer (os error 104)", "rediss://"),
            // RabbitMQ 3.10 resets, RabbitMQ 4 closes.
            ("rabbitmq", "AMQP network error: connection interrupted", "amqps://"),
            ("mysql", "Access denied for user 'root'@'127.0.0.1' (using password: NO)", "mysqls://"),
            (
                "mysql",
                "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
                "mysqls://",
            ),
        ];
        for (section, words, scheme) in ends {
            let advice = advised(section, false, words);
            assert!(
                advice.starts_with(words) && advice.contains(&format!("write {section}.url with {scheme}")),
                "{advice}"
            );
            assert!(
                section == "mysql" || advised(section, true, words) == words,
                "an encrypted one just ended: {words}"
            );
        }
    }
}
