//! A certificate authority for a test, and servers that believe it.

use crate::support::processes::programs::Folder;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_RSA_SHA256,
};
use seckill::dev::{Encryption, PrivateServers};
use std::path::PathBuf;

/// The one name in the servers' certificate.
pub const NAME: &str = "localhost";

/// Files that go away with the test.
pub struct Certificates {
    folder: Folder,
}

impl Certificates {
    /// A CA `ca`, a certificate `server` and a certificate `client` that it signed, and a CA `stranger` that signed neither.
    pub fn new(name: &str) -> Self {
        let made = Self { folder: Folder::new(&format!("{name}-certificates")) };
        let ca = made.authority("ca");
        made.authority("stranger");
        made.signed(&ca, "server", &KeyPair::generate().expect("a key"));
        // What every client library here takes: the database's driver knows RSA only, and an RSA key takes long to make. This one
        // protects nothing but these tests.
        let pem = include_str!("client.rsa.pem");
        let key = KeyPair::from_pkcs8_pem_and_sign_algo(pem, &PKCS_RSA_SHA256).expect("a key");
        made.signed(&ca, "client", &key);
        made
    }

    /// Path of a file: `ca.pem`, `stranger.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same as text.
    pub fn path(&self, name: &str) -> String {
        self.file(name).to_str().expect("a path").to_owned()
    }

    /// Settings of all three servers: the CA, and the client's certificate.
    pub fn sets(&self) -> Vec<String> {
        let keys = [("tls_ca_file", "ca.pem"), ("tls_cert_file", "client.pem"), ("tls_key_file", "client.key")];
        let sections = ["redis", "rabbitmq", "mysql"];
        let set = |section| keys.map(|(key, file)| format!("{section}.{key}={}", self.path(file)));
        sections.into_iter().flat_map(set).collect()
    }

    /// Three servers that take TLS only, from clients with a certificate.
    pub async fn servers(&self) -> PrivateServers {
        let encryption = Encryption {
            ca: self.file("ca.pem"),
            cert: self.file("server.pem"),
            key: self.file("server.key"),
            name: NAME.to_owned(),
            clients_too: true,
        };
        PrivateServers::start_encrypted(&self.file("servers"), encryption).await.expect("encrypted servers")
    }

    fn authority(&self, name: &str) -> Issuer<'static, KeyPair> {
        let mut params = CertificateParams::new(vec![]).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        std::fs::write(self.file(&format!("{name}.pem")), params.self_signed(&key).expect("signed").pem())
            .expect("written");
        Issuer::new(params, key)
    }

    fn signed(&self, ca: &Issuer<'static, KeyPair>, name: &str, key: &KeyPair) {
        let mut params = CertificateParams::new(vec![NAME.to_owned()]).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(key, ca).expect("signed");
        std::fs::write(self.file(&format!("{name}.pem")), certificate.pem()).expect("written");
        std::fs::write(self.file(&format!("{name}.key")), key.serialize_pem()).expect("written");
    }
}
