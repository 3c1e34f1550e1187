//! Checks of the values before anything starts: addresses, bounds, relations, and what the api role needs on top.
//!
//! Every complaint names the key, its value and what would be accepted; all of them are reported at once, so that a
//! person mends the file in one go.

use super::bounds::{Relation, bounds, relations};
use super::secret::Secret;
use super::secret_list::SecretKeys;
use super::sections::{RedisMode, Settings};
use super::{admin_tokens, url_list, webhooks};

/// Everything that is wrong with the values; empty when nothing is.
#[must_use]
pub(crate) fn complaints(s: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    addresses(s, &mut found);
    found.extend(
        [SecretKeys::of_auth(&s.auth), SecretKeys::of_entry(&s.p1_entry)].iter().filter_map(SecretKeys::complaint),
    );
    found.extend(s.auth.key_complaints());
    found.extend(s.auth.facts.complaints().into_iter().map(|why| format!("auth.facts: {why}")));
    passes(s, &mut found);
    found.extend(webhooks::complaints(s));
    found.extend(s.risk.complaints());
    bounds(s, &mut |key, value, low, high| {
        if !(low..=high).contains(&value) {
            found.push(format!("{key}: {value}, expected {low} to {high}"));
        }
    });
    found.extend(relations(s).iter().filter(|relation| relation.is_broken()).map(Relation::complaint));
    found
}

/// The keys of passes, which the admin API and the command line use, too.
fn passes(s: &Settings, found: &mut Vec<String>) {
    let none = Secret::default();
    let secrets = SecretKeys::of_passes(&s.passes, &none);
    found.extend(secrets.complaint());
    if !secrets.in_use().is_empty() {
        found.extend(secrets.complaints_of_use());
        // A holder of one kind could make the other.
        let others = [SecretKeys::of_auth(&s.auth), SecretKeys::of_entry(&s.p1_entry)];
        found.extend(others.iter().filter_map(|other| secrets.complaint_of_sharing(other)));
    }
    found.extend(s.passes.key_complaints());
}

/// What the api role needs on top: keys to check tokens with.
#[must_use]
pub(crate) fn api_complaints(s: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let (access, purchase) = (SecretKeys::of_auth(&s.auth), SecretKeys::of_entry(&s.p1_entry));
    let places = s.auth.key_places_count();
    if s.auth.uses_secrets() {
        found.extend(access.complaints_of_use());
        if places > 0 {
            found.push("auth.key_file, auth.jwks_file, auth.jwks_url: must be empty with HS256".into());
        }
    } else {
        if places != 1 {
            found.push(
                "auth.key_file, auth.jwks_file, auth.jwks_url: exactly one must be given with RS256, ES256 or EdDSA"
                    .into(),
            );
        }
        if !access.in_use().is_empty() {
            found.push("auth.secret, auth.secrets: must be empty with RS256, ES256 or EdDSA".into());
        }
    }
    found.extend(purchase.complaints_of_use());
    found.extend(purchase.complaint_of_sharing(&access));
    if s.auth.issuer.is_empty() || s.auth.audience.is_empty() {
        found.push("auth.issuer, auth.audience: must not be empty, every access token is checked for them".into());
    }
    found
}

fn addresses(s: &Settings, found: &mut Vec<String>) {
    for (key, listen) in [("http.listen", &s.http.listen), ("admin.listen", &s.admin.listen)] {
        if listen.parse::<std::net::SocketAddr>().is_err() {
            found.push(format!("{key}: {listen:?} is not an address, expected ip:port, e.g. 127.0.0.1:8080"));
        }
    }
    found.extend(collector(&s.traces.otlp_endpoint).map(|why| format!("traces.otlp_endpoint: {why}")));
    found.extend(super::origins::complaints(&s.http.cors_origins).map(|why| format!("http.cors_origins: {why}")));
    let redis = [("redis.url", &s.redis.url, redis_schemes(s.redis.mode))];
    let rabbitmq = s.rabbitmq.urls_in_use().iter().map(|url| ("rabbitmq.url", url, ["amqp", "amqps"]));
    let mysql = s.mysql.urls_in_use().iter().map(|url| ("mysql.url", url, ["mysql", "mysqls"]));
    for (key, url, [plain, encrypted]) in redis.into_iter().chain(rabbitmq).chain(mysql) {
        if ![plain, encrypted].contains(&url.scheme()) {
            let scheme = url.scheme();
            found.push(format!(
                "{key}: {url:?} has scheme {scheme:?}, expected {plain}:// or, to encrypt, {encrypted}://"
            ));
        } else if let Some(problem) = url.problem() {
            found.push(format!("{key}: {problem}"));
        }
    }
    found.extend(url_list::complaints("rabbitmq", &s.rabbitmq.urls));
    found.extend(url_list::complaints("mysql", &s.mysql.urls));
    encryption(s, found);
    if s.redis.mode == RedisMode::Sentinel && !s.redis.url.expose().contains("sentinelServiceName=") {
        found.push("redis.url: names no master, add ?sentinelServiceName=NAME as the sentinels have it".into());
    }
    for (key, prefix) in [("redis.prefix", &s.redis.prefix), ("rabbitmq.prefix", &s.rabbitmq.prefix)] {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(plain) {
            found.push(format!("{key}: {prefix:?}, expected 1 to 64 characters of A-Z a-z 0-9 _ - ."));
        }
    }
    found.extend(s.admin.tokens.complaints().into_iter().map(|why| format!("admin.tokens: {why}")));
    found.extend(admin_tokens::complaints_about_the_first(s.admin.token.expose(), &s.admin.tokens));
    if s.admin.token.has_stray_ends() {
        found.push("admin.token: begins or ends with a blank or a newline".into());
    }
}

/// What is wrong with a collector's address; nothing when there is none.
fn collector(endpoint: &str) -> Option<String> {
    const EXPECTED: &str = "expected the whole address, e.g. http://127.0.0.1:4318/v1/traces";
    if endpoint.is_empty() {
        return None;
    }
    match url::Url::parse(endpoint) {
        Ok(url) if url.scheme() == "https" => Some("https:// is not supported, put a collector beside it".into()),
        Ok(url) if url.scheme() != "http" || url.path().len() < 2 => {
            Some(format!("{endpoint:?} is not enough, {EXPECTED}"))
        }
        Ok(url) if !url.username().is_empty() => {
            Some("has a user, give it in OTEL_EXPORTER_OTLP_HEADERS instead".into())
        }
        Ok(_) => None,
        Err(error) => Some(format!("{endpoint:?}: {error}, {EXPECTED}")),
    }
}

/// Files for a connection that is not encrypted are a mistake that would show nowhere else.
fn encryption(s: &Settings, found: &mut Vec<String>) {
    let servers = [
        (
            "redis",
            std::slice::from_ref(&s.redis.url),
            [&s.redis.tls_ca_file, &s.redis.tls_cert_file, &s.redis.tls_key_file],
        ),
        (
            "rabbitmq",
            s.rabbitmq.urls_in_use(),
            [&s.rabbitmq.tls_ca_file, &s.rabbitmq.tls_cert_file, &s.rabbitmq.tls_key_file],
        ),
        ("mysql", s.mysql.urls_in_use(), [&s.mysql.tls_ca_file, &s.mysql.tls_cert_file, &s.mysql.tls_key_file]),
    ];
    for (section, urls, files) in servers {
        let Some(url) = urls.first() else { continue };
        if !url.is_encrypted() && files.iter().any(|file| !file.is_empty()) {
            let scheme = url.scheme();
            found.push(format!(
                "{section}.tls_ca_file, tls_cert_file, tls_key_file: given, but {section}.url begins with {scheme}://, which \
                 does not encrypt; write it with an s ({}), or leave them empty",
                if section == "redis" { "rediss" } else if section == "mysql" { "mysqls" } else { "amqps" }
            ));
        }
        let [_, cert, key] = files;
        if cert.is_empty() != key.is_empty() {
            found.push(format!("{section}.tls_cert_file, {section}.tls_key_file: one is empty, expected both or none"));
        }
    }
    // The driver would take these from the url; one of them switches the verification off.
    for parameter in ["require_ssl=", "verify_ca=", "verify_identity=", "built_in_roots="] {
        if s.mysql.urls_in_use().iter().any(|url| url.expose().contains(parameter)) {
            found.push(format!(
                "mysql.url: has {parameter}…, expected the scheme mysqls:// and mysql.tls_ca_file instead"
            ));
        }
    }
}

/// The scheme says the same as the mode, so that neither can be forgotten; the second one encrypts.
fn redis_schemes(mode: RedisMode) -> [&'static str; 2] {
    match mode {
        RedisMode::Single => ["redis", "rediss"],
        RedisMode::Sentinel => ["redis-sentinel", "rediss-sentinel"],
        RedisMode::Cluster => ["redis-cluster", "rediss-cluster"],
    }
}
