//! For the benchmark: what a user would write instead of the entry. A plain Actix handler that checks the access token in the same
//! way and sends each purchase to Redis as one call of the bare script, over one connection of each worker. Same Redis, same
//! durability, an answer of the same size; no groups, no ledger, no limits but one purchase a buyer.
//!
//! A crash leaves the script's keys, which [`BareScript`](super::redis_script::BareScript) takes away.

use super::http::{buyer, gone, server};
use super::redis_script::{BARE, KEYS};
use actix_web::dev::Server;
use actix_web::{HttpRequest, HttpResponse, web};
use fred::clients::Client;
use fred::error::Error;
use fred::interfaces::{ClientLike, LuaInterface};
use fred::types::config::{Config, TcpConfig};
use fred::types::{Builder, Value};
use seckill::config;
use seckill::domain::ids::UserId;
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::runtime::Stopper;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::OnceCell;

/// As long as a real one.
const FIRST_ID: u64 = 1 << 52;

/// What one worker sells with.
struct ScriptSeller {
    url: Arc<str>,
    /// Of the whole process.
    next_id: Arc<AtomicU64>,
    /// Made at the first purchase, on the worker's own runtime: no other thread is between a purchase and its answer.
    connection: OnceCell<ScriptConnection>,
}

struct ScriptConnection {
    client: Client,
    sha: String,
}

impl ScriptConnection {
    async fn open(url: &str) -> Result<Self, Error> {
        let mut builder = Builder::from_config(Config::from_url(url)?);
        // As the product has it: a small write waits for no other one.
        builder.with_connection_config(|connection| {
            connection.tcp = TcpConfig { nodelay: Some(true), ..TcpConfig::default() };
        });
        let client = builder.build()?;
        client.init().await?;
        let sha = client.script_load(BARE).await?;
        Ok(Self { client, sha })
    }
}

impl ScriptSeller {
    /// What the script answers to this buyer's purchase.
    async fn sell(&self, user: &UserId, id: u64) -> Result<i64, Error> {
        let ScriptConnection { client, sha } =
            self.connection.get_or_try_init(|| ScriptConnection::open(&self.url)).await?;
        let message = format!(
            r#"{{"v":1,"rid":"{id}","sale":"bench","user":"{user}","qty":1,"shard":0,"epoch":1,"no":100000,"at":1763720000123}}"#
        );
        let arguments: Vec<Value> = vec![user.as_str().into(), id.to_string().into(), message.into()];
        client.evalsha(sha.as_str(), KEYS.to_vec(), arguments).await
    }
}

/// About what the real API answers to an accepted purchase.
fn accepted(id: u64) -> HttpResponse {
    HttpResponse::Accepted()
        .insert_header(("location", format!("/v1/sales/bench-000000-latency-bare-1/orders/{id}")))
        .content_type("application/json")
        .body(format!(r#"{{"request_id":"{id}","status":"QUEUED","code":"P2-R0"}}"#))
}

async fn sell(
    auth: web::Data<Authenticator>,
    seller: web::Data<ScriptSeller>,
    request: HttpRequest,
    body: web::Payload,
) -> HttpResponse {
    let Some(user) = buyer(&auth, &request, body).await else { return HttpResponse::Unauthorized().finish() };
    let id = seller.next_id.fetch_add(1, Relaxed);
    match seller.sell(&user, id).await {
        Ok(1) => accepted(id),
        Ok(_) => gone(),
        Err(error) => HttpResponse::InternalServerError().body(error.to_string()),
    }
}

/// Sells one unit to each buyer with a valid access token, on every path, until `stopper` is pulled; the stock is in the Redis at
/// `redis_url`, put there by [`BareScript`](super::redis_script::BareScript).
///
/// # Errors
/// The listener's own error.
pub fn serve(
    auth: Authenticator,
    redis_url: &str,
    listener: TcpListener,
    settings: &config::Http,
    stopper: Stopper,
) -> std::io::Result<Server> {
    let (auth, url, next_id) = (web::Data::new(auth), Arc::from(redis_url), Arc::new(AtomicU64::new(FIRST_ID)));
    let routes = move |services: &mut web::ServiceConfig| {
        let (url, next_id) = (Arc::clone(&url), Arc::clone(&next_id));
        let seller = web::Data::new(ScriptSeller { url, next_id, connection: OnceCell::new() });
        services.app_data(auth.clone()).app_data(seller).default_service(web::to(sell));
    };
    server(listener, settings, stopper, routes)
}
