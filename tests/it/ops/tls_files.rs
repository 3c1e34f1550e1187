//! Files of certificates and keys that cannot be used are named at the start (A11).

use crate::support::outside::certificates::Certificates;
use crate::support::processes::programs::call;

#[test]
fn files_that_cannot_be_used_are_named() {
    let certificates = Certificates::new("tls-files");
    let (ca, client, key) =
        (certificates.path("ca.pem"), certificates.path("client.pem"), certificates.path("client.key"));
    let empty = certificates.path("empty.pem");
    std::fs::write(&empty, "nothing").expect("written");
    let refused = |url: &str, set: &[String]| {
        let mut args = vec!["--data-dir", "/nonexistent", "--set", url];
        for set in set {
            args.extend(["--set", set.as_str()]);
        }
        args.push("doctor");
        let (code, out, err) = call(&args);
        assert_eq!(code, Some(64), "{out}{err}");
        assert!(!err.contains("PRIVATE") || err.contains("BEGIN PRIVATE KEY, "), "{err}");
        err
    };
    for (section, url) in [
        ("redis", "redis.url=rediss://localhost:1"),
        ("rabbitmq", "rabbitmq.url=amqps://localhost:1"),
        ("mysql", "mysql.url=mysqls://root@localhost:1/s"),
    ] {
        let set = |files: &[(&str, &str)]| -> Vec<String> {
            files.iter().map(|(key, file)| format!("{section}.{key}={file}")).collect()
        };
        for (files, key_name, says) in [
            (vec![("tls_ca_file", "/nonexistent.pem")], "tls_ca_file", "/nonexistent.pem cannot be read"),
            (vec![("tls_ca_file", &*empty)], "tls_ca_file", "empty.pem has no certificate"),
            (vec![("tls_ca_file", &*key)], "tls_ca_file", "client.key has no certificate"),
            (vec![("tls_ca_file", &*ca), ("tls_cert_file", &*client)], "tls_cert_file", "both or none"),
            (
                vec![("tls_ca_file", &*ca), ("tls_cert_file", &*client), ("tls_key_file", &*client)],
                "tls_key_file",
                "client.pem is something else",
            ),
            (
                vec![("tls_ca_file", &*ca), ("tls_cert_file", &*ca), ("tls_key_file", &*key)],
                "tls_key_file",
                "does not fit",
            ),
        ] {
            let said = refused(url, &set(&files));
            let named = format!("{section}.{key_name}");
            assert!(
                said.contains(&named) && said.contains(says) && said.contains("expected"),
                "{named}, {says}: {said}"
            );
        }
        let plain = url.replacen("s://", "://", 1);
        let said = refused(&plain, &set(&[("tls_ca_file", &*ca)]));
        assert!(said.contains("does not encrypt"), "{said}");
    }
    let insecure = "mysql.url=mysql://root@h/s?require_ssl=true&verify_ca=false";
    assert!(refused(insecure, &[]).contains("mysqls://"), "no way around the verification");
    // What the driver cannot use is said at the start, not at the first connection.
    let curve = ["tls_ca_file=ca.pem", "tls_cert_file=server.pem", "tls_key_file=server.key"];
    let curve: Vec<String> = curve
        .iter()
        .map(|set| set.split_once('=').expect("a pair"))
        .map(|(key, file)| format!("mysql.{key}={}", certificates.path(file)))
        .collect();
    assert!(refused("mysql.url=mysqls://root@localhost:1/s", &curve).contains("not an RSA key"));
}
