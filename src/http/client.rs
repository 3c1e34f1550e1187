//! Requests to one other machine over HTTP/1.1, encrypted unless the address is plain: to the issuer of access tokens, and to the
//! receivers of webhooks.
//!
//! Input: an address of the settings, which was checked, and a request. Output: the head of the answer and a body that was not read
//! yet. No redirect is followed and no proxy used. Connections are kept for the next call as far as the caller wants it. The caller
//! sets the deadline. hyper-util has the pool, hyper-rustls the TLS of the three servers. A crash leaves a request whose fate only
//! the other side knows.

use crate::store::tls::{Trust, client_config};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
#[cfg(test)]
pub(crate) use hyper::header::HeaderValue;
use hyper::header::USER_AGENT;
pub(crate) use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER};
pub(crate) use hyper::{Method, StatusCode};
use hyper::{Request, Response, Uri, body::Incoming};
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::BoxError;
use tower::timeout::Timeout;
use tower::util::BoxCloneSyncService;
use url::Url;

/// Finding the addresses of a name, a connection to one of them and its TLS take at most this long together. Each address gets its
/// part of the time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// A connection without a call is kept for this long: less than what firewalls forget it after.
const KEPT: Duration = Duration::from_secs(20);
/// Largest head of an answer, bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Makes connections within their time.
type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

/// Calls one address.
pub(crate) struct OutgoingClient {
    url: Url,
    client: Client<Connector, Full<Bytes>>,
    /// Whether the address can be called: one that encrypts needs trusted certificates.
    can_call: bool,
    keeps: bool,
}

/// What is sent.
pub(crate) struct OutgoingCall {
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Bytes,
}

/// What came back: its head. Dropping it with an unread body closes the connection.
pub(crate) type IncomingAnswer = Response<Incoming>;

impl OutgoingClient {
    /// For this address; `trust` for one that encrypts. Up to `kept_max` connections are kept between calls. With them, a call is sent
    /// again at once, a single time, if its connection ends before the answer: the other side may have closed a kept one just then.
    /// Only for calls that may arrive twice.
    pub(crate) fn new(url: Url, trust: Option<&Trust>, kept_max: usize) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = HttpsConnectorBuilder::new().with_tls_config(client_config(trust));
        let connector = Timeout::new(tls.https_or_http().enable_http1().wrap_connector(tcp), CONNECT_TIMEOUT);
        let connector = Connector::new(connector);
        let mut pool = Client::builder(TokioExecutor::new());
        pool.pool_timer(TokioTimer::new()).pool_idle_timeout(KEPT).pool_max_idle_per_host(kept_max);
        let client = pool.http1_max_buf_size(HEAD_BYTES_MAX).build(connector);
        let can_call = url.scheme() == "http" || trust.is_some();
        Self { url, client, can_call, keeps: kept_max > 0 }
    }

    /// The address, for messages.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// # Errors
    /// What went wrong, in words. The other side may have the request all the same.
    pub(crate) async fn call(&self, call: OutgoingCall) -> Result<IncomingAnswer, String> {
        if !self.can_call {
            return Err("no certificates are trusted for this address".to_owned());
        }
        let mut request = Request::builder().method(call.method).uri(self.url.as_str()).header(USER_AGENT, "seckill");
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(call.body)).map_err(|error| error.to_string())?;
        let mut answered = self.client.request(request.clone()).await;
        if self.keeps && answered.as_ref().is_err_and(|error| !error.is_connect()) {
            answered = self.client.request(request).await;
        }
        answered.map_err(|error| self.words(&error))
    }

    /// What went wrong, from the outside in, without the pool's own word for it.
    fn words(&self, error: &Error) -> String {
        let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
        let causes = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        if !error.is_connect() {
            return causes;
        }
        let (host, port) = (self.url.host_str().unwrap_or_default(), self.url.port_or_known_default().unwrap_or(443));
        format!("cannot connect to {host}:{port}: {causes}")
    }
}

/// The whole body, which is counted as it comes: a length can lie, and a stream has none.
///
/// # Errors
/// In words: it is larger than `bytes_max`, or it broke off.
pub(crate) async fn whole_body(answer: IncomingAnswer, bytes_max: usize) -> Result<Vec<u8>, String> {
    match Limited::new(answer.into_body(), bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => Err(format!("the answer has more than {bytes_max} bytes")),
        Err(error) => Err(format!("the answer broke off: {error}")),
    }
}

/// The certificate's problem with what to do about it; other words as they are. `tls_ca_file`, `url`: the configuration keys.
pub(crate) fn advised(words: &str, tls_ca_file: &str, url: &str) -> String {
    let advice = match words {
        words if words.contains("UnknownIssuer") => format!(
            "; its certificate is not signed by a CA of {tls_ca_file} (empty: the system's): name the file of the CA that signed it"
        ),
        words if words.contains("NotValidForName") || words.contains("not valid for name") => {
            format!("; its certificate is for another name: write that name as the host in {url}")
        }
        _ => String::new(),
    };
    format!("{words}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_encrypts_is_never_called_in_plain_words() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("HTTPS://{}/", listener.local_addr().unwrap());
        let client = OutgoingClient::new(Url::parse(&url).unwrap(), None, 0);
        let call = OutgoingCall { method: Method::POST, headers: Vec::new(), body: "secret".into() };
        let error = client.call(call).await.err().unwrap_or_default();
        assert!(error.contains("no certificates are trusted"), "{error}");
    }
}
