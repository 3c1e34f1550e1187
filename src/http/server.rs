//! How many threads an HTTP server has, and how it ends: a stop lets the requests under way be answered.

use crate::config;
use crate::runtime::Stopper;
use actix_web::dev::Server;
use actix_web::web;
use std::sync::Arc;

/// Routes of the public port that are not part of its contract: the page that shows it, the demo shop of a local stack.
pub(crate) type ExtraRoutes = Arc<dyn Fn(&mut web::ServiceConfig) + Send + Sync>;

/// Threads that handle requests: as configured, or one for each core.
#[must_use]
pub fn worker_count(settings: &config::Http) -> usize {
    match settings.workers_count {
        0 => std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
        count => count,
    }
}

/// The same server, which ends gracefully when `stopper` is pulled. It runs when awaited.
pub fn end_gracefully(server: Server, stopper: Stopper) -> Server {
    let handle = server.handle();
    tokio::spawn(async move {
        stopper.stopped().await;
        handle.stop(true).await;
    });
    server
}
