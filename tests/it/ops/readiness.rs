//! `/readyz` of each role, over HTTP: 503 until each of its servers was reached (row F7), and while the process ends; 200 with a
//! warning when one goes away later, and in time for the shipped balancers while servers are silent. A probe costs the broker no
//! connection.

use crate::support::links::link::Link;
use crate::support::processes::killable::KillableProcess;
use crate::support::world::fault_injection::port_of;
use crate::support::world::{Answer, World, eventually, run, time_passes};
use seckill::admin::Readiness;
use seckill::config::ServerUrl;
use seckill::dev::ports::free_port;
use seckill::roles::{Role, Servers};
use seckill::runtime::Stopper;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// What each role needs, as README says it.
const NEEDS: [(&str, &[&str]); 4] = [
    ("api", &["redis", "mysql"]),
    ("relay", &["redis", "rabbitmq"]),
    ("consumer", &["rabbitmq", "mysql"]),
    ("reconcile", &["redis", "mysql"]),
];

async fn readiness(world: &World, process: &KillableProcess) -> (u16, Vec<(String, bool)>) {
    let mut last = None;
    eventually("an answer of /readyz", async || {
        let request = world.http.get(format!("http://{}/readyz", process.admin()));
        last = match request.try_clone().expect("no body").send().await {
            Ok(_) => Some(Answer::of(request).await),
            Err(_) => None,
        };
        last.is_some()
    })
    .await;
    let answer = last.expect("it answered");
    let need = |need: &Value| (need["name"].as_str().expect("a name").to_owned(), need["ok"].as_bool().expect("ok"));
    (answer.status, answer.json["needs"].as_array().expect("needs").iter().map(need).collect())
}

#[test]
fn a_role_is_ready_when_it_has_reached_what_it_needs() {
    run(async {
        let world = World::with(&[], &[]).await;
        for (role, needs) in NEEDS {
            let whole = world.process(role, "", &[]);
            let all: Vec<(String, bool)> = needs.iter().map(|need| ((*need).to_owned(), true)).collect();
            eventually("a ready role", async || readiness(&world, &whole).await == (200, all.clone())).await;
            whole.kill();
            for missing in needs {
                let (scheme, path) = match *missing {
                    "redis" => ("redis", ""),
                    "rabbitmq" => ("amqp", ""),
                    _ => ("mysql", "/seckill"),
                };
                let no_server = format!("{missing}.url={scheme}://127.0.0.1:{}{path}", free_port().expect("a port"));
                let crippled = world.process(role, "", &[&no_server]);
                let without = |(name, _): &(String, bool)| (name.clone(), name != missing);
                let expected = (503, all.iter().map(without).collect::<Vec<_>>());
                let what = format!("{role} not ready without {missing} only");
                eventually(&what, async || readiness(&world, &crippled).await == expected).await;
                crippled.kill();
            }
        }
        // Deployments give the relay no address of a database.
        let nowhere = format!("mysql.url=mysql://127.0.0.1:{}/seckill", free_port().expect("a port"));
        let relay = world.process("relay", "", &[&nowhere]);
        eventually("a relay without a database", async || readiness(&world, &relay).await.0 == 200).await;
        relay.kill();
        world.finish().await;
    });
}

/// A server that was there and is silent is no reason to take the process out of service: the others would all go with it. Silence
/// is what a vanished host is; a connection that is refused is noticed at once, and would show less.
#[test]
fn a_shared_server_that_goes_away_leaves_every_role_ready_and_the_api_sells_what_it_may() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("away", 100, None).await;
        let (mysql, amqp) = (world.settings.mysql.url.expose(), world.settings.rabbitmq.url.expose());
        let (database, broker) = (Link::before(port_of(mysql)).await, Link::before(port_of(amqp)).await);
        let (mysql, amqp) = (database.url(mysql), broker.url(amqp));
        let sets = [format!("mysql.url={mysql}?prefer_socket=false"), format!("rabbitmq.url={amqp}")];
        let sets = sets.each_ref().map(String::as_str);
        let processes = NEEDS.map(|(role, needs)| (world.process(role, "", &sets), needs));
        for (process, needs) in &processes {
            let all: Vec<(String, bool)> = needs.iter().map(|need| ((*need).to_owned(), true)).collect();
            eventually("a ready role", async || readiness(&world, process).await == (200, all.clone())).await;
        }
        let (api, _) = &processes[0];
        assert_eq!(world.buy_at(api, sale.as_str(), "alice", None).await, Some(202));
        database.loses_answers(true);
        broker.loses_answers(true);
        for (process, needs) in &processes {
            let left: Vec<(String, bool)> = needs.iter().map(|need| ((*need).to_owned(), *need == "redis")).collect();
            eventually("a ready role without them", async || readiness(&world, process).await == (200, left.clone()))
                .await;
            let answer = Answer::of(world.http.get(format!("http://{}/readyz", process.admin()))).await;
            let warnings = answer.json["warnings"].as_array().expect("warnings");
            assert_eq!(warnings.len(), needs.iter().filter(|need| **need != "redis").count(), "{answer:?}");
        }
        assert_eq!(world.buy_at(api, sale.as_str(), "bob", None).await, Some(202), "the database is not needed for it");
        eventually("a metric of it", async || {
            api.metric("seckill_server_answers{server=\"mysql\"}").await == Some(0.0)
        })
        .await;
        drop(processes);
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer], |_| {});
        eventually("the orders", async || world.orders(&sale).await == 2).await;
        rest.stop().await;
        world.finish().await;
    });
}

/// How long a shipped haproxy waits for the answer of a check, and how many late ones in a row take an api out of service.
fn shipped_check(file: &str) -> (Duration, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(path).expect("a shipped file");
    let word_after = |words: &str| {
        let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("{file} has no {words}"));
        rest.split_whitespace().next().expect("a value")
    };
    let limit = word_after("timeout check ");
    let limit_ms: u64 = match limit.strip_suffix("ms") {
        Some(ms) => ms.parse().expect("milliseconds"),
        None => 1_000 * limit.trim_end_matches('s').parse::<u64>().expect("seconds"),
    };
    (Duration::from_millis(limit_ms), word_after("fall ").parse().expect("a count"))
}

/// All of a host is silent: its Redis and its database at once. Every other host's api must stay in service behind the balancer.
#[test]
fn behind_a_shipped_balancer_an_api_stays_in_service_while_two_servers_are_silent() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (redis, mysql) = (world.settings.redis.url.expose(), world.settings.mysql.url.expose());
        let (store, database) = (Link::before(port_of(redis)).await, Link::before(port_of(mysql)).await);
        let sets = [
            format!("redis.url={}", store.url(redis)),
            format!("mysql.url={}?prefer_socket=false", database.url(mysql)),
        ];
        let api = world.process("api", "", &sets.each_ref().map(String::as_str));
        let both = |ok: bool| (200, vec![("redis".to_owned(), ok), ("mysql".to_owned(), ok)]);
        eventually("a ready api", async || readiness(&world, &api).await == both(true)).await;
        store.loses_answers(true);
        database.loses_answers(true);
        for file in ["deploy/three-hosts/haproxy.cfg", "deploy/cells/haproxy.cfg"] {
            let (limit, fall) = shipped_check(file);
            let balancer = reqwest::Client::builder().no_proxy().timeout(limit).build().expect("a client");
            let (mut late, mut silent) = (0, 0);
            // From before the silence is noticed until well after it.
            for check in 0.. {
                let answer = balancer.get(format!("http://{}/readyz", api.admin())).send().await;
                let body: Option<Value> = match answer {
                    Ok(answer) => {
                        assert_eq!(answer.status(), 200, "{file}: check {check}");
                        answer.json().await.ok()
                    }
                    Err(error) => {
                        assert!(error.is_timeout(), "{file}: {error}");
                        None
                    }
                };
                late = if body.is_some() { 0 } else { late + 1 };
                assert!(late < fall, "{file}: {fall} checks in a row had no answer within {limit:?}: out of service");
                let Some(body) = body else { continue };
                let needs = body["needs"].as_array().expect("needs");
                silent += usize::from(needs.iter().all(|need| need["ok"] == false));
                if silent >= 3 {
                    assert!(body["age_ms"].as_u64().is_some_and(|age_ms| age_ms < 10_000), "{body}");
                    break;
                }
                time_passes(300).await;
            }
        }
        store.loses_answers(false);
        database.loses_answers(false);
        eventually("they answer again", async || readiness(&world, &api).await == both(true)).await;
        api.kill();
        world.finish().await;
    });
}

#[test]
fn probes_share_one_connection_to_the_broker() {
    run(async {
        let world = World::with(&[], &[]).await;
        let direct = world.settings.rabbitmq.url.expose();
        let link = Link::before(port_of(direct)).await;
        let mut settings = (*world.settings).clone();
        settings.rabbitmq.url = ServerUrl::new(link.url(direct));
        let readiness = Readiness::new(&Servers::new(&settings).unwrap(), &[Role::Consumer], Stopper::new());
        let broker = || readiness.needs().into_iter().find(|need| need.name == "rabbitmq").expect("it is needed");
        eventually("the broker answers", async || broker().ok).await;
        // Several probes, one a second.
        time_passes(4_000).await;
        assert!(broker().ok && link.trips() > 4, "{:?} after {} round trips", broker(), link.trips());
        assert_eq!(link.connections(), 1);
        drop(link);
        eventually("a kept connection that is gone is no answer", async || !broker().ok).await;
        world.stop().await;
    });
}

#[test]
fn a_process_that_ends_is_not_ready() {
    run(async {
        let world = World::with(&[], &[]).await;
        let stopper = Stopper::new();
        let admin = world.admin_port_until(&stopper);
        let ready = async || Answer::of(world.http.get(format!("{}/readyz", admin.url))).await;
        eventually("it is ready", async || ready().await.status == 200).await;
        assert_eq!(ready().await.json["draining"], Value::Bool(false));
        stopper.stop();
        let answer = ready().await;
        assert_eq!((answer.status, &answer.json["draining"]), (503, &Value::Bool(true)), "{answer:?}");
        world.stop().await;
    });
}
