//! The harness against real servers without faults: all is green, and a loss made by hand is seen.

use crate::checker::check_with_published;
use crate::clients::final_status::SETTLE_MAX_MS;
use crate::clients::{Clients, Load, SaleSpec, Totals, clock};
use crate::dump::{DumpUrls, dump_with_published, published};
use crate::files::empty;
use crate::sampler::Sampler;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::config::{Layers, Settings};
use seckill::dev::{PrivateServers, ServerKind};
use seckill::domain::ids::SaleId;
use seckill::domain::policy::PurchasePolicy;
use seckill::domain::sale::Sale;
use seckill::roles::{self, ApiOptions, Role, Servers};
use seckill::runtime::{Stopper, now_ms};
use seckill::store::mysql::migrate;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The runs take turns: each needs the machine.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
const SECRET: &str = "test-access-secret-of-32-bytes-or-more";
const PREFIX: &str = "seckill";
const LOAD_MS: u64 = 5_000;
const ENOUGH: u64 = 200;
const SETTLE_MS: u64 = 30_000;

fn settings(urls: &DumpUrls) -> Arc<Settings> {
    let set = [
        "http.listen=127.0.0.1:0".to_owned(),
        format!("auth.secret={SECRET}"),
        "p1_entry.token_secret=test-purchase-secret-of-32-bytes-or-more".to_owned(),
        "p3_relay.confirm_timeout_ms=2000".to_owned(),
        "p3_relay.claim_idle_ms=4000".to_owned(),
        "p4_persist.retry_delay_ms=200".to_owned(),
        "p4_persist.retry_delay_max_ms=400".to_owned(),
        "p5_reconcile.window_ms=5000".to_owned(),
        "p5_reconcile.interval_ms=1000".to_owned(),
        "runtime.node=self-test".to_owned(),
        format!("redis.url={}", urls.redis),
        format!("redis.prefix={PREFIX}"),
        format!("rabbitmq.url={}", urls.amqp),
        format!("rabbitmq.prefix={PREFIX}"),
        format!("mysql.url={}", urls.mysql),
    ];
    Arc::new(Settings::load(&Layers { files: vec![], set: set.into() }).expect("settings"))
}

async fn warm(settings: &Settings, servers: &Servers, spec: &SaleSpec) {
    let sale_id = SaleId::parse(&spec.id).expect("a sale id");
    let sale = Sale {
        policy: PurchasePolicy::from_limit(spec.limit),
        ..Sale::draft(sale_id.clone(), spec.stock, now_ms() - 1_000, now_ms() + 3_600_000)
    };
    servers.rows.sales.create(&sale).await.expect("create");
    servers.sale_control(settings).warm(&sale_id).await.expect("warm-up");
}

async fn sql(url: &str, statements: &str) {
    let mut connection = AsyncMysqlConnection::establish(url).await.expect("mysql");
    connection.batch_execute(statements).await.expect(statements);
}

/// Waits until P5 has set every mark in the ledger, and everything is published.
async fn settled(urls: &DumpUrls, dir: &Path) {
    let until_ms = clock::now_ms() + SETTLE_MS;
    loop {
        dump_with_published(urls, dir).await;
        let ledger = std::fs::read_to_string(dir.join("redis_ledger.jsonl")).expect("the ledger");
        let rests = !ledger.contains("\"state\":\"Q\"") && !check_with_published(dir).rules().contains(&"C12");
        if rests || clock::now_ms() > until_ms {
            return;
        }
        clock::patience(500).await;
    }
}

/// A run with Redis frozen for a while, or not; everything is in `dir` afterwards.
async fn run(servers: &mut PrivateServers, urls: &DumpUrls, dir: &Path, frozen_ms: u64) -> Totals {
    let settings = settings(urls);
    migrate::migrate(&urls.mysql).await.expect("migrations");
    let handles = Servers::new(&settings).expect("handles");
    assert!(handles.redis.wait_connected(Duration::from_secs(10)).await, "redis connects");
    let spec = |id: &str, stock, limit| SaleSpec { id: id.to_owned(), stock, limit, pay_within_s: None };
    let specs = vec![spec("one", 100, Some(1)), spec("five", 10_000, Some(5)), spec("many", 10_000, None)];
    published::listen(&urls.amqp, &urls.prefix).await;
    for spec in &specs {
        warm(&settings, &handles, spec).await;
    }
    let stopper = Stopper::new();
    let running = roles::start(&settings, &Role::ALL, ApiOptions::default(), &stopper).expect("roles start");
    let api = format!("http://{}", running.api.expect("an address"));
    let running = tokio::spawn(running.until_stopped(Duration::from_secs(10)));
    let sampler = Sampler::start(&urls.mysql, &dir.join("samples.jsonl"));
    let load = Load {
        apis: vec![api],
        sales: specs,
        users: 400,
        rate_per_s: 100.0,
        seed: 1,
        secret: SECRET.to_owned(),
        backend: None,
        settle_max_ms: SETTLE_MAX_MS,
    };
    let clients = Clients::start(load, &dir.join("history.jsonl"));
    let until_ms = clock::now_ms() + LOAD_MS;
    if frozen_ms > 0 {
        clock::patience(LOAD_MS / 4).await;
        let redis = servers.server(ServerKind::Redis).expect("redis");
        redis.pause().expect("frozen");
        clock::patience(frozen_ms).await;
        redis.resume().expect("thawed");
    }
    // Long enough for the load's mix, and until something was sold even on a slow machine.
    while clock::now_ms() < until_ms || clients.totals().accepted < ENOUGH {
        clock::patience(100).await;
    }
    let totals = clients.stop().await;
    sampler.stop().await;
    settled(urls, dir).await;
    stopper.stop();
    running.await.expect("roles end").expect("roles end well");
    dump_with_published(urls, dir).await;
    totals
}

async fn begin(name: &str) -> (PrivateServers, DumpUrls, PathBuf) {
    let servers = PrivateServers::start(&empty(&format!("{name}-servers")), &|_progress| {}).await;
    let servers = servers.expect("private servers");
    let at = servers.urls();
    let prefix = PREFIX.to_owned();
    let urls = DumpUrls { redis: at.redis_url, amqp: at.amqp_url, mysql: at.mysql_url, prefix, damaged: false };
    (servers, urls, empty(name))
}

fn end(servers: PrivateServers, dir: &Path) {
    let data = servers.dir().to_owned();
    drop(servers);
    std::fs::remove_dir_all(data).ok();
    std::fs::remove_dir_all(dir).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_faults_is_green_and_a_loss_by_hand_is_seen() {
    let _turn = TURN.lock().await;
    let (mut servers, urls, dir) = begin("self-test").await;
    let totals = run(&mut servers, &urls, &dir, 0).await;
    let verdict = check_with_published(&dir);
    eprintln!("{totals:?}\n{:#?}", verdict.figures);
    assert!(verdict.is_green(), "{:#?}", verdict.violations);
    let figures = verdict.figures;
    assert_eq!(totals.unsettled, 0);
    assert!(figures.accepted >= totals.accepted && totals.accepted > 0, "{totals:?}");
    assert!(figures.orders >= totals.accepted && figures.samples > 0 && figures.replays_same > 0, "{figures:?}");
    assert!(figures.refused["sold_out"] > 0 && figures.refused["limit"] > 0, "{figures:?}");

    assert!(figures.published_events >= figures.orders, "{figures:?}");
    let published = std::fs::read_to_string(dir.join("published.jsonl")).expect("what was published");
    let (_, rest) = published.split_once('\n').expect("a line");
    std::fs::write(dir.join("published.jsonl"), rest).expect("one event less");
    assert_eq!(check_with_published(&dir).rules(), ["C12"]);

    let victim = "SELECT MIN(request_id) FROM orders WHERE sale_id = 'many'";
    sql(
        &urls.mysql,
        &format!(
            "SET @victim = ({victim}); DELETE FROM orders WHERE request_id = @victim; \
             DELETE FROM request_outcome WHERE request_id = @victim"
        ),
    )
    .await;
    dump_with_published(&urls, &dir).await;
    let rules = check_with_published(&dir).rules();
    // Redis still has its record, so it is in limbo; gone from there too, it is lost.
    assert!(rules.contains(&"C3-limbo") && rules.contains(&"C1") && rules.contains(&"C8"), "{rules:?}");
    let ledger = std::fs::read_to_string(dir.join("redis_ledger.jsonl")).expect("the ledger");
    let orders = std::fs::read_to_string(dir.join("orders.jsonl")).expect("the orders");
    let is_order = |line: &&str| {
        let record: serde_json::Value = serde_json::from_str(line).expect("a record");
        orders.contains(&format!("\"{}\"", record["rid"].as_str().expect("a request id"))) || record["sale"] != "many"
    };
    let without: Vec<&str> = ledger.lines().filter(is_order).collect();
    assert_eq!(without.len() + 1, ledger.lines().count(), "one record goes");
    std::fs::write(dir.join("redis_ledger.jsonl"), without.join("\n")).expect("the ledger");
    let verdict = check_with_published(&dir);
    assert!(verdict.rules().contains(&"C3-lost"), "{:#?}", verdict.violations);
    end(servers, &dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_met_silence_know_their_outcomes_in_the_end() {
    let _turn = TURN.lock().await;
    let (mut servers, urls, dir) = begin("self-test-frozen").await;
    let totals = run(&mut servers, &urls, &dir, 5_000).await;
    let verdict = check_with_published(&dir);
    eprintln!("{totals:?}\n{:#?}", verdict.figures);
    assert!(verdict.is_green(), "{:#?}", verdict.violations);
    assert!(totals.unknown > 0 && totals.unsettled == 0, "{totals:?}");
    // Both kinds of silence: the api's own word for it, and nothing at all.
    let history = std::fs::read_to_string(dir.join("history.jsonl")).expect("the history");
    for code in ["\"code\":\"OUTCOME_UNKNOWN\"", "\"code\":null"] {
        let seen = history.lines().filter(|line| line.contains("\"result\":\"unknown\"") && line.contains(code));
        assert!(seen.count() > 0, "{code}");
    }
    assert!(verdict.figures.attempts_per_purchase > 1.0, "{:?}", verdict.figures);
    end(servers, &dir);
}

#[test]
fn deployments_of_one_name_share_no_folder() {
    let [first, second] = [empty("twins"), empty("twins")];
    assert!(first != second && first.is_dir() && second.is_dir(), "{first:?} {second:?}");
    for folder in [first, second] {
        std::fs::remove_dir(folder).expect("nothing was put into it");
    }
}
