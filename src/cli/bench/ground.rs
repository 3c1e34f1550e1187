//! The ground a benchmark stands on: private servers and roles in this process, or a running local stack.
//!
//! The api role starts first and alone, so that accepting is measured alone; the others start when something is to land.
//! A crash leaves a folder under the system's temporary directory; the servers die with this process.

use super::super::{Failure, context};
use crate::config::{Layers, Settings};
use crate::dev::{DevState, External, PrivateServers};
use crate::domain::ids::SaleId;
use crate::domain::policy::PurchasePolicy;
use crate::domain::sale::{Sale, SaleStatus};
use crate::p1_entry::warm::Warmer;
use crate::roles::{self, Role, Running, Servers};
use crate::runtime::{Stopper, now_ms};
use crate::store::mysql::{migrate, sales};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The api must answer within this time.
const READY: Duration = Duration::from_secs(15);
/// Roles whose data are thrown away have this long to end.
const LEAVE: Duration = Duration::from_millis(300);
const HOUR_MS: i64 = 3_600_000;

/// What is measured, and what it runs on.
pub(super) struct Ground {
    pub api: String,
    pub settings: Arc<Settings>,
    pub servers: Servers,
    pub stop: Stopper,
    /// Sales made here, for the audit at the end.
    pub sales: Vec<Sale>,
    private: Option<Private>,
    run: String,
}

struct Private {
    servers: PrivateServers,
    dir: PathBuf,
    api: Running,
    rest: Option<Running>,
    stopper: Stopper,
}

impl Ground {
    /// A private one, with the api role only.
    pub async fn private(layers: &Layers, stop: &Stopper) -> Result<Self, Failure> {
        let run = format!("{:06x}", rand::random::<u32>() & 0x00ff_ffff);
        let dir = std::env::temp_dir().join(format!("seckill-bench-{run}"));
        let started = Self::start(layers, stop, &dir, run).await;
        if started.is_err() {
            // The servers are dead by now: nothing holds the folder.
            drop(std::fs::remove_dir_all(&dir));
        }
        started
    }

    async fn start(layers: &Layers, stop: &Stopper, dir: &Path, run: String) -> Result<Self, Failure> {
        let servers = PrivateServers::start_beside(External::from_env(), dir, &|_progress| {}).await?;
        let urls = servers.urls();
        let secret = |name: &str| format!("bench-{name}-{:032x}", rand::random::<u128>());
        let mut set = vec!["log.level=error".to_owned()];
        set.extend(layers.set.iter().cloned());
        set.extend([
            format!("redis.url={}", urls.redis_url),
            format!("rabbitmq.url={}", urls.amqp_url),
            format!("mysql.url={}", urls.mysql_url),
            "auth.algorithm=HS256".to_owned(),
            format!("auth.secret={}", secret("jwt")),
            format!("p1_entry.token_secret={}", secret("purchase")),
        ]);
        let settings = Arc::new(Settings::load(&Layers { files: layers.files.clone(), set })?);
        crate::telemetry::init_logs(&settings.log).map_err(Failure::Usage)?;
        crate::telemetry::init_metrics();
        migrate::migrate(settings.mysql.url.expose()).await?;
        let stopper = Stopper::new();
        let listener = roles::bind("http.listen", "127.0.0.1:0")?;
        let api = format!("http://{}", listener.local_addr()?);
        let running = roles::start(&settings, &[Role::Api], Some(listener), &stopper)?;
        answers(&api).await?;
        let handles = context::servers(&settings).await?;
        let private = Private { servers, dir: dir.to_owned(), api: running, rest: None, stopper };
        Ok(Self { api, settings, servers: handles, stop: stop.clone(), sales: Vec::new(), private: Some(private), run })
    }

    /// The local stack that runs in `data_dir`, with all its roles.
    pub async fn here(layers: &Layers, data_dir: &Path, stop: &Stopper) -> Result<Self, Failure> {
        let none =
            || Failure::Failed(format!("no local stack runs in {}; start seckill dev first", data_dir.display()));
        let state = DevState::read(data_dir)?.ok_or_else(none)?;
        let settings = Arc::new(context::settings(layers, data_dir)?);
        answers(&state.api).await?;
        let servers = context::servers(&settings).await?;
        let run = format!("{:06x}", rand::random::<u32>() & 0x00ff_ffff);
        Ok(Self { api: state.api, settings, servers, stop: stop.clone(), sales: Vec::new(), private: None, run })
    }

    /// Half a measurement is none.
    pub fn go_on(&self) -> Result<(), Failure> {
        let stopped = || Failure::Failed("stopped before the end, so nothing is told".to_owned());
        if self.stop.is_stopped() { Err(stopped()) } else { Ok(()) }
    }

    /// Whether only the api role runs.
    pub fn is_api_alone(&self) -> bool {
        self.private.as_ref().is_some_and(|private| private.rest.is_none())
    }

    /// Starts the roles behind the api, once.
    pub fn start_landing(&mut self) -> Result<(), Failure> {
        if let Some(private) = &mut self.private
            && private.rest.is_none()
        {
            let behind = [Role::Relay, Role::Consumer, Role::Reconcile];
            private.rest = Some(roles::start(&self.settings, &behind, None, &private.stopper)?);
        }
        Ok(())
    }

    /// A warmed sale that is open now.
    pub async fn sale(&mut self, name: &str, stock: i64, limit: Option<u32>) -> Result<SaleId, Failure> {
        let id =
            SaleId::parse(&format!("bench-{}-{name}", self.run)).map_err(|error| Failure::Failed(error.to_string()))?;
        let sale = Sale {
            sale_id: id.clone(),
            product_id: "bench".to_owned(),
            title: format!("bench {name}"),
            price_cents: 100,
            currency: "CNY".to_owned(),
            granted: stock,
            stock,
            policy: PurchasePolicy::from_limit(limit),
            token_required: false,
            waiting_room: false,
            starts_at_ms: now_ms() - 1_000,
            ends_at_ms: now_ms() + HOUR_MS,
            status: SaleStatus::Draft,
            epoch: 1,
        };
        sales::create(&self.servers.db, &sale).await?;
        self.warmer().warm(&id).await?;
        self.sales.push(sale);
        Ok(id)
    }

    fn warmer(&self) -> Warmer {
        let (shards, backlog_max) = (self.settings.redis.shards, self.settings.p1_entry.backlog_max);
        Warmer { redis: self.servers.redis.clone(), db: self.servers.db.clone(), shards, backlog_max }
    }

    /// Units that are orders by now, and units that Redis sold.
    pub async fn landed_and_sold(&self, id: &SaleId) -> Result<(i64, i64), Failure> {
        let none = || Failure::Failed(format!("sale {id} is gone from the database"));
        let sale = sales::get(&self.servers.db, id).await?.ok_or_else(none)?;
        let mut left = 0;
        for shard in 0..self.settings.redis.shards {
            left += self.servers.redis.stock(id, shard).await?.unwrap_or(0);
        }
        Ok((sale.granted - sale.stock, sale.granted - left))
    }

    /// Waits until everything sold is an order; `false` when `within` was not enough. Calls `told` with both figures.
    pub async fn drained(&self, id: &SaleId, within: Duration, told: &dyn Fn(i64, i64)) -> Result<bool, Failure> {
        let end = Instant::now() + within;
        loop {
            let (landed, sold) = self.landed_and_sold(id).await?;
            told(landed, sold);
            if landed >= sold {
                return Ok(true);
            }
            if Instant::now() > end || self.stop.is_stopped() {
                return Ok(false);
            }
            self.stop.sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops what was started; closes the sales of a stack that goes on running.
    pub async fn leave(self) -> Result<(), Failure> {
        let Some(private) = self.private else {
            for sale in &self.sales {
                self.warmer().close(&sale.sale_id).await?;
            }
            self.servers.redis.quit().await;
            return Ok(());
        };
        self.servers.redis.quit().await;
        private.stopper.stop();
        // Everything has been counted and the data are thrown away: nothing needs to drain, and dropping the servers kills them.
        let mut ended = private.api.until_stopped(LEAVE).await;
        if let Some(rest) = private.rest {
            ended = ended.and(rest.until_stopped(LEAVE).await);
        }
        drop(private.servers);
        std::fs::remove_dir_all(&private.dir)?;
        Ok(ended?)
    }
}

async fn answers(api: &str) -> Result<(), Failure> {
    let client = reqwest::Client::builder().timeout(Duration::from_secs(3)).no_proxy().build();
    let client = client.map_err(|error| Failure::Failed(error.to_string()))?;
    let end = Instant::now() + READY;
    loop {
        match client.get(format!("{api}/v1/sales")).send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(_) | Err(_) if Instant::now() < end => tokio::time::sleep(Duration::from_millis(20)).await,
            Ok(answer) => return Err(Failure::Failed(format!("{api} answers {}", answer.status()))),
            Err(error) => return Err(Failure::Failed(format!("{api} does not answer: {error}"))),
        }
    }
}
