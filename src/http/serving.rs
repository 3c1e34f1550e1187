//! One HTTP server of the process: its threads, the bounds of its connections, and the count of its answers.
//!
//! Input: a listener, an application. Output: a server that runs when it is awaited. A crash leaves unanswered connections.
//! actix-web's own `HttpServer` does the same over a plain connection; this one is over [`BoundedStream`].

use super::answers::{self, HttpPort};
use super::call_under_way::{AnswerBody, CallUnderWay};
use super::connection::{BoundedStream, ClosedConnections, ConnectionBounds, ConnectionState};
use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive, Request};
use actix_service::{ServiceFactory, ServiceFactoryExt, apply_fn_factory, fn_service, map_config};
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, Response, Server};
use socket2::SockRef;
use std::fmt::Debug;
use std::future::ready;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Bytes of answers that the kernel keeps for a client beside what is on its way: without it some 4 MB of a client that reads
/// nothing.
const UNSENT_BYTES_MAX: u32 = 128 << 10;
/// How long a connection that is closed with an answer waits for the rest of what its client sends.
const LINGER: Duration = Duration::from_secs(1);

/// How a port is served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortSettings {
    pub(crate) port: HttpPort,
    pub(crate) workers_count: usize,
    /// Of each worker.
    pub(crate) connections_max: usize,
    /// How long an idle connection is kept.
    pub(crate) keep_alive: Duration,
    /// Longest time for the head of a request.
    pub(crate) head_timeout: Duration,
    /// Longest time in which a client takes nothing of its answers.
    pub(crate) write_timeout: Duration,
    /// Longest body, bytes.
    pub(crate) body_bytes_max: usize,
    /// Whether a client that closes its half gets the answers under way.
    pub(crate) half_closed: bool,
    /// How long a stop waits for answers under way.
    pub(crate) shutdown_timeout: Duration,
}

/// Serves what `make` makes, once on each worker's thread. The server runs when it is awaited.
pub(crate) fn serve_port<F, S, B>(listener: TcpListener, settings: PortSettings, make: F) -> std::io::Result<Server>
where
    F: Fn() -> S + Send + Clone + 'static,
    S: ServiceFactory<Request, Config = AppConfig, Error = Error> + 'static,
    S::Service: 'static,
    S::Future: 'static,
    S::InitError: Debug,
    S::Response: Into<Response<B>> + 'static,
    B: MessageBody + 'static,
{
    bound_kernel(&listener, settings.write_timeout);
    let builder = Server::build()
        .workers(settings.workers_count)
        .max_concurrent_connections(settings.connections_max)
        .shutdown_timeout(settings.shutdown_timeout.as_secs())
        .disable_signals();
    let stops = builder.graceful_shutdown_signal();
    let server = builder.listen(settings.port.name(), listener, move || {
        answers::count_on_this_thread(settings.port);
        let (stops, closed) = (stops.clone(), Rc::new(ClosedConnections::of(settings.port.name())));
        let bounds = ConnectionBounds {
            write_timeout: settings.write_timeout,
            head_timeout: settings.head_timeout,
            keep_alive: settings.keep_alive,
            body_bytes_max: settings.body_bytes_max,
        };
        let (of_streams, of_errors) = (closed.clone(), closed);
        let counted = apply_fn_factory(make(), |request: Request, app: &S::Service| {
            let call = request.conn_data::<Rc<ConnectionState>>().map(CallUnderWay::begin);
            let answering = actix_service::Service::call(app, request);
            async move {
                let answer: Response<B> = answering.await?.into();
                answers::count(answer.status(), answer.headers());
                Ok::<_, Error>(answer.map_body(|_, body| AnswerBody::new(body, call)))
            }
        });
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stops = stops.clone();
                async move { stops.notified().await }
            })
            // The connection ends itself when it is idle.
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(settings.head_timeout)
            // An answer that goes out before its body came: the client is to read it, and not a reset connection.
            .client_disconnect_timeout(LINGER)
            .h1_allow_half_closed(settings.half_closed)
            .on_connect_ext(|stream: &BoundedStream, data| {
                data.insert(stream.state().clone());
            })
            .h1(map_config(counted, |()| AppConfig::default()))
            .map_err(move |error| {
                if matches!(error, DispatchError::Parse(_)) {
                    of_errors.count_malformed();
                }
                error
            });
        fn_service(move |stream: TcpStream| {
            let peer = stream.peer_addr().ok();
            ready(Ok::<_, DispatchError>((BoundedStream::new(stream, bounds, of_streams.clone()), peer)))
        })
        .and_then(http)
    })?;
    Ok(server.run())
}

/// What the kernel keeps of answers for a client that does not take them, and for how long after its connection was closed. The
/// connections that come inherit it; a system without these options has its own bounds.
fn bound_kernel(listener: &TcpListener, write_timeout: Duration) {
    let socket = SockRef::from(listener);
    let bounded =
        socket.set_tcp_user_timeout(Some(write_timeout)).and_then(|()| socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX));
    if let Err(error) = bounded {
        tracing::debug!(%error, "the kernel's bounds of a connection's memory cannot be set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_service::IntoServiceFactory;
    use actix_web::body::SizedStream;
    use actix_web::{App, HttpRequest, HttpResponse, web};
    use futures::stream;
    use socket2::{Domain, Socket, Type};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream as Client};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;
    use tokio::time::interval;

    const SETTLE: Duration = Duration::from_secs(60);
    const PIECE: usize = 1 << 10;

    /// An answer of this number of pieces, and word of the end of the connection that asked.
    async fn pieces(request: HttpRequest, path: web::Path<usize>, ended: web::Data<Sender<usize>>) -> HttpResponse {
        let (pieces, connection) = (*path, request.conn_data::<Rc<ConnectionState>>().map(Rc::downgrade).unwrap());
        actix_web::rt::spawn(async move {
            let mut checks = interval(Duration::from_millis(10));
            while connection.strong_count() > 0 {
                checks.tick().await;
            }
            ended.send(pieces).ok();
        });
        let body = stream::iter((0..pieces).map(|_| Ok::<_, Error>(web::Bytes::from_static(&[b'x'; PIECE]))));
        HttpResponse::Ok().body(SizedStream::new((pieces * PIECE) as u64, body))
    }

    /// A port with these times, for as long as the test process runs.
    fn port(keep_alive_ms: u64, write_timeout: Duration) -> (SocketAddr, Receiver<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (ends, ended) = channel();
        let settings = PortSettings {
            port: HttpPort::Public,
            workers_count: 1,
            connections_max: 100,
            keep_alive: Duration::from_millis(keep_alive_ms),
            head_timeout: SETTLE,
            write_timeout,
            body_bytes_max: 100,
            half_closed: true,
            shutdown_timeout: Duration::from_secs(1),
        };
        std::thread::spawn(move || {
            let make = move || {
                let app = App::new().app_data(web::Data::new(ends.clone()));
                app.route("/{pieces}", web::get().to(pieces)).into_factory()
            };
            actix_web::rt::System::new().block_on(async { serve_port(listener, settings, make).unwrap().await })
        });
        // Connections from before the kernel's bounds would not have them.
        assert_eq!(taken_of(&asking(address, 1)).ok(), Some(PIECE));
        ended.recv_timeout(SETTLE).expect("it has ended");
        (address, ended)
    }

    /// A client that asked, and whose kernel takes little.
    fn asking(address: SocketAddr, pieces: usize) -> Client {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&address.into()).unwrap();
        let mut client = Client::from(socket);
        client.set_read_timeout(Some(SETTLE)).unwrap();
        client.write_all(format!("GET /{pieces} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
        client
    }

    fn taken_of(mut client: &Client) -> std::io::Result<usize> {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer)?;
        Ok(answer.iter().filter(|byte| **byte == b'x').count())
    }

    /// Of some of these answers the kernel has all, of others not even actix-http; and of one or two the rest is in the buffer between.
    #[test]
    fn an_answer_that_stands_still_has_the_time_of_answers_and_not_that_of_idle_connections() {
        let write_timeout = Duration::from_secs(6);
        let (address, ended) = port(100, write_timeout);
        let begun = Instant::now();
        let clients: Vec<_> = (64..640).step_by(16).map(|pieces| (pieces, asking(address, pieces))).collect();
        let mut cut_off = 0;
        for _ in 0..clients.len() {
            let pieces = ended.recv_timeout(SETTLE).expect("it ends");
            let (_, client) = clients.iter().find(|(of, _)| *of == pieces).unwrap();
            if begun.elapsed() < write_timeout {
                assert_eq!(taken_of(client).ok(), Some(pieces * PIECE), "it was idle");
            } else {
                cut_off += 1;
            }
        }
        assert!(cut_off > 0 && cut_off < clients.len(), "{cut_off}");
    }

    #[test]
    fn a_connection_whose_answer_was_taken_is_idle_and_ends_after_its_time() {
        let (address, ended) = port(500, SETTLE);
        let client = asking(address, 8_000);
        assert_eq!(taken_of(&client).expect("an orderly end"), 8_000 * PIECE);
        ended.recv_timeout(SETTLE).expect("it has ended");
    }
}
