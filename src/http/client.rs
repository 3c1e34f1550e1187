//! One request to another machine over HTTP/1.1, encrypted unless the address is plain: to the issuer of access tokens, and to the
//! receivers of webhooks.
//!
//! Input: an address of the settings, which was checked, and a request. Output: the head of the answer and a body that was not read
//! yet. No redirect is followed, no proxy used, no connection kept: calls are seldom, or of one receiver among several. The caller
//! sets the deadline. With hyper and the TLS of the three servers: reqwest, which is here without TLS, would bring another stack of
//! it. A crash leaves a request whose fate only the other side knows.

use crate::store::tls::Trust;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
#[cfg(test)]
pub(crate) use hyper::header::HeaderValue;
pub(crate) use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER};
use hyper::header::{HOST, USER_AGENT};
pub(crate) use hyper::{Method, StatusCode};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::Url;

/// One address may take this long to accept a connection, so that there is time for the next one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;
/// Largest head of an answer, bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Calls one address.
pub(crate) struct OutgoingClient {
    url: Url,
    /// None when the connection is plain.
    trust: Option<Arc<Trust>>,
}

/// What is sent.
pub(crate) struct OutgoingCall {
    pub(crate) method: Method,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Vec<u8>,
}

/// What came back. Dropping it closes the connection.
pub(crate) struct IncomingAnswer {
    head: Response<Incoming>,
    /// Ends with the answer, whatever the other side does.
    _driver: JoinSet<Result<(), hyper::Error>>,
}

impl OutgoingClient {
    /// For this address; `trust` for one that encrypts.
    pub(crate) fn new(url: Url, trust: Option<Arc<Trust>>) -> Self {
        let trust = trust.filter(|_| url.scheme() == "https");
        Self { url, trust }
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
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_or_known_default().unwrap_or(443);
        if self.trust.is_none() && self.url.scheme() != "http" {
            return Err("no certificates are trusted for this address".to_owned());
        }
        let stream = connect(host, port).await?;
        let Some(trust) = &self.trust else { return self.exchange(stream, call).await };
        let encrypted = trust.connect(host, stream).await.map_err(|error| error.to_string())?;
        self.exchange(encrypted, call).await
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        call: OutgoingCall,
    ) -> Result<IncomingAnswer, String> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (mut sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let path =
            self.url.query().map_or_else(|| self.url.path().to_owned(), |query| format!("{}?{query}", self.url.path()));
        let host = self.url.host_str().unwrap_or_default();
        let host = self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let mut request =
            Request::builder().method(call.method).uri(path).header(HOST, host).header(USER_AGENT, "seckill");
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(call.body))).map_err(|error| error.to_string())?;
        let head = sender.send_request(request).await.map_err(|error| error.to_string())?;
        Ok(IncomingAnswer { head, _driver: driver })
    }
}

impl IncomingAnswer {
    /// The status code.
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status()
    }

    /// The headers.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    /// The body, which is counted as it comes: a length can lie, and a stream has none.
    pub(crate) async fn body(self, bytes_max: usize) -> Result<Vec<u8>, String> {
        let Self { head, _driver: driver } = self;
        let (mut text, mut body) = (Vec::new(), head.into_body());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| format!("the answer broke off: {error}"))?;
            let Some(data) = frame.data_ref() else { continue };
            if text.len() + data.len() > bytes_max {
                return Err(format!("the answer has more than {bytes_max} bytes"));
            }
            text.extend_from_slice(data);
        }
        drop(driver);
        Ok(text)
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
        let client = OutgoingClient::new(Url::parse(&url).unwrap(), None);
        let call = OutgoingCall { method: Method::POST, headers: Vec::new(), body: b"secret".to_vec() };
        let error = client.call(call).await.err().unwrap_or_default();
        assert!(error.contains("no certificates are trusted"), "{error}");
    }
}
