//! Certificates for private servers that take TLS only.
//!
//! Input: PEM files made elsewhere. Output: the options of each server's command line or file, and how the ready probe
//! connects. Nothing is kept.

use super::DevError;
use crate::store::tls::{TlsFiles, Trust};
use std::path::PathBuf;
use std::sync::Arc;

/// One certificate for a set of servers; their plain ports are off.
#[derive(Debug, Clone)]
pub struct Encryption {
    /// The CA, for clients' certificates and the ready probe.
    pub ca: PathBuf,
    /// Certificate of the servers; also shown by the ready probe.
    pub cert: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// The only name in it. It has to lead to 127.0.0.1.
    pub name: String,
    /// Whether clients must show a certificate of the CA.
    pub clients_too: bool,
}

impl Encryption {
    /// How the ready probe connects.
    pub(super) fn trust(&self) -> Result<Arc<Trust>, DevError> {
        let [ca, cert, key] = [&self.ca, &self.cert, &self.key].map(|file| file.to_string_lossy().into_owned());
        let files = TlsFiles { section: "private server", ca: &ca, cert: &cert, key: &key };
        Trust::read(files).map(Arc::new).map_err(|error| DevError::Certificates(error.to_string()))
    }
}
