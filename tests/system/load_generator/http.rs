//! The load driver's connection against a server that misbehaves byte by byte.

use crate::support::outside::http_server::{HttpReply, HttpServer};
use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill_bench::loadgen::http::{Connection, HttpError, ServerAddress};
use seckill_bench::loadgen::{FinalAnswer, LoadPlan, run};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Serves every connection; `reply` is given the request line and how many requests came before, over all connections.
async fn serve(reply: impl Fn(&str, usize) -> HttpReply + Send + Sync + 'static) -> (String, HttpServer) {
    let requests = AtomicUsize::new(0);
    let server = HttpServer::start(None, move |call| reply(&call.line, requests.fetch_add(1, SeqCst))).await;
    (server.url("/"), server)
}

/// These pieces, and the connection stays.
fn kept(pieces: Vec<Vec<u8>>) -> HttpReply {
    HttpReply::pieces(pieces)
}

const OK: &[u8] =
    b"HTTP/1.1 202 Accepted\r\nContent-Length: 19\r\nLocation: /v1/sales/s/orders/77\r\n\r\n{\"request_id\":\"77\"}";

async fn connect(url: &str) -> Connection {
    let target = ServerAddress::resolve(url, Duration::from_secs(1)).await.unwrap();
    Connection::new(target, Duration::from_millis(300))
}

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_cut_anywhere_is_put_together_on_one_connection() {
    let (url, made) = serve(|_, no| match no {
        0 => kept(OK.iter().map(|byte| vec![*byte]).collect()),
        cut => kept(vec![OK[..cut % OK.len()].to_vec(), OK[cut % OK.len()..].to_vec()]),
    })
    .await;
    let mut connection = connect(&url).await;
    for _ in 0..OK.len() {
        let answer = connection.call(ASK).await.unwrap();
        assert_eq!(
            (answer.status(), answer.body(), answer.location()),
            (202, &OK[OK.len() - 19..], Some("/v1/sales/s/orders/77"))
        );
    }
    assert_eq!(made.connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_costs_the_connection_and_the_next_call_makes_a_new_one() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec();
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (url, made) = serve(move |_, no| match no {
        0 => HttpReply::last(vec![OK[..40].to_vec()]),
        1 => kept(vec![chunked.clone()]),
        2 => kept(vec![]),
        3 => kept(vec![[OK, OK].concat()]),
        4 => kept(vec![last.clone()]),
        _ => kept(vec![OK.to_vec()]),
    })
    .await;
    let mut connection = connect(&url).await;
    assert!(matches!(connection.call(ASK).await, Err(HttpError::Closed)));
    assert!(connection.call(ASK).await.unwrap_err().to_string().contains("transfer-encoding"));
    assert!(matches!(connection.call(ASK).await, Err(HttpError::TimedOut(300))));
    // Two answers to one request: the second belongs to no request, so the connection is not used again.
    assert_eq!(connection.call(ASK).await.unwrap().status(), 202);
    assert_eq!(connection.call(ASK).await.unwrap().status(), 200);
    assert_eq!(connection.call(ASK).await.unwrap().status(), 202);
    assert_eq!(made.connections(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_closed_while_idle_is_replaced_before_it_is_used() {
    let (url, made) = serve(|_, _| HttpReply::last(vec![OK.to_vec()])).await;
    let mut connection = connect(&url).await;
    assert!(connection.call(ASK).await.is_ok());
    crate::support::world::time_passes(600).await;
    assert!(connection.call(ASK).await.is_ok());
    assert_eq!(made.connections(), 2);
}

fn plan(url: String, tokens: bool) -> LoadPlan {
    let plan = LoadPlan::new(url, SaleId::parse("s").unwrap(), Secret::new("k".repeat(32)));
    LoadPlan {
        buyers: 1,
        connections: 1,
        tokens,
        timeout_ms: 300,
        max_retries: 5,
        retry_wait_max_ms: 5,
        keep_history: true,
        ..plan
    }
}

fn text(status: &str, body: &str) -> HttpReply {
    HttpReply::new(status, "", body.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_cut_off_in_mid_answer_is_unknown_and_resolved_by_its_status() {
    for cut in [1, 30, OK.len() - 1] {
        let (url, _server) = serve(move |line, _| match line.split(' ').take(2).collect::<Vec<_>>()[..] {
            ["POST", "/v1/sales/s/tokens"] => text("201 Created", r#"{"request_id":"77","token":"t"}"#),
            ["POST", "/v1/sales/s/orders"] => HttpReply::last(vec![OK[..cut].to_vec()]),
            ["GET", "/v1/sales/s/orders/77"] => text("200 OK", r#"{"status":"QUEUED"}"#),
            _ => panic!("{line}"),
        })
        .await;
        let report = run(plan(url.clone(), true)).await.unwrap();
        assert_eq!((report.requests, report.unknown, report.unresolved, report.accepted), (1, 1, 0, 1));
        assert_eq!((report.polls_by_status.status(200), report.by_status.total()), (1, 0));
        // Without a token it is not known whom to ask about, and repeating could buy twice.
        let report = run(plan(url, false)).await.unwrap();
        assert_eq!((report.requests, report.unknown, report.unresolved, report.accepted), (1, 1, 1, 0));
        assert_eq!(report.history[0].verdict, FinalAnswer::Unknown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_after_a_doubt_is_not_a_no() {
    let busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (url, _server) = serve(move |line, no| match line.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["POST", "/v1/sales/s/tokens"] => text("201 Created", r#"{"request_id":"77","token":"t"}"#),
        ["POST", "/v1/sales/s/orders"] if no == 1 => HttpReply::hang_up(),
        ["POST", "/v1/sales/s/orders"] => kept(vec![busy.clone()]),
        _ => text("404 Not Found", "{}"),
    })
    .await;
    let report = run(plan(url, true)).await.unwrap();
    assert_eq!((report.requests, report.by_status.status(503), report.unknown, report.unresolved), (6, 5, 1, 1));
    assert_eq!((report.history[0].verdict, report.history[0].doubted), (FinalAnswer::Unknown, true));
}
