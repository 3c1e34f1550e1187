//! The sales of a scene, and the crowd that buys in them, pays, cancels, or forgets.
//!
//! Orders of one of them wait for their payment, so that deadlines pass and payments are reported while a fault lasts. Not on replicas
//! of the database: a fail-over to one that lacks commits loses payments that were acknowledged, by design (register, H4).

use crate::clients::payer::PRICE;
use crate::clients::{Backend, Load, SaleSpec};
use crate::network::NUMBERS;
use crate::servers::{self, Kind, roles};
use seckill::roles::Role;

/// Purchases that the crowd begins in a second.
const RATE_PER_S: f64 = 15.0;
const BUYERS: u64 = 400;
const SETTLE_MAX_MS: u64 = 90_000;
/// What buyers see. Who pays late does so within twice this time, and no scene ends before: it is short.
const PAY_WITHIN_S: u32 = 4;
/// From then on until the order may expire: of those who pay late some are in time, others meet the sweep.
const PAY_GRACE_S: &str = "2";

/// Whether a sale has a payment step.
fn has_payments() -> bool {
    servers::kind() == Kind::Clusters
}

/// Creates the sales of a scene, whose ids begin with `prefix`: two with fewer units than buyers want, one with plenty, whose orders
/// are paid, and the probes' own, which the crowd does not know.
pub async fn create(prefix: &str) -> Vec<SaleSpec> {
    let spec = |kind: &str, stock, limit, pay_within_s| SaleSpec {
        id: format!("{prefix}-{kind}"),
        stock,
        limit,
        pay_within_s,
    };
    let sales = vec![
        spec("one", 250, Some(1), None),
        spec("few", 150, None, None),
        spec("three", 1_000_000, Some(3), has_payments().then_some(PAY_WITHIN_S)),
    ];
    for sale in sales.iter().chain([&spec("probe", 1_000_000, None, None)]) {
        create_one(sale).await;
    }
    sales
}

async fn create_one(sale: &SaleSpec) {
    let SaleSpec { id, stock, limit, pay_within_s } = sale;
    let (stock, price, limit) = (stock.to_string(), PRICE.to_string(), limit.map(|limit| limit.to_string()));
    let pay_within_s = pay_within_s.map(|seconds| seconds.to_string());
    let mut args = vec!["sale", "create", "--id", id, "--product", "p", "--title", "t", "--stock", &stock];
    args.extend(["--starts-at", "2020-01-01T00:00:00Z", "--ends-at", "2099-01-01T00:00:00Z", "--warm"]);
    args.extend(["--price-cents", &price]);
    args.extend(limit.iter().flat_map(|limit| ["--limit", limit]));
    args.extend(pay_within_s.iter().flat_map(|seconds| ["--pay-within-s", seconds, "--pay-grace-s", PAY_GRACE_S]));
    roles::must_call(1, &args).await;
}

/// What the crowd does. It knows of no fault: the shop's backend, too, goes on asking a host that is gone.
pub fn load(sales: Vec<SaleSpec>, seed: u64) -> Load {
    let admins = NUMBERS.map(|number| format!("http://{}", roles::admin_address(number, Role::Api))).to_vec();
    let backend = Backend { admins, token: roles::ADMIN_TOKEN.to_owned() };
    Load {
        apis: roles::apis(&[]),
        sales,
        users: BUYERS,
        rate_per_s: RATE_PER_S,
        seed,
        secret: roles::secret(),
        backend: has_payments().then_some(backend),
        settle_max_ms: SETTLE_MAX_MS,
    }
}
