//! deploy/compose.yaml as a shop runs it: a sale goes on while each container dies, and after a restart and a new creation of all
//! of them everything that was accepted is there.

use crate::services::{ROLES, SERVERS, Services};
use crate::support::basics::answer::Answer;
use crate::support::processes::programs::signal;
use crate::support::world::{eventually, pause, run};
use seckill::config::Secret;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SALE: &str = "compose";
const STOCK: &str = "100000";
/// Orders that are accepted before and after each kill.
const ORDERS: usize = 30;
/// p5_reconcile.window_ms and one interval, with room: a consumer that dies between the ack and the mark leaves the mark to P5.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(400);

/// Buyers one after the other, each with a purchase token, who repeat until they have an answer.
struct Shop {
    http: reqwest::Client,
    api: String,
    issuer: TokenIssuer,
    accepted: Mutex<Vec<(String, String)>>,
    closed: AtomicBool,
}

impl Shop {
    fn new(services: &Services) -> Arc<Self> {
        let secret = Secret::new(services.access_secret.clone());
        Arc::new(Self {
            http: reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(40)).build().unwrap(),
            api: services.api.clone(),
            issuer: TokenIssuer::new(&secret, "seckill", "seckill").unwrap(),
            accepted: Mutex::default(),
            closed: AtomicBool::new(false),
        })
    }

    fn request(&self, method: reqwest::Method, path: &str, user: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/v1/sales/{SALE}{path}", self.api);
        self.http.request(method, url).bearer_auth(self.issuer.sign(user, 3600).unwrap())
    }

    /// Asks again until the answer is `wanted`: a server that is away answers nothing, or 5xx.
    async fn until(&self, wanted: u16, ask: impl Fn() -> reqwest::RequestBuilder) -> Answer {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let (status, body) = match ask().send().await {
                Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap_or_default()),
                Err(_) => (0, String::new()),
            };
            if status == wanted {
                let json = serde_json::from_str(&body).unwrap_or(Value::Null);
                return Answer { status, headers: reqwest::header::HeaderMap::new(), body, json };
            }
            assert!(status == 0 || status >= 500 || status == 429 || status == 423, "{status}: {body}");
            assert!(Instant::now() < deadline, "never {wanted}: {status} {body}");
            pause().await;
        }
    }

    async fn one_buys(&self, user: &str) {
        let token = self.until(201, || self.request(reqwest::Method::POST, "/tokens", user)).await.text("token");
        let buy = || {
            let request = self.request(reqwest::Method::POST, "/orders", user).header("Idempotency-Key", &token);
            request.json(&json!({ "quantity": 1 }))
        };
        let id = self.until(202, buy).await.text("request_id");
        self.accepted.lock().unwrap().push((user.to_owned(), id));
    }

    fn count(&self) -> usize {
        self.accepted.lock().unwrap().len()
    }

    async fn until_sold(&self, count: usize) {
        eventually(&format!("{count} orders are accepted"), async || self.count() >= count).await;
    }

    /// Every accepted order is confirmed. With the settings of production P5 takes care of a request that its message lost only
    /// when it is older than p5_reconcile.window_ms; an order that waits for a minute is shown, so that the reason is seen.
    async fn all_confirmed(&self, services: &Services) {
        let accepted = self.accepted.lock().unwrap().clone();
        for (user, id) in accepted {
            let path = format!("/orders/{id}?wait=5");
            let (begun, mut shown) = (Instant::now(), false);
            while self.until(200, || self.request(reqwest::Method::GET, &path, &user)).await.text("status")
                != "CONFIRMED"
            {
                assert!(begun.elapsed() < CONFIRMED_WITHIN, "{id} of {user} is not confirmed");
                if begun.elapsed() > Duration::from_secs(60) && !shown {
                    shown = true;
                    report(&format!(
                        "{id} is late: {}",
                        services.seckill("reconcile", &["order", "show", &id, "--json"]).out
                    ));
                }
            }
            if shown {
                report(&format!("{id} was confirmed after {:.0} s", begun.elapsed().as_secs_f64()));
            }
        }
    }
}

/// A line of the run's log.
fn report(line: &str) {
    eprintln!("compose: {line}");
}

#[test]
fn a_sale_survives_the_death_of_each_container_and_a_restart_of_all() {
    run(async {
        let services = Services::new();
        services.up().await;
        report("all services are up");
        uses_the_production_settings(&services).await;
        let shop = Shop::new(&services);
        let window = ["--starts-at", "2020-01-01T10:00:00Z", "--ends-at", "2099-01-01T12:00:00Z", "--warm"];
        let sale = ["sale", "create", "--id", SALE, "--product", "p", "--title", "t", "--stock", STOCK, "--limit", "1"];
        services.seckill("api", &[&sale[..], &window].concat()).exits(0);
        let crowd: Vec<_> = (0..4)
            .map(|row| {
                let shop = shop.clone();
                tokio::spawn(async move {
                    for n in 0.. {
                        if shop.closed.load(Ordering::Relaxed) {
                            break;
                        }
                        shop.one_buys(&format!("buyer-{row}-{n}")).await;
                        pause().await;
                    }
                })
            })
            .collect();
        for service in ROLES.into_iter().chain(SERVERS) {
            dies_and_comes_back(&services, &shop, service).await;
        }
        shop.closed.store(true, Ordering::Relaxed);
        for row in crowd {
            row.await.unwrap();
        }
        keeps_everything(&services, &shop, "after the deaths").await;
        services.compose(&["restart"]);
        services.serves().await;
        keeps_everything(&services, &shop, "after a restart of all").await;
        ends_in_order(&services);
        services.compose(&["down"]);
        services.up().await;
        assert_eq!(node_of_the_relay(&services), "relay", "the name stays");
        keeps_everything(&services, &shop, "after new containers on the old volumes").await;
        shop.one_buys("the-last").await;
        keeps_everything(&services, &shop, "and it goes on selling").await;
    });
}

/// SIGKILL to the service's first process, behind the back of the engine, which starts it again.
async fn dies_and_comes_back(services: &Services, shop: &Shop, service: &str) {
    shop.until_sold(shop.count() + ORDERS).await;
    let pid = services.pid(service);
    signal(pid, libc::SIGKILL);
    let died = Instant::now();
    eventually(&format!("{service} runs again"), async || ![0, pid].contains(&services.pid(service))).await;
    let again = died.elapsed();
    shop.until_sold(shop.count() + ORDERS).await;
    let (again, sells) = (again.as_secs_f64(), died.elapsed().as_secs_f64());
    report(&format!(
        "{service} killed: runs again after {again:.1} s, {ORDERS} more orders after {sells:.1} s, {} in all",
        shop.count()
    ));
}

async fn keeps_everything(services: &Services, shop: &Shop, when: &str) {
    shop.all_confirmed(services).await;
    let mut audit = Value::Null;
    eventually("the audit finds nothing", async || {
        let answer = services.seckill("reconcile", &["audit", "--sale", SALE, "--now", "--json"]);
        audit = serde_json::from_str(&answer.out).unwrap_or_default();
        answer.code == Some(0)
    })
    .await;
    let orders = audit.pointer("/0/counted/ordered").or_else(|| audit.pointer("/sales/0/counted/ordered"));
    assert_eq!(orders, Some(&json!(shop.count())), "{audit:#}");
    report(&format!("{when}: {} orders accepted, as many confirmed, the audit is consistent", shop.count()));
}

fn node_of_the_relay(services: &Services) -> String {
    crate::engine::inspected(&services.container("relay"), "{{.Config.Hostname}}")
}

/// `stop` gives the roles time to drain.
fn ends_in_order(services: &Services) {
    services.compose(&["stop"]);
    for role in ROLES {
        let code = crate::engine::inspected(&services.container(role), "{{.State.ExitCode}}");
        assert_eq!(code, "0", "{role}: {}", services.log(role, "20"));
    }
    report("stopped: every role ended with 0");
}

/// config/production.toml: what each role reads, and what can be seen of it from outside.
async fn uses_the_production_settings(services: &Services) {
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/production.toml")).unwrap();
    let file: toml::Table = file.parse().unwrap();
    for role in ROLES {
        let shown = services.seckill(role, &["config", "show", "--json"]).exits(0).json();
        for (section, keys) in &file {
            for (key, value) in keys.as_table().unwrap().iter().filter(|(key, _)| *key != "listen") {
                let value = serde_json::to_value(value).unwrap();
                assert_eq!(shown[section][key], value, "{role}: {section}.{key}");
            }
        }
        assert_eq!(shown["redis"]["durability"], "strict");
        let of = |section: &str, key: &str| format!("{section}.{key} = {}", shown[section][key]);
        let settings =
            [of("rabbitmq", "queues"), of("mysql", "pool_max"), of("p1_entry", "user_rate_per_s")].join(", ");
        report(&format!("{role} has {settings}"));
    }
    let pipeline = format!("{}/admin/v1/pipeline", services.admin);
    let answer = Answer::of(reqwest::Client::new().get(pipeline).bearer_auth(&services.admin_token)).await;
    for queue in ["seckill.orders.0", "seckill.orders.3"] {
        assert!(answer.body.contains(queue), "{queue}: {}", answer.body);
    }
    assert!(!answer.body.contains("seckill.orders.4"), "{}", answer.body);
    one_buyer_is_slowed_down(services).await;
}

/// `p1_entry.user_rate_per_s`: the same buyer, many times at once.
async fn one_buyer_is_slowed_down(services: &Services) {
    let shop = Shop::new(services);
    let sale = ["sale", "create", "--id", "rate", "--product", "p", "--title", "t", "--stock", "9", "--warm"];
    let window = ["--starts-at", "2020-01-01T10:00:00Z", "--ends-at", "2099-01-01T12:00:00Z"];
    services.seckill("api", &[&sale[..], &window].concat()).exits(0);
    let url = format!("{}/v1/sales/rate/orders", services.api);
    let token = shop.issuer.sign("hammer", 3600).unwrap();
    let many = (0..60).map(|_| Answer::of(shop.http.post(&url).bearer_auth(&token).json(&json!({ "quantity": 1 }))));
    let answers = futures::future::join_all(many).await;
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert!(refused > 0, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    report(&format!("one buyer who asked 60 times at once: {refused} were refused with 429"));
}
