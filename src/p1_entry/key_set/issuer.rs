//! Fetches the issuer's JWK set: one request over HTTP/1.1, encrypted unless the address is this machine's.
//!
//! Input: `auth.jwks_url`. Output: the bytes of the answer and its max-age. One deadline for all of it, the bytes counted while
//! they come, no redirect followed, no proxy used. Keeps nothing, not even the connection: a fetch is minutes from the next.
//! With hyper and the TLS of the three servers: reqwest, which is here without TLS, would bring another stack of it.

use super::AuthKeyError;
use super::source::{BYTES_MAX, ReadText};
use crate::config::Auth;
use crate::store::tls::{TlsFiles, Trust};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CACHE_CONTROL, HOST, HeaderMap, USER_AGENT};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Url;

/// Resolving, connecting, TLS, request and answer together.
const DEADLINE: Duration = Duration::from_secs(5);
/// One address may take this long to accept a connection, so that there is time for the next one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Largest head of an answer, bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Asks one issuer.
pub(in crate::p1_entry) struct IssuerClient {
    url: Url,
    /// None when the connection is plain.
    trust: Option<Trust>,
}

impl IssuerClient {
    /// For the address of the settings, which were checked.
    pub(super) fn new(settings: &Auth) -> Result<Self, AuthKeyError> {
        let wrong = |error: url::ParseError| AuthKeyError::Place { key: "auth.jwks_url", problem: error.to_string() };
        let url = Url::parse(&settings.jwks_url).map_err(wrong)?;
        let files = TlsFiles { section: "auth", ca: &settings.tls_ca_file, cert: "", key: "" };
        let trust = if url.scheme() == "https" { Some(Trust::read(files)?) } else { None };
        Ok(Self { url, trust })
    }

    /// The set as it is now.
    pub(super) async fn fetch(&self) -> Result<ReadText, String> {
        let fetched = tokio::time::timeout(DEADLINE, self.fetch_all()).await;
        let late = || format!("no whole answer within {} s", DEADLINE.as_secs());
        fetched.map_err(|_| late()).flatten().map_err(|problem| format!("{}: {problem}", self.url))
    }

    async fn fetch_all(&self) -> Result<ReadText, String> {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_or_known_default().unwrap_or(443);
        let stream = connect(host, port).await?;
        let Some(trust) = &self.trust else { return self.exchange(stream).await };
        let encrypted = trust.connect(host, stream).await.map_err(|error| advised(&error.to_string()))?;
        self.exchange(encrypted).await
    }

    async fn exchange(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<ReadText, String> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (mut sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        // Ends with this set, whatever the issuer does.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let path =
            self.url.query().map_or_else(|| self.url.path().to_owned(), |query| format!("{}?{query}", self.url.path()));
        let host = self.url.host_str().unwrap_or_default();
        let host = self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let request = Request::get(path)
            .header(HOST, host)
            .header(USER_AGENT, "seckill")
            .header(ACCEPT, "application/jwk-set+json, application/json")
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        whole(answer).await
    }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let found =
        tokio::net::lookup_host((host, port)).await.map_err(|error| format!("cannot resolve {host}: {error}"))?;
    let mut problem = format!("{host} has no address");
    for address in found.take(ADDRESSES_MAX).collect::<Vec<SocketAddr>>() {
        problem = match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => format!("cannot connect to {address}: {error}"),
            Err(_) => format!("cannot connect to {address} within {} s", CONNECT_TIMEOUT.as_secs()),
        };
    }
    Err(problem)
}

/// The body of a good answer, which is counted as it comes: a length can lie, and a stream has none.
async fn whole(answer: Response<Incoming>) -> Result<ReadText, String> {
    let status = answer.status();
    if status.is_redirection() {
        return Err(format!("answers {status}; redirects are not followed, expected the address of the set itself"));
    }
    if status != 200 {
        return Err(format!("answers {status}, expected 200"));
    }
    let max_age = max_age(answer.headers());
    let (mut text, mut body) = (Vec::new(), answer.into_body());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {error}"))?;
        let Some(data) = frame.data_ref() else { continue };
        if text.len() + data.len() > BYTES_MAX {
            return Err(format!("the answer has more than {BYTES_MAX} bytes"));
        }
        text.extend_from_slice(data);
    }
    Ok(ReadText { text, max_age })
}

/// For how long the issuer calls its answer fresh.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives = values.flat_map(|value| value.split(',')).map(|part| part.trim().to_ascii_lowercase());
    let mut ages = directives.filter_map(|part| part.strip_prefix("max-age=")?.trim_matches('"').parse().ok());
    ages.next().map(Duration::from_secs)
}

fn advised(words: &str) -> String {
    let advice = match words {
        words if words.contains("UnknownIssuer") => {
            "; its certificate is not signed by a CA of auth.tls_ca_file (empty: the system's): name the file of the CA that signed it"
        }
        words if words.contains("NotValidForName") || words.contains("not valid for name") => {
            "; its certificate is for another name: write that name as the host in auth.jwks_url"
        }
        _ => "",
    };
    format!("{words}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
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
            let client = IssuerClient { url: Url::parse(&url).unwrap(), trust: None };
            let error = client.fetch().await.err().unwrap_or_default();
            assert!(error.contains(word), "{word}: {error}");
            server.await.unwrap();
        }
        let nobody = IssuerClient { url: Url::parse("http://127.0.0.1:1/").unwrap(), trust: None };
        let error = nobody.fetch().await.err().unwrap_or_default();
        assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
    }
}
