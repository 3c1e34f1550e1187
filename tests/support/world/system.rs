//! A `World` is a small system for one test: own database, own virtual host, own key prefix on the shared servers, roles as
//! tasks.
//!
//! Every test ends with [`World::finish`], which asks the balance sheet whether anything was lost (E6).

use super::schema;
use super::shared_servers::{Tenant, shared};
use crate::support::basics::files::Folder;
use crate::support::basics::time::{QUICK, SETTLE, after, pause};
use seckill::config::{Layers, Secret, Settings};
use seckill::domain::ids::SaleId;
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::{Sale, SaleStatus};
use seckill::p5_reconcile::{ReconcileContext, SaleAudit, Window, audit_sale};
use seckill::roles::{self, ApiOptions, Role, RoleError, Servers};
use seckill::runtime::{Stopper, now_ms};
use seckill::sales::rows as sales;
use seckill::sales::{SaleControl, SaleControlError};
use seckill::store::mysql::{DatabaseAddress, migrate};
use seckill::store::redis::RedisFault;
use seckill::token_issuer::TokenIssuer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// For tests that count the messages of a queue: each of them is one order, because an entry has one and travels alone.
pub const ALONE: [&str; 2] = ["p2_reserve.group_max=1", "p3_relay.bundle_max=1"];

/// A machine that stands still for seconds, as a shared one may when its disk is busy, is the subject of no test. Those about
/// servers that do set their own limits.
const PATIENT: [&str; 2] = ["redis.command_timeout_ms=10000", "p2_reserve.deadline_ms=12000"];

/// Warms a sale as an operator does: a call whose answer got lost is made again, which harms nothing.
async fn eventually_warm(sale_control: SaleControl, sale: &SaleId) {
    let deadline = Instant::now() + SETTLE;
    while let Err(error) = sale_control.warm(sale).await {
        let lost = matches!(&error, SaleControlError::Redis(RedisFault::Unknown(_)));
        assert!(lost && Instant::now() < deadline, "warm-up: {error:?}");
        pause().await;
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(40)).build().expect("a client")
}

/// A system under test.
pub struct World {
    /// In effect.
    pub settings: Arc<Settings>,
    /// The test's own handles.
    pub servers: Servers,
    /// `http://127.0.0.1:port`; empty without the api role.
    pub api: String,
    /// Whether the api role serves the demo shop from its next start on.
    pub demo_shop: bool,
    /// For requests.
    pub http: reqwest::Client,
    pub(in crate::support) issuer: TokenIssuer,
    stopper: Stopper,
    running: Option<JoinHandle<Result<(), RoleError>>>,
    pub(in crate::support) tenant: Option<Tenant>,
    /// With a file `config.toml`, for what only a file can say.
    pub(in crate::support) config: Option<Folder>,
}

/// Longest time that roles of a test that failed may take to end.
const END: Duration = Duration::from_secs(20);

/// Nothing stays behind, whether the test failed or not: no task of its roles, no queue, no table.
impl Drop for World {
    fn drop(&mut self) {
        self.stopper.stop();
        let (running, tenant) = (self.running.take(), self.tenant.take());
        after(async move {
            if let Some(running) = running {
                drop(tokio::time::timeout(END, running).await);
            }
            drop(tenant);
        });
    }
}

impl World {
    /// All roles.
    pub async fn start() -> Self {
        Self::with(&Role::ALL, &[]).await
    }

    /// Some roles, with settings on top of the quick ones.
    pub async fn with(roles: &[Role], set: &[&str]) -> Self {
        let name = format!("t{}", WORLDS.fetch_add(1, Ordering::SeqCst));
        let tenant = Tenant::new(&name).await;
        Self::on_tenant(tenant, &shared().await.urls().redis_url, (&name, roles, set)).await
    }

    /// A world on its own Redis, with the shared broker and database, and `name` everywhere.
    pub async fn on_redis(redis_url: &str, name: &str, roles: &[Role], set: &[&str]) -> Self {
        // The next one of this name may come before this one's place is cleared.
        let tenant = Tenant::new(&format!("{name}-{}", WORLDS.fetch_add(1, Ordering::SeqCst))).await;
        Self::on_tenant(tenant, redis_url, (name, roles, set)).await
    }

    /// The virtual host it is on.
    pub fn vhost(&self) -> &str {
        last_part(self.settings.rabbitmq.url.expose())
    }

    /// The name of its database.
    pub fn database(&self) -> &str {
        last_part(self.settings.mysql.url.expose())
    }

    async fn on_tenant(tenant: Tenant, redis_url: &str, (name, roles, set): (&str, &[Role], &[&str])) -> Self {
        let mut world = Self::on((redis_url, &tenant.amqp_url, &tenant.mysql_url), name, roles, set).await;
        world.tenant = Some(tenant);
        world
    }

    /// On given servers (redis, amqp, mysql; several databases with commas), with `name` as key prefix and node.
    pub async fn on(urls: (&str, &str, &str), name: &str, roles: &[Role], set: &[&str]) -> Self {
        Self::configured(urls, (name, roles, set), None).await
    }

    pub(in crate::support) async fn configured(
        urls: (&str, &str, &str),
        (name, roles, set): (&str, &[Role], &[&str]),
        config: Option<Folder>,
    ) -> Self {
        let mut layers: Vec<String> = QUICK.iter().chain(&PATIENT).map(|set| (*set).to_owned()).collect();
        layers.extend([
            format!("redis.url={}", urls.0),
            format!("rabbitmq.url={}", urls.1),
            format!("mysql.{}={}", if urls.2.contains(',') { "urls" } else { "url" }, urls.2),
            format!("redis.prefix={name}"),
            format!("runtime.node={name}"),
        ]);
        layers.extend(set.iter().map(|set| (*set).to_owned()));
        let files = config.iter().map(|folder| folder.path().join("config.toml")).collect();
        let settings = Arc::new(Settings::load(&Layers { files, set: layers }).expect("settings"));
        match settings.mysql.urls_in_use() {
            [plain] if plain.expose().starts_with("mysql:") => schema::make(plain.expose()).await,
            // The copy's own connections know no certificates, and one address.
            _ => {
                let address = DatabaseAddress::new(&settings.mysql).expect("certificates");
                drop(migrate::migrate(address).await.expect("migrations"));
            }
        }
        let servers = Servers::new(&settings).expect("handles");
        assert!(servers.redis.wait_connected(Duration::from_secs(20)).await, "redis connects");
        // With another algorithm than HS256 the test signs its own tokens, and nothing takes this issuer's.
        let unused = Secret::new("unused".to_owned());
        let secret = if settings.auth.uses_secrets() { settings.auth.signing_secret() } else { &unused };
        let issuer = TokenIssuer::new(secret, "seckill", "seckill").expect("an issuer");
        let mut world = Self {
            settings,
            servers,
            api: String::new(),
            demo_shop: false,
            http: client(),
            issuer,
            stopper: Stopper::new(),
            running: None,
            tenant: None,
            config,
        };
        world.start_roles(roles).await;
        world
    }

    /// Starts roles (again), after [`World::stop_roles`].
    pub async fn start_roles(&mut self, roles: &[Role]) {
        if roles.is_empty() {
            return;
        }
        self.stopper = Stopper::new();
        let options = ApiOptions { public_port: None, demo_shop: self.demo_shop };
        let running = roles::start(&self.settings, roles, options, &self.stopper).expect("roles start");
        if let Some(address) = running.api {
            self.api = format!("http://{address}");
        }
        self.running = Some(tokio::spawn(running.until_stopped(Duration::from_secs(10))));
        if roles.contains(&Role::Api) {
            let deadline = Instant::now() + Duration::from_secs(20);
            while self.http.get(format!("{}/v1/sales", self.api)).send().await.is_err() {
                assert!(Instant::now() < deadline, "the api does not answer");
                pause().await;
            }
        }
    }

    /// Stops the roles in order.
    pub async fn stop_roles(&mut self) {
        // With its idle connections: the api's workers wait a second and check again while one is open.
        self.http = client();
        self.stopper.stop();
        if let Some(running) = self.running.take() {
            running.await.expect("roles end").expect("roles end well");
        }
    }

    /// Creates a sale that sells now, and warms it.
    pub async fn sale(&self, id: &str, stock: i64, limit: Option<u32>) -> SaleId {
        self.sale_with(id, stock, |sale| sale.policy = PurchasePolicy::from_limit(limit)).await
    }

    /// Creates a sale that sells now but for what `change` says, and warms it.
    pub async fn sale_with(&self, id: &str, stock: i64, change: impl FnOnce(&mut Sale)) -> SaleId {
        let sale_id = self.draft(id, stock, change).await;
        eventually_warm(self.sale_control(), &sale_id).await;
        sale_id
    }

    /// Creates a sale without warming it.
    pub async fn draft(&self, id: &str, stock: i64, change: impl FnOnce(&mut Sale)) -> SaleId {
        let sale_id = SaleId::parse(id).expect("a sale id");
        let mut sale = Sale {
            product_id: "p".into(),
            title: "t".into(),
            ..Sale::draft(sale_id.clone(), stock, now_ms() - 1_000, now_ms() + 3_600_000)
        };
        change(&mut sale);
        self.servers.rows.sales.create(&sale).await.expect("create");
        sale_id
    }

    /// For warm-ups, pauses, top-ups.
    pub fn sale_control(&self) -> SaleControl {
        self.servers.sale_control(&self.settings)
    }

    /// For audits and repairs.
    pub fn reconcile_context(&self) -> ReconcileContext {
        ReconcileContext { findings_max: 100, ..self.servers.reconcile_context(&self.settings) }
    }

    /// Audits one sale.
    pub async fn audit(&self, sale: &SaleId, window: Window) -> SaleAudit {
        let sale = self.servers.rows.sales.get(sale).await.expect("the sale").expect("it exists");
        audit_sale(&self.reconcile_context(), &sale, window).await.expect("an audit")
    }

    /// Waits until no request of `sale` is undecided, and returns the audit.
    pub async fn settled(&self, sale: &SaleId) -> SaleAudit {
        let deadline = Instant::now() + SETTLE;
        loop {
            let audit = self.audit(sale, Window::Now).await;
            if audit.counted.leaked + audit.counted.in_flight == 0 || Instant::now() > deadline {
                return audit;
            }
            pause().await;
        }
    }

    /// The end of every test: everything accepted has its outcome and every sale adds up.
    pub async fn finish(mut self) {
        for sale in self.servers.rows.sales.list().await.expect("sales") {
            if sale.status != SaleStatus::Draft {
                let audit = self.settled(&sale.sale_id).await;
                assert!(audit.consistent(), "{audit:#?}");
            }
        }
        self.stop_roles().await;
    }
}

/// The last part of an address's path.
fn last_part(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}
