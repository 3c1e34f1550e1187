//! Two complete cells behind the balancer of `deploy/cells`; one of them is lost.
//!
//! A cell here is a `seckill dev` with its own servers and a process for each role. Input: `deploy/cells/haproxy.cfg` as it is.

use crate::files::without_surroundings;
use crate::network::lay_loopback;
use crate::time::{eventually, pause};
use crate::{folder, status_and_body};
use reqwest::Method;
use seckill::config::Secret;
use seckill::dev::Child;
use seckill::dev::DevState;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BUYERS: &str = "127.0.0.1:8080";
const SECRET: &str = "test-access-secret-of-32-bytes-or-more";

/// One buyer after the other: each purchase that a lost cell swallows waits for five seconds, and soon the balancer knows.
const UNKNOWN_MAX: u64 = 3;

/// A cell's program and folder.
struct Cell {
    dir: PathBuf,
    child: Child,
}

fn program(args: &[&str]) -> Command {
    without_surroundings(&folder().join("seckill"), args)
}

impl Cell {
    async fn start(number: u8, keep: bool) -> Self {
        let dir = folder().join(format!("cell{number}"));
        let data = dir.display().to_string();
        let secret = format!("auth.secret={SECRET}");
        let (api, admin) =
            (format!("http.listen=127.0.0.1:808{number}"), format!("admin.listen=127.0.0.1:909{number}"));
        let sets = ["--set", &secret, "--set", &api, "--set", &admin, "--data-dir", &data];
        let mut args = [&sets[..], &["dev", "--split", "--no-demo"]].concat();
        if keep {
            args.push("--keep");
        }
        let log = folder().join(format!("cell{number}.log"));
        let mut child = Child::spawn("cell", program(&args), &log).await.expect("a cell starts");
        eventually("a cell is up", async || {
            assert!(child.is_alive(), "{}", child.log_tail());
            let Some(state) = Self::state_in(&dir) else { return false };
            let http = reqwest::Client::builder().no_proxy().build().expect("a client");
            http.get(format!("{}/readyz", state.admin)).send().await.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
        Self { dir, child }
    }

    fn state_in(dir: &Path) -> Option<DevState> {
        DevState::read(dir).ok().flatten()
    }

    fn state(&self) -> DevState {
        Self::state_in(&self.dir).expect("it runs")
    }

    /// A command of the product on this cell.
    fn call(&self, args: &[&str]) -> (Option<i32>, String) {
        let data = self.dir.display().to_string();
        let output = program(&[&["--data-dir", &data][..], args].concat()).output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A sale of the cell, with more of its terms.
    fn create(&self, id: &str, more: &[&str]) {
        let what =
            ["sale", "create", "--id", id, "--product", "p", "--title", "t", "--stock", "100000", "--limit", "1"];
        let window = ["--starts-at", "2020-01-01T00:00:00Z", "--ends-at", "2099-01-01T00:00:00Z", "--warm"];
        let (code, out) = self.call(&[&what[..], &window, more].concat());
        assert_eq!(code, Some(0), "{out}");
    }

    /// Orders of a sale, and the audit agrees with everything.
    async fn ordered(&self, sale: &str) -> u64 {
        let mut found = Value::Null;
        eventually("a consistent audit without anything open", async || {
            let (code, out) = self.call(&["audit", "--now", "--json"]);
            let audit: Value = serde_json::from_str(&out).unwrap_or_default();
            let sales = audit["sales"].as_array().cloned().unwrap_or_default();
            found = sales.into_iter().find(|of| of["sale_id"] == sale).unwrap_or_default();
            code == Some(0) && found["counted"]["in_flight"] == 0
        })
        .await;
        found["counted"]["ordered"].as_u64().expect("a count")
    }
}

/// The balancer, with the shipped configuration.
async fn balance(cells: [&Cell; 2]) -> Child {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/cells/haproxy.cfg");
    let map = folder().join("cells.map");
    std::fs::write(&map, "first cell-1\nsecond cell-2\n").expect("written");
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(shipped).env("LISTEN", BUYERS).env("CELLS_MAP", map).env("SOCKET", socket());
    for (at, cell) in (1..).zip(cells) {
        let state = cell.state();
        let host_port = |url: &str| url.trim_start_matches("http://").to_owned();
        let admin = host_port(&state.admin);
        let (host, port) = admin.rsplit_once(':').expect("a port");
        command.env(format!("CELL_{at}_API"), host_port(&state.api));
        command.env(format!("CELL_{at}_CHECK_HOST"), host).env(format!("CELL_{at}_CHECK_PORT"), port);
    }
    Child::spawn("haproxy", command, &folder().join("haproxy.log")).await.expect("a balancer")
}

fn socket() -> PathBuf {
    folder().join("haproxy.sock")
}

/// A line to the balancer's admin socket, as the README says.
async fn command_balancer(line: &str) {
    let mut stream = tokio::net::UnixStream::connect(socket()).await.expect("the admin socket");
    stream.write_all(format!("{line}\n").as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert_eq!(answer.trim(), "", "{line}");
}

/// Places a sale at the balancer, as the README says.
async fn place(sale: &str, cell: &str) {
    command_balancer(&format!("add map {} {sale} {cell}", folder().join("cells.map").display())).await;
}

/// Buyers of one sale, one after the other, through the balancer.
struct Shop {
    sale: &'static str,
    http: reqwest::Client,
    issuer: TokenIssuer,
    accepted: Mutex<Vec<(String, String)>>,
    refused: Mutex<Vec<u16>>,
    closed: AtomicBool,
}

impl Shop {
    fn new(sale: &'static str) -> Arc<Self> {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5));
        Arc::new(Self {
            sale,
            http: http.build().expect("a client"),
            issuer: TokenIssuer::new(&Secret::new(SECRET.to_owned()), "seckill", "seckill").expect("an issuer"),
            accepted: Mutex::default(),
            refused: Mutex::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// With buyers who come until it is closed.
    fn open(sale: &'static str) -> Arc<Self> {
        let shop = Self::new(sale);
        let own = shop.clone();
        tokio::spawn(async move {
            for number in 0.. {
                if own.closed.load(SeqCst) {
                    return;
                }
                own.one_buys(&format!("{}-{number}", own.sale)).await;
                pause().await;
            }
        });
        shop
    }

    fn token(&self, user: &str) -> String {
        self.issuer.sign(user, 3600).expect("a token")
    }

    async fn one_buys(&self, user: &str) {
        let url = format!("http://{BUYERS}/v1/sales/{}/orders", self.sale);
        let request = self.http.post(url).bearer_auth(self.token(user)).json(&json!({ "quantity": 1 }));
        let (status, body) = status_and_body(request).await;
        match body["request_id"].as_str().filter(|_| status == 202) {
            Some(id) => self.accepted.lock().expect("not poisoned").push((user.to_owned(), id.to_owned())),
            None => self.refused.lock().expect("not poisoned").push(status),
        }
    }

    fn count(&self) -> usize {
        self.accepted.lock().expect("not poisoned").len()
    }

    fn refusals(&self) -> usize {
        self.refused.lock().expect("not poisoned").len()
    }

    /// Purchases that may have been accepted: the answer never came, or the balancer lost the api that had it.
    fn unknown(&self) -> u64 {
        let refused = self.refused.lock().expect("not poisoned");
        refused.iter().filter(|status| matches!(status, 0 | 502 | 504)).count() as u64
    }

    async fn sells(&self, more: usize) {
        let wanted = self.count() + more;
        eventually("it sells", async || self.count() >= wanted).await;
    }

    /// Every accepted purchase is an order, as its buyer sees through the balancer.
    async fn all_confirmed(&self) {
        let accepted = self.accepted.lock().expect("not poisoned").clone();
        for (user, id) in accepted {
            let url = format!("http://{BUYERS}/v1/sales/{}/orders/{id}?wait=1", self.sale);
            eventually("a confirmed order", async || {
                let (_, body) = status_and_body(self.http.get(&url).bearer_auth(self.token(&user))).await;
                body["status"] == "CONFIRMED"
            })
            .await;
        }
    }
}

/// A buyer of the second cell reads and cancels an order by its id while the first cell is away.
async fn order_by_its_id(second: &Cell) {
    second.create("fourth", &["--price-cents", "100", "--pay-within-s", "3600"]);
    place("fourth", "cell-2").await;
    let shop = Shop::new("fourth");
    eventually("an order in the second cell", async || {
        shop.one_buys("fourth-0").await;
        shop.count() > 0
    })
    .await;
    shop.all_confirmed().await;
    let (user, id) = shop.accepted.lock().expect("not poisoned").first().cloned().expect("one");
    let ask = async |method: Method, query: &str| {
        let request = shop.http.request(method, format!("http://{BUYERS}/v1/orders/{id}{query}"));
        let (status, body) = status_and_body(request.bearer_auth(shop.token(&user))).await;
        (status, body["state"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(ask(Method::GET, "").await.0, 503, "without its sale it is asked of the first cell");
    assert_eq!(ask(Method::GET, "?sale=fourth").await, (200, "UNPAID".to_owned()));
    assert_eq!(ask(Method::DELETE, "?sale=fourth").await, (200, "CANCELLED".to_owned()));
    assert_eq!(ask(Method::GET, "?sale=nowhere").await.0, 404);
}

/// Everything, from two whole cells to two whole cells.
pub async fn one_is_lost() {
    lay_loopback();
    let (mut first, second) = (Cell::start(1, false).await, Cell::start(2, false).await);
    first.create("first", &[]);
    second.create("second", &[]);
    let balancer = balance([&first, &second]).await;
    let (of_first, of_second) = (Shop::open("first"), Shop::open("second"));
    of_first.sells(30).await;
    of_second.sells(30).await;
    assert!(first.call(&["sale", "show", "second"]).0 != Some(0), "a sale is on one cell only");

    // A sale is placed while both sell: in its cell, then at the balancer.
    second.create("third", &[]);
    place("third", "cell-2").await;
    let of_third = Shop::open("third");
    of_third.sells(10).await;

    let before = of_second.refusals();
    first.child.kill().await.expect("the whole cell ends");
    eventually("buyers of the lost cell are refused", async || of_first.refusals() > 20).await;
    of_second.sells(50).await;
    of_third.sells(10).await;
    order_by_its_id(&second).await;
    assert_eq!(of_second.refusals(), before, "no buyer of the other cell noticed");
    eventually("the list is the other cell's", async || {
        let (status, list) = status_and_body(of_second.http.get(format!("http://{BUYERS}/v1/sales"))).await;
        status == 200 && list.to_string().contains("\"second\"") && !list.to_string().contains("\"first\"")
    })
    .await;

    let at = first.state().api;
    let first = Cell::start(1, true).await;
    assert_eq!(first.state().api, at, "where the balancer expects it");
    of_first.sells(30).await;
    for (shop, cell) in [(&of_first, &first), (&of_second, &second), (&of_third, &second)] {
        shop.closed.store(true, SeqCst);
        shop.all_confirmed().await;
        let (ordered, accepted) = (cell.ordered(shop.sale).await, shop.count() as u64);
        // A purchase whose answer the loss swallowed may be an order, too; one that was refused is none.
        let unknown = shop.unknown();
        assert!(
            (accepted..=accepted + unknown).contains(&ordered),
            "{}: {ordered} orders, {accepted} accepted, {unknown} unknown",
            shop.sale
        );
        assert!(unknown <= UNKNOWN_MAX, "{}: {unknown} purchases have no answer", shop.sale);
        eprintln!(
            "cells: {}: {accepted} accepted, {ordered} ordered, {unknown} unknown, {} refused",
            shop.sale,
            shop.refusals()
        );
    }
    drop(balancer);
}
