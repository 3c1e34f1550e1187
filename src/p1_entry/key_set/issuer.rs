//! Fetches the issuer's JWK set with one request (`http/client.rs`).
//!
//! Input: `auth.jwks_url` or `passes.jwks_url`. Output: the bytes of the answer and its max-age. One deadline for all of it. Keeps nothing, not even the
//! connection: a fetch is minutes from the next.

use super::AuthKeyError;
use super::parse::{BYTES_MAX, ReadText};
use crate::config::{KeySection, KeySettings};
use crate::http::client::{
    ACCEPT, CACHE_CONTROL, HeaderMap, IncomingAnswer, Method, OutgoingCall, OutgoingClient, advised, whole_body,
};
use crate::store::tls::{TlsFiles, Trust};
use bytes::Bytes;
use std::time::Duration;
use url::Url;

/// Resolving, connecting, TLS, request and answer together.
const DEADLINE: Duration = Duration::from_secs(5);

/// Asks one issuer.
pub(in crate::p1_entry) struct IssuerClient {
    client: OutgoingClient,
    section: KeySection,
}

impl IssuerClient {
    /// For the address of the settings, which were checked.
    pub(super) fn new(settings: &KeySettings<'_>) -> Result<Self, AuthKeyError> {
        let section = settings.section;
        let wrong =
            |error: url::ParseError| AuthKeyError::Place { key: section.jwks_url(), problem: error.to_string() };
        let url = Url::parse(settings.jwks_url).map_err(wrong)?;
        let files = TlsFiles { section: section.name(), ca: settings.tls_ca_file, cert: "", key: "" };
        let trust = if url.scheme() == "https" { Some(Trust::read(files)?) } else { None };
        Ok(Self::of(OutgoingClient::new(url, trust.as_ref(), 0), section))
    }

    const fn of(client: OutgoingClient, section: KeySection) -> Self {
        Self { client, section }
    }

    /// The set as it is now.
    pub(super) async fn fetch(&self) -> Result<ReadText, String> {
        let fetched = tokio::time::timeout(DEADLINE, self.fetch_all()).await;
        let late = || format!("no whole answer within {} s", DEADLINE.as_secs());
        fetched.map_err(|_| late()).flatten().map_err(|problem| format!("{}: {problem}", shown(self.client.url())))
    }

    async fn fetch_all(&self) -> Result<ReadText, String> {
        let accepted = "application/jwk-set+json, application/json".to_owned();
        let call = OutgoingCall { method: Method::GET, headers: vec![(ACCEPT, accepted)], body: Bytes::new() };
        let answer = self.client.call(call).await;
        let advice = |words: String| advised(&words, self.section.tls_ca_file(), self.section.jwks_url());
        let answer = answer.map_err(advice)?;
        whole(answer).await
    }
}

/// The address for the log and for probes: without a user and a query, which may be secrets.
fn shown(url: &Url) -> String {
    let query = if url.query().is_some() { "?…" } else { "" };
    format!("{}{}{query}", url.origin().ascii_serialization(), url.path())
}

/// The body of a good answer.
async fn whole(answer: IncomingAnswer) -> Result<ReadText, String> {
    let status = answer.status();
    if status.is_redirection() {
        return Err(format!("answers {status}; redirects are not followed, expected the address of the set itself"));
    }
    if status != 200 {
        return Err(format!("answers {status}, expected 200"));
    }
    let max_age = max_age(answer.headers());
    Ok(ReadText { text: whole_body(answer, BYTES_MAX).await?, max_age })
}

/// For how long the issuer calls its answer fresh.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives = values.flat_map(|value| value.split(',')).map(|part| part.trim().to_ascii_lowercase());
    let mut ages = directives.filter_map(|part| part.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    ages.next().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::client::HeaderValue;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn the_age_is_read_from_among_the_other_directives() {
        for (value, seconds) in [
            ("max-age=15", Some(15)),
            ("public, Max-Age=86400, must-revalidate", Some(86_400)),
            ("s-maxage=5, max-age=\"20\"", Some(20)),
            ("no-store", None),
            ("max-age=soon", None),
            ("max-age=-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(value));
            assert_eq!(max_age(&headers), seconds.map(Duration::from_secs), "{value}");
        }
        assert_eq!(max_age(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn what_is_said_of_an_address_holds_no_user_and_no_query() {
        let url = Url::parse("http://me:hunter2@127.0.0.1:1/keys?api_key=hunter2#hunter2").unwrap();
        let error = IssuerClient::of(OutgoingClient::new(url, None, 0), KeySection::Auth)
            .fetch()
            .await
            .err()
            .unwrap_or_default();
        assert!(error.starts_with("http://127.0.0.1:1/keys?…: "), "{error}");
        assert!(!error.contains("hunter2") && !error.contains("me:"), "{error}");
    }

    #[tokio::test]
    async fn each_wrong_answer_is_named() {
        let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n{}", " ".repeat(70_000));
        let chunks = format!("{:x}\r\n{}\r\n", 40_000, " ".repeat(40_000)).repeat(2);
        let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(70_000));
        for (answer, word) in [
            (
                "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
                "redirects are not followed",
            ),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answers 404 Not Found, expected 200"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "broke off"),
            (&large, "more than 65536 bytes"),
            (&chunked, "more than 65536 bytes"),
            (&head, "http://127.0.0.1"),
            ("", "http://127.0.0.1"),
        ] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/keys", listener.local_addr().unwrap());
            let answer = answer.to_owned();
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                assert!(stream.read(&mut request).await.unwrap() > 0);
                // The caller may be gone before it has all of it.
                drop(stream.write_all(answer.as_bytes()).await);
                stream.shutdown().await.ok();
            });
            let client = IssuerClient::of(OutgoingClient::new(Url::parse(&url).unwrap(), None, 0), KeySection::Auth);
            let error = client.fetch().await.err().unwrap_or_default();
            assert!(error.contains(word), "{word}: {error}");
            server.await.unwrap();
        }
        let absent = IssuerClient::of(
            OutgoingClient::new(Url::parse("http://127.0.0.1:1/").unwrap(), None, 0),
            KeySection::Auth,
        );
        let error = absent.fetch().await.err().unwrap_or_default();
        assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
    }
}
