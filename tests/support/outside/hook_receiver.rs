//! A shop that gets webhooks, on a real HTTP server in the test's process. It can fail, stand still, end kept connections, vanish and
//! come back at the same address, and it checks every signature by a computation of its own.

use super::certificates::Certificates;
use super::http_server::{HttpCall, HttpReply, HttpServer};
use crate::support::basics::files::Folder;
use crate::support::world::shared_servers::Tenant;
use crate::support::world::{World, eventually, shared};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seckill::domain::ids::RequestId;
use seckill::roles::Role;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Two secrets of the form that the standard has.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub const NEXT_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// Every event of an order's life.
pub const ALL_EVENTS: [&str; 6] =
    ["order.confirmed", "order.failed", "order.paid", "order.expired", "order.cancelled", "order.refund_needed"];
/// Pauses that let a failing receiver be tried often within seconds, and on for minutes on a machine that is slow.
pub const SOON: &str = "webhook_delivery.retry_ms=100,200,300,300,300,300,300,300,300,500,500,500,500,1000,1000,2000,4000,8000,8000,8000,8000,8000,8000,8000";

/// One call, as it came.
#[derive(Debug, Clone)]
pub struct HookCall {
    /// Request line.
    pub line: String,
    /// Header fields, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The raw body.
    pub body: Vec<u8>,
    /// Whether it was answered with 2xx.
    pub taken: bool,
}

struct HookShared {
    reply: Mutex<HttpReply>,
    calls: Mutex<Vec<HookCall>>,
    ends_kept: AtomicBool,
}

/// Listens until it is dropped.
pub struct HookReceiver {
    server: HttpServer,
    shared: Arc<HookShared>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HookShared {
    fn reply(&self, call: HttpCall) -> HttpReply {
        let ends = call.before > 0 && self.ends_kept.load(Ordering::SeqCst);
        let reply = if ends { HttpReply::hang_up() } else { locked(&self.reply).clone() };
        let HttpCall { line, headers, body, .. } = call;
        // Before the answer: a caller that has it may check at once.
        locked(&self.calls).push(HookCall { line, headers, body, taken: reply.is_success() });
        reply
    }
}

impl HookReceiver {
    /// One that answers 204.
    pub async fn start() -> Self {
        Self::listening(None).await
    }

    /// The same over TLS, with the certificate `server` for `localhost`.
    pub async fn start_tls(certificates: &Certificates) -> Self {
        Self::listening(Some(certificates)).await
    }

    async fn listening(certificates: Option<&Certificates>) -> Self {
        let reply = Mutex::new(HttpReply::new("204 No Content", "", b""));
        let shared = Arc::new(HookShared { reply, calls: Mutex::default(), ends_kept: AtomicBool::new(false) });
        let all = shared.clone();
        Self { server: HttpServer::start(certificates, move |call| all.reply(call)).await, shared }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        self.server.url("/hooks/orders?shop=7")
    }

    /// Answers this to every call from now on.
    pub fn answers(&self, status: &str, headers: &str) {
        *locked(&self.shared.reply) = HttpReply::new(status, headers, b"");
    }

    /// Closes each connection at its second call, as one that has just gone idle for too long.
    pub fn ends_kept_connections(&self) {
        self.shared.ends_kept.store(true, Ordering::SeqCst);
    }

    /// Takes calls and says nothing.
    pub fn falls_silent(&self) {
        *locked(&self.shared.reply) = HttpReply::silence();
    }

    /// Takes calls and closes the connection.
    pub fn hangs_up(&self) {
        *locked(&self.shared.reply) = HttpReply::hang_up();
    }

    /// Nothing listens at its address any more.
    pub fn close(&mut self) {
        self.server.close();
    }

    /// It listens at the same address again.
    pub async fn open(&mut self) {
        self.server.open().await;
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<HookCall> {
        locked(&self.shared.calls).clone()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.server.connections()
    }

    /// Calls that it took, by `webhook-id`: how often.
    pub fn taken(&self) -> BTreeMap<String, u32> {
        let mut taken = BTreeMap::new();
        for call in self.calls().iter().filter(|call| call.taken) {
            *taken.entry(call.id().to_owned()).or_default() += 1;
        }
        taken
    }

    /// The events that it took, each once: type, request, version.
    pub fn events(&self) -> BTreeSet<(String, String, u64)> {
        self.calls().iter().filter(|call| call.taken).map(HookCall::event).collect()
    }

    /// Waits until it has taken an event.
    pub async fn receives(&self, event: &str, of: RequestId) {
        let is = |call: &HookCall| call.taken && call.event().0 == event && call.event().1 == of.to_string();
        eventually(&format!("{event} of {of}"), async || self.calls().iter().any(is)).await;
    }
}

impl HookCall {
    /// `webhook-id`.
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// The body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Type, request, version.
    pub fn event(&self) -> (String, String, u64) {
        let body = self.json();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&body["type"]), text(&body["data"]["rid"]), body["data"]["version"].as_u64().unwrap_or(0))
    }

    /// Whether one of its signatures is that of `secret`.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let content =
            [self.id().as_bytes(), b".", self.headers["webhook-timestamp"].as_bytes(), b".", &self.body].concat();
        let expected = format!("v1,{}", STANDARD.encode(hmac_sha256(secret, &content)));
        self.headers["webhook-signature"].split(' ').any(|one| one == expected)
    }
}

/// HMAC-SHA256 as RFC 2104 writes it down, so that the product's own is not what checks it.
fn hmac_sha256(secret: &str, content: &[u8]) -> Vec<u8> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("whsec_")).expect("base64");
    let padded = |pad: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ pad).collect() };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(content).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().to_vec()
}

/// A webhook as a configuration file has it.
pub fn webhook(name: &str, url: &str, secrets: &[&str], events: &[&str]) -> String {
    format!("[[webhooks]]\nname = \"{name}\"\nurl = \"{url}\"\nsecrets = {secrets:?}\nevents = {events:?}\n")
}

static CONFIGURED: AtomicU32 = AtomicU32::new(0);

impl World {
    /// Some roles with settings, and with a configuration file of this text.
    pub async fn with_config(roles: &[Role], set: &[&str], text: &str) -> Self {
        let name = format!("c{}", CONFIGURED.fetch_add(1, Ordering::SeqCst));
        let folder = Folder::new(&format!("config-{name}"));
        std::fs::write(folder.path().join("config.toml"), text).expect("a file");
        let tenant = Tenant::new(&name).await;
        let redis_url = &shared().await.urls().redis_url;
        let urls = (redis_url.as_str(), tenant.amqp_url.as_str(), tenant.mysql_url.as_str());
        let mut world = Self::configured(urls, (&name, roles, set), Some(folder)).await;
        world.tenant = Some(tenant);
        world
    }

    /// Its configuration file.
    pub fn config_file(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|folder| folder.path().join("config.toml"))
    }

    /// Some roles, and one webhook that wants every event.
    pub async fn with_hook(roles: &[Role], set: &[&str], receiver: &HookReceiver) -> Self {
        let text = webhook("shop", &receiver.url(), &[SECRET], &ALL_EVENTS);
        Self::with_config(roles, &[set, &[SOON]].concat(), &text).await
    }

    /// How many deliveries are in a state.
    pub async fn deliveries(&self, state: &str) -> i64 {
        self.rows("webhook_deliveries", &format!("state = '{state}'")).await
    }
}
