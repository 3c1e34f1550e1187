//! The api role: P1, P2 and buyers' own orders (P6) put together, with the workers that keep them up to date.
//!
//! Input: the settings, handles on the servers, a bound port. Output: a public server that listens once it is safe to
//! sell. A crash leaves only what these phases leave.

use super::connections::DatabaseRows;
use super::tasks::RoleTasks;
use super::{ApiOptions, CONNECT_GRACE, RoleContext, RoleError, bind_public};
use crate::config::{Settings, api_complaints};
use crate::console::{self, Shop};
use crate::http::public_port::accept_queue_max;
use crate::http::{BoundPort, ExtraRoutes};
use crate::p1_entry::access_tokens::{Authenticator, KeyHealth};
use crate::p1_entry::auto_warm::AutoWarm;
use crate::p1_entry::block_list::{BlockList, BlockListRefresher, BuyerChecks};
use crate::p1_entry::catalog::{Catalog, CatalogHandles};
use crate::p1_entry::challenge::Challenges;
use crate::p1_entry::entitlement::Entitlements;
use crate::p1_entry::http::{self, PublicApi, RequestBounds, Waiters};
use crate::p1_entry::key_set::KeySetRefresher;
use crate::p1_entry::lines::{Lines, Receipts};
use crate::p1_entry::my_orders::MyOrders;
use crate::p1_entry::overload::{Overload, OverloadHandles, OverloadMonitor};
use crate::p1_entry::purchase_tokens::PurchaseTokens;
use crate::p1_entry::purchasing::{Admission, PurchaseTokenIssuer, Purchasing, Replays};
use crate::p1_entry::rate_limits::RateLimits;
use crate::p1_entry::request_ids::RequestIds;
use crate::p1_entry::sale_id_filter::{SaleIdFilter, SaleIdFilterRefresher};
use crate::p1_entry::sale_list::SaleList;
use crate::p1_entry::status::{LedgerHandles, LedgerReads, Statuses};
use crate::p1_entry::waiting_room::{RoomEntrance, RoomReleaser, WaitingRooms};
use crate::p2_reserve::{DurabilityGuard, Fence};
use crate::runtime::{PollInterval, Stopper};
use crate::store::mysql::leader_election::LedWork;
use crate::store::redis::RedisStore;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The reason why the role does not sell yet is logged this often.
const REMIND: Duration = Duration::from_secs(5);

/// What can be refused before anything runs: the address, the keys, the demo shop.
pub(super) struct PublicEndpoint {
    port: BoundPort,
    auth: Authenticator,
    entitlements: Arc<Entitlements>,
    extra_routes: Vec<ExtraRoutes>,
}

impl PublicEndpoint {
    /// Binds the public address, unless the caller has, and reads the keys that tokens are checked with.
    pub(super) fn new(settings: &Settings, options: ApiOptions, stopper: &Stopper) -> Result<Self, RoleError> {
        let refused = |why: String| RoleError::Config(vec![why]);
        let complaints = api_complaints(settings);
        if !complaints.is_empty() {
            return Err(RoleError::Config(complaints));
        }
        let port = options.public_port.map_or_else(|| bind_public(&settings.http.listen), Ok)?;
        warn_of_short_queue(settings.http.listen_backlog);
        warn_of_outbox_format(settings.redis.outbox_format);
        let auth = Authenticator::new(&settings.auth).map_err(|error| refused(error.to_string()))?;
        let entitlements = Entitlements::new(settings).map_err(|error| refused(error.to_string()))?;
        let mut extra_routes: Vec<ExtraRoutes> = vec![Arc::new(console::docs)];
        if options.demo_shop {
            let address = port.address().map_err(|error| refused(format!("http.listen: {error}")))?;
            let shop =
                Shop::new(&settings.auth, address, stopper.clone()).map_err(|error| refused(error.to_string()))?;
            extra_routes.push(shop.extra_routes());
        }
        Ok(Self { port, auth, entitlements: Arc::new(entitlements), extra_routes })
    }

    /// Whether there are keys, for the probes.
    pub(super) fn key_health(&self) -> KeyHealth {
        self.auth.key_health()
    }

    /// What keeps the public keys of access tokens and of passes up to date; once.
    fn key_refreshers(&self, settings: &Settings, stopper: &Stopper) -> Vec<KeySetRefresher> {
        let of_access = self.auth.refresher(&settings.auth.keys(), stopper);
        of_access.into_iter().chain(self.entitlements.refresher(settings, stopper)).collect()
    }

    fn buyer_checks(&self, blocks: &BlockList, limits: &Arc<RateLimits>) -> BuyerChecks {
        let entitlements = self.entitlements.clone();
        BuyerChecks { blocks: blocks.clone(), entitlements, limits: limits.clone() }
    }

    /// The address that is bound.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.port.address().ok()
    }
}

/// Runs until the process stops.
pub(super) async fn run(context: RoleContext, endpoint: PublicEndpoint) -> Result<(), RoleError> {
    let mut tasks = RoleTasks::new(&context);
    let RoleContext { settings, servers, stopper, .. } = context;
    let (redis, rows, entry, shards) = (&servers.redis, &servers.rows, &settings.p1_entry, settings.redis.shards);
    redis.wait_connected(CONNECT_GRACE).await;
    // Random, because two processes of one name would otherwise share a lease or a lock.
    let owner = format!("{}-{:016x}", settings.node(), rand::random::<u64>());

    let guard = DurabilityGuard::new(redis.health.clone());
    let read = (rows.sales.clone(), rows.requests.clone());
    let fence = servers.fence(&guard, shards);
    let ids = RequestIds::start(redis.leases.clone(), owner.clone(), stopper.clone());
    let (filter, blocks, overload) =
        (SaleIdFilter::default(), BlockList::default(), Overload::new(entry.in_flight_max));
    let catalog = Catalog::new(catalog_handles(redis), rows.sales.clone(), filter.clone(), &settings, &owner);
    let rooms = WaitingRooms::start(redis.rooms.clone(), overload.clone(), entry);
    let limits = Arc::new(RateLimits::start(entry, redis.rates.clone(), shards));
    let tokens = Arc::new(PurchaseTokens::new(entry.token_secrets_in_use(), entry.token_ttl_s));
    let ledger_reads = LedgerReads::start(ledger_handles(redis, fence.clone()), &settings.p5_reconcile);
    let reserve = servers.reserve(fence, &settings);
    let buyers = endpoint.buyer_checks(&blocks, &limits);
    let replays = Replays::new(ledger_reads.clone(), shards);
    let admission = Admission::new(tokens.clone(), buyers.clone(), guard.clone(), overload.clone());
    let (judged, refreshers) = ((buyers.clone(), challenges(&settings)?), endpoint.key_refreshers(&settings, &stopper));
    let public = Arc::new(PublicApi {
        auth: endpoint.auth,
        entitlements: endpoint.entitlements,
        purchasing: Purchasing::new(catalog.clone(), admission, replays, reserve, ids.clone()),
        token_issuer: PurchaseTokenIssuer::new(catalog.clone(), rooms.clone(), judged, ids.clone(), tokens),
        lines: lines((&catalog, &buyers, &ids), rows, &settings),
        rooms: RoomEntrance::new(catalog.clone(), buyers, rooms.clone()),
        statuses: Statuses::start(ledger_reads.clone(), read, filter.clone(), shards, &stopper),
        my_orders: MyOrders::start(servers.fulfil_context(&settings), catalog.clone(), ledger_reads, limits),
        sales: SaleList::new(rows.sales.clone(), catalog.clone()),
        catalog: catalog.clone(),
        overload: overload.clone(),
        waiters: Waiters::new(&settings.http),
        bounds: RequestBounds::new(&settings),
    });
    let monitor = OverloadMonitor::new(overload, backlog(redis), rows.requests.clone(), shards, entry);

    refreshers.into_iter().for_each(|refresher| tasks.worker(refresher, KeySetRefresher::PACE));
    tasks.worker(guard.clone(), PollInterval::idle_ms(1_000));
    tasks.worker(monitor, PollInterval::idle_ms(100));
    tasks.worker(RoomReleaser::new(rooms, catalog), RoomReleaser::PACE);
    read_from_database(&mut tasks, rows, filter, blocks);
    let (control, election) = (servers.sale_control(&settings), servers.election(LedWork::WarmUp));
    tasks.worker(AutoWarm::new(control, election, settings.p5_reconcile.warm_ahead_ms), PollInterval::idle_ms(1_000));

    tasks.task(async move {
        wait_until_safe(&guard, &stopper).await;
        public.auth.wait_for_keys(&stopper).await;
        // A listening process is sent buyers at once; without request ids it could only turn them away.
        ids.wait_ready(CONNECT_GRACE, &stopper).await;
        if stopper.is_stopped() {
            return Ok(());
        }
        let failed = |error: std::io::Error| RoleError::Ended(format!("http server: {error}"));
        let listener = endpoint.port.open(settings.http.listen_backlog).map_err(failed)?;
        let server = http::serve(public, listener, &settings.http, endpoint.extra_routes, stopper);
        server.map_err(failed)?.await.map_err(failed)
    });
    tasks.until_ended().await;
    Ok(())
}

/// Where requests wait.
fn backlog(redis: &RedisStore) -> OverloadHandles {
    OverloadHandles { outbox: redis.outbox.clone(), ledger: redis.ledger.clone() }
}

/// The lines of sales.
fn lines(
    (catalog, buyers, ids): (&Catalog, &BuyerChecks, &RequestIds),
    rows: &DatabaseRows,
    settings: &Settings,
) -> Lines {
    let receipts = Receipts::new(settings.p1_entry.token_secrets_in_use());
    let asked = (catalog.clone(), buyers.clone(), ids.clone());
    Lines::start(asked, rows.lines.clone(), receipts, settings.lines.entries_max)
}

/// What sales put to buyers before a token; the certificates of the risk service are read here.
fn challenges(settings: &Settings) -> Result<Challenges, RoleError> {
    Challenges::start(settings).map_err(|error| RoleError::Config(vec![error.to_string()]))
}

/// Keeps what the process remembers of the database up to date.
fn read_from_database(tasks: &mut RoleTasks, rows: &DatabaseRows, filter: SaleIdFilter, blocks: BlockList) {
    tasks.worker(SaleIdFilterRefresher::new(rows.sales.clone(), filter), PollInterval::idle_ms(250));
    tasks.worker(BlockListRefresher::new(rows.blocks.clone(), blocks), PollInterval::idle_ms(250));
}

/// The system cuts a longer accept queue without a word.
fn warn_of_short_queue(backlog: u16) {
    if let Some(allowed) = accept_queue_max().filter(|allowed| *allowed < u32::from(backlog)) {
        tracing::warn!(
            http_listen_backlog = backlog,
            allowed,
            "net.core.somaxconn is below http.listen_backlog: fewer connections can wait to be accepted"
        );
    }
}

/// 1 is taken, so that a file of the version before still starts a process. No process needs it: that version reads lines, too.
fn warn_of_outbox_format(format: u8) {
    if format == 1 {
        tracing::warn!(
            "redis.outbox_format = 1 has no effect any more: entries of the outbox stream are written in lines (2); \
             remove the key"
        );
    }
}

fn catalog_handles(redis: &RedisStore) -> CatalogHandles {
    let (sale_cache, stock, health) = (redis.sale_cache.clone(), redis.stock.clone(), redis.health.clone());
    CatalogHandles { sale_cache, stock, health }
}

fn ledger_handles(redis: &RedisStore, fence: Fence) -> LedgerHandles {
    let (ledger, sale_keys) = (redis.ledger.clone(), redis.sale_keys.clone());
    LedgerHandles { ledger, sale_keys, fence }
}

/// Waits until Redis answers and its settings allow to sell; logs what it waits for.
async fn wait_until_safe(guard: &DurabilityGuard, stopper: &Stopper) {
    let mut logged_at: Option<Instant> = None;
    while !stopper.is_stopped() {
        let problem = match guard.check().await {
            Ok(None) => return,
            Ok(Some(refusal)) => format!("{refusal}; not serving until it is changed"),
            Err(error) => format!("waiting for redis: {error}"),
        };
        if logged_at.is_none_or(|at| at.elapsed() > REMIND) {
            tracing::warn!("{problem}");
            logged_at = Some(Instant::now());
        }
        stopper.sleep(Duration::from_millis(200)).await;
    }
}
