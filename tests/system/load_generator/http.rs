//! The load driver's connection against a server that misbehaves byte by byte.

use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill_bench::loadgen::http::{Connection, HttpError, ServerAddress};
use seckill_bench::loadgen::{FinalAnswer, LoadPlan, run};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the server sends for a request, piece by piece, and whether it closes then.
type Reply = (Vec<Vec<u8>>, bool);

/// Serves every connection; `reply` is given the request line and how many requests came before, over all connections.
async fn serve(reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (reply, requests, connections) =
        (Arc::new(reply), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let made = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            made.fetch_add(1, SeqCst);
            let (reply, requests) = (Arc::clone(&reply), Arc::clone(&requests));
            tokio::spawn(async move {
                stream.set_nodelay(true).unwrap();
                let mut inbox = vec![0; 4096];
                // The driver writes a request in one piece, and these are small.
                while let Ok(bytes @ 1..) = stream.read(&mut inbox).await {
                    let line = String::from_utf8_lossy(&inbox[..bytes]).lines().next().unwrap().to_owned();
                    let (pieces, close) = reply(&line, requests.fetch_add(1, SeqCst));
                    for piece in pieces {
                        stream.write_all(&piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    if close {
                        return;
                    }
                }
            });
        }
    });
    (url, connections)
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
        0 => (OK.iter().map(|byte| vec![*byte]).collect(), false),
        cut => (vec![OK[..cut % OK.len()].to_vec(), OK[cut % OK.len()..].to_vec()], false),
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
    assert_eq!(made.load(SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_costs_the_connection_and_the_next_call_makes_a_new_one() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec();
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (url, made) = serve(move |_, no| match no {
        0 => (vec![OK[..40].to_vec()], true),
        1 => (vec![chunked.clone()], false),
        2 => (vec![], false),
        3 => (vec![[OK, OK].concat()], false),
        4 => (vec![last.clone()], false),
        _ => (vec![OK.to_vec()], false),
    })
    .await;
    let mut connection = connect(&url).await;
    assert!(matches!(connection.call(ASK).await, Err(HttpError::Closed)));
    assert!(connection.call(ASK).await.unwrap_err().to_string().contains("transfer-encoding"));
    assert!(matches!(connection.call(ASK).await, Err(HttpError::TimedOut(300))));
    // Two answers to one request: the second belongs to nobody, so the connection is not used again.
    assert_eq!(connection.call(ASK).await.unwrap().status(), 202);
    assert_eq!(connection.call(ASK).await.unwrap().status(), 200);
    assert_eq!(connection.call(ASK).await.unwrap().status(), 202);
    assert_eq!(made.load(SeqCst), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_closed_while_idle_is_replaced_before_it_is_used() {
    let (url, made) = serve(|_, _| (vec![OK.to_vec()], true)).await;
    let mut connection = connect(&url).await;
    assert!(connection.call(ASK).await.is_ok());
    crate::support::world::time_passes(600).await;
    assert!(connection.call(ASK).await.is_ok());
    assert_eq!(made.load(SeqCst), 2);
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

fn text(status: &str, body: &str) -> Reply {
    (vec![format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()], false)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_cut_off_in_mid_answer_is_unknown_and_resolved_by_its_status() {
    for cut in [1, 30, OK.len() - 1] {
        let (url, _) = serve(move |line, _| match line.split(' ').take(2).collect::<Vec<_>>()[..] {
            ["POST", "/v1/sales/s/tokens"] => text("201 Created", r#"{"request_id":"77","token":"t"}"#),
            ["POST", "/v1/sales/s/orders"] => (vec![OK[..cut].to_vec()], true),
            ["GET", "/v1/sales/s/orders/77"] => text("200 OK", r#"{"status":"QUEUED"}"#),
            _ => panic!("{line}"),
        })
        .await;
        let report = run(plan(url.clone(), true)).await.unwrap();
        assert_eq!((report.requests, report.unknown, report.unresolved, report.accepted), (1, 1, 0, 1));
        assert_eq!((report.polls_by_status.status(200), report.by_status.total()), (1, 0));
        // Without a token nobody knows whom to ask about, and repeating could buy twice.
        let report = run(plan(url, false)).await.unwrap();
        assert_eq!((report.requests, report.unknown, report.unresolved, report.accepted), (1, 1, 1, 0));
        assert_eq!(report.history[0].verdict, FinalAnswer::Unknown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_after_a_doubt_is_not_a_no() {
    let busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_vec();
    let (url, _) = serve(move |line, no| match line.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["POST", "/v1/sales/s/tokens"] => text("201 Created", r#"{"request_id":"77","token":"t"}"#),
        ["POST", "/v1/sales/s/orders"] if no == 1 => (vec![], true),
        ["POST", "/v1/sales/s/orders"] => (vec![busy.clone()], false),
        _ => text("404 Not Found", "{}"),
    })
    .await;
    let report = run(plan(url, true)).await.unwrap();
    assert_eq!((report.requests, report.by_status.status(503), report.unknown, report.unresolved), (6, 5, 1, 1));
    assert_eq!((report.history[0].verdict, report.history[0].doubted), (FinalAnswer::Unknown, true));
}
