//! Two nodes of Galera that are written to at once, as happens for a moment when a host comes back: consumers land the same
//! requests on both. One of two transactions that meet is undone, at any of its statements, and nothing of it may stay.

use crate::folder;
use crate::servers::{Kind, galera, roles};
use crate::site::Site;
use crate::time::time_passes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::message::OrderMessage;
use seckill::domain::policy::Quantity;
use seckill::domain::request::Purchase;
use seckill::domain::webhook::WebhookSubscriptions;
use seckill::events::webhooks::rows::Subscriptions;
use seckill::orders::persist::Persister;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::mysql::{Db, DbConfig};
use tokio::sync::watch;

const SALE: &str = "two-writers";
const STOCK: u64 = 1_000_000;
const GROUP: u64 = 20;
const GROUPS: u64 = 5_000;
/// Consumers of the second node: each lands one request of the group that the first one is about to land.
const CONSUMERS: u64 = 4;
/// Requests are numbered from here on.
const FIRST: u64 = 1_000_000_000;

fn group(at: u64) -> Vec<OrderMessage> {
    let message = |number| OrderMessage {
        purchase: Purchase {
            request_id: RequestId::new(FIRST + number).expect("an id"),
            sale_id: SaleId::parse(SALE).expect("an id"),
            user_id: UserId::parse(&format!("u{number}")).expect("an id"),
            person: None,
            quantity: Quantity::new(1).expect("a quantity"),
        },
        shard: 0,
        epoch: 1,
        number,
        accepted_at_ms: 1_800_000_000_000,
    };
    (1 + at * GROUP..=GROUP + at * GROUP).map(message).collect()
}

/// Lands requests; what fails is tried again, as the broker would give it once more.
async fn land(db: &Db, mut left: Vec<OrderMessage>) {
    let persister = Persister::new(db.clone(), Subscriptions::new(db.clone(), WebhookSubscriptions::default()));
    let mut last = None;
    for _ in 0..100 {
        let verdicts = persister.persist_all(&left, PersistSource::Relay).await;
        let failed: Vec<_> = left.into_iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_err()).collect();
        last = failed.first().map(|(_, verdict)| format!("{verdict:?}"));
        left = failed.into_iter().map(|(message, _)| message).collect();
        if left.is_empty() {
            return;
        }
    }
    panic!("{} requests never landed: {last:?}", left.len());
}

/// Each group on the first node, and at the same moment some of it on the second.
async fn land_all(db: Db, begun: watch::Sender<u64>) {
    for at in 0..GROUPS {
        begun.send_replace(at);
        land(&db, group(at)).await;
    }
}

async fn land_some(db: Db, mut begun: watch::Receiver<u64>, consumer: u64) {
    let mut random = StdRng::seed_from_u64(consumer);
    while begun.changed().await.is_ok() {
        let at = *begun.borrow_and_update();
        time_passes(random.random_range(0..3)).await;
        let one = group(at).swap_remove(usize::try_from(consumer * 5).expect("few"));
        land(&db, vec![one]).await;
    }
}

/// Plays it.
pub async fn keep_the_books() {
    let _site = Site::start(&folder().join("site"), Kind::Clusters).await;
    let stock = STOCK.to_string();
    let what = ["sale", "create", "--id", SALE, "--product", "p", "--title", "t", "--stock", &stock];
    let window = ["--starts-at", "2020-01-01T00:00:00Z", "--ends-at", "2099-01-01T00:00:00Z"];
    roles::must_call(1, &[&what[..], &window].concat()).await;
    let node = |number| {
        let address = galera::url(number).into();
        let waits = DbConfig {
            address,
            pool_max: 4,
            wait_timeout_ms: 5_000,
            connect_timeout_ms: 3_000,
            statement_timeout_ms: 10_000,
        };
        Db::connect(waits).expect("a pool")
    };
    let (begun, _) = watch::channel(0);
    let two = node(2);
    let some: Vec<_> =
        (0..CONSUMERS).map(|consumer| tokio::spawn(land_some(two.clone(), begun.subscribe(), consumer))).collect();
    land_all(node(1), begun).await;
    for consumer in some {
        consumer.await.expect("landed");
    }
    let count = async |query: &str| {
        let counted = galera::ask(3, &format!("SELECT CAST(({query}) AS CHAR) AS value")).await;
        counted.and_then(|value| value.parse::<u64>().ok())
    };
    let all = Some(GROUPS * GROUP);
    let books = [
        count("SELECT COUNT(*) FROM request_outcome WHERE sale_id = 'two-writers'").await,
        count("SELECT COUNT(*) FROM orders WHERE sale_id = 'two-writers'").await,
        count("SELECT -SUM(delta) FROM stock_flow WHERE sale_id = 'two-writers' AND kind = 'order'").await,
        count("SELECT 1000000 - stock FROM sales WHERE sale_id = 'two-writers'").await,
    ];
    assert_eq!(books, [all; 4], "outcomes, orders, the journal, units that were taken");
}
