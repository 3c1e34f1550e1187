//! What a run begins with: servers, processes, sales, and everybody who works with them.

use crate::clients::final_status::SETTLE_MAX_MS;
use crate::clients::{Backend, Clients, Load, SaleSpec};
use crate::deployment::{Deployment, Options, PREFIX};
use crate::dump::published;
use crate::meter::Meter;
use crate::operators::Operators;
use crate::probe;
use crate::process::RoleEnv;
use crate::run::Orders;
use crate::sampler::Sampler;
use crate::shop::{SOON, Shop};
use seckill::faults::Mechanism;
use seckill::roles::Role;
use std::sync::Arc;

/// Purchases begun per second.
const RATE_PER_S: u64 = 60;
/// Where a mechanism is left out the run does not wait long for what is lost; longer than the window and a take-over, though.
pub const HOPELESS_MS: u64 = 12_000;

/// Seconds to pay, so that deadlines pass while faults are at work.
const PAY_WITHIN_S: u32 = 3;
/// `admin.token`, with which the shop's backend reports payments.
const ADMIN_TOKEN: &str = "test-admin-token-of-a-chaos-run-with-32-bytes";

/// The sale in which operators do what they do in no other one but [`PAID_BY_HAND`]: there "sold out" may have been true before.
const BY_HAND: &str = "by-hand";
const PAID_BY_HAND: &str = "pay-soon";

/// Most units of a buyer over both sales of the drop.
const DROP_LIMIT: u32 = 3;

/// The sales of the drop: of one the orders have to be paid, and give back to the limit when they are not.
fn drop_sales(seconds: i64) -> [SaleSpec; 2] {
    let sale = |id: &str, pay_within_s| SaleSpec { id: id.to_owned(), stock: 8 * seconds, limit: None, pay_within_s };
    [sale("drop-a", None), sale("drop-b", Some(PAY_WITHIN_S))]
}

/// A sale with fewer units than buyers, one with few units, one with plenty, for a run of `seconds`.
fn sales(seconds: i64) -> [SaleSpec; 6] {
    let sale = |id: &str, stock, limit| SaleSpec { id: id.to_owned(), stock, limit, pay_within_s: None };
    let paying = |id: &str, stock, limit| SaleSpec { pay_within_s: Some(PAY_WITHIN_S), ..sale(id, stock, limit) };
    [
        sale("one-each", 12 * seconds, Some(1)),
        sale("few-units", 15 * seconds, None),
        sale("three-each", 1_000_000, Some(3)),
        // Fewer units than buyers: those of orders that were not paid are sold again.
        paying(PAID_BY_HAND, 5 * seconds, None),
        paying("pay-or-leave", 5 * seconds, Some(1)),
        // Operators add units, and cancel orders.
        sale(BY_HAND, 2 * seconds, None),
    ]
}

/// Has every process leave a mechanism out.
fn left_out(off: Mechanism) -> [RoleEnv; 4] {
    let value = format!("{}=return", off.code());
    Role::ALL.map(|role| RoleEnv { role, name: "FAILPOINTS".to_owned(), value: value.clone(), first_life_only: false })
}

/// Where the crowd and its operators come to.
pub struct Stage {
    /// Still without load.
    pub deployment: Arc<Deployment>,
    /// It gets the webhooks.
    pub shop: Shop,
    sales: Vec<SaleSpec>,
    backend: Backend,
}

/// Servers, processes, and the sales.
pub async fn set_up(orders: &Orders) -> Stage {
    let shop = Shop::open(true).await;
    let webhook = Some(shop.url());
    let mut options = Options { set: orders.set.clone(), traced: true, webhook, ..Options::default() };
    options.set.extend(SOON.map(str::to_owned));
    options.set.push(format!("admin.token={ADMIN_TOKEN}"));
    options.env.extend(orders.off.into_iter().flat_map(left_out));
    options.set.extend((!orders.repairs).then(|| "p5_reconcile.compensate=manual".to_owned()));
    let name = orders.off.map_or("chaos".to_owned(), |off| format!("chaos-{}", off.code()));
    let deployment = Arc::new(Deployment::start(&name, options).await);
    published::listen(&deployment.urls().amqp, PREFIX).await;
    let seconds = i64::try_from(orders.length_ms / 1000).expect("a short run");
    let (sales, drop_sales) = (sales(seconds), drop_sales(seconds));
    for sale in &sales {
        deployment.create_sale(sale).await;
    }
    deployment.create_drop("drop", DROP_LIMIT, &drop_sales).await;
    let probed = SaleSpec { id: probe::SALE.to_owned(), stock: 1_000_000, limit: None, pay_within_s: None };
    deployment.create_sale(&probed).await;
    let backend = Backend { admins: deployment.admin_urls(), token: ADMIN_TOKEN.to_owned() };
    Stage { deployment, shop, sales: [sales.as_slice(), &drop_sales].concat(), backend }
}

/// Everybody who works with the system during a run.
pub struct Everybody {
    pub clients: Clients,
    pub operators: Operators,
    pub meter: Meter,
    pub sampler: Sampler,
}

impl Stage {
    /// They begin.
    pub fn begin(&self, orders: &Orders) -> Everybody {
        let (deployment, dir) = (&self.deployment, self.deployment.dir());
        let load = Load {
            apis: deployment.api_urls(),
            sales: self.sales.clone(),
            users: orders.length_ms / 50,
            rate_per_s: RATE_PER_S as f64,
            seed: orders.seed,
            secret: deployment.secret(),
            backend: Some(self.backend.clone()),
            settle_max_ms: if orders.off.is_some() { HOPELESS_MS } else { SETTLE_MAX_MS },
        };
        let own = [BY_HAND, PAID_BY_HAND].map(str::to_owned).to_vec();
        let file = dir.join("operators.jsonl");
        Everybody {
            clients: Clients::start(load, &dir.join("history.jsonl")),
            operators: Operators::start(self.backend.clone(), (self.named(), own), orders.seed, &file),
            meter: Meter::start(deployment),
            sampler: Sampler::start(&deployment.urls().mysql, &dir.join("samples.jsonl")),
        }
    }

    /// Ids of the sales.
    pub fn named(&self) -> Vec<String> {
        self.sales.iter().map(|sale| sale.id.clone()).collect()
    }
}
