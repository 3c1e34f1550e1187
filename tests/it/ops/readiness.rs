//! `/readyz` of each role, over HTTP: 200 with its servers, 503 without any one of those it needs (row F7), and while the process
//! ends. A probe costs the broker no connection.

use crate::support::fault_injection::port_of;
use crate::support::killable::KillableProcess;
use crate::support::slow_link::SlowLink;
use crate::support::world::{Answer, World, eventually, run, time_passes};
use seckill::admin::Readiness;
use seckill::config::ServerUrl;
use seckill::dev::ports::free_port;
use seckill::roles::{Role, Servers};
use seckill::runtime::Stopper;
use serde_json::Value;

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
fn a_role_is_ready_with_what_it_needs_and_not_ready_without_any_of_it() {
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
        world.finish().await;
    });
}

#[test]
fn probes_share_one_connection_to_the_broker() {
    run(async {
        let world = World::with(&[], &[]).await;
        let direct = world.settings.rabbitmq.url.expose();
        let link = SlowLink::before(port_of(direct), 0).await;
        let mut settings = (*world.settings).clone();
        settings.rabbitmq.url = ServerUrl::new(link.url(direct));
        let readiness = Readiness::new(Servers::new(&settings).unwrap(), vec![Role::Consumer], Stopper::new());
        for _ in 0..4 {
            let probes = readiness.probe().await;
            assert!(probes.iter().all(|probe| probe.ok), "{probes:?}");
            // An answer is used again for a second.
            time_passes(1_050).await;
        }
        assert_eq!(link.connections(), 1);
        drop(link);
        time_passes(1_050).await;
        let broker = async || readiness.probe().await.into_iter().find(|probe| probe.name == "rabbitmq").unwrap();
        assert!(!broker().await.ok, "a kept connection that is gone is no answer");
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
        let answer = ready().await;
        assert_eq!((answer.status, &answer.json["draining"]), (200, &Value::Bool(false)), "{answer:?}");
        stopper.stop();
        let answer = ready().await;
        assert_eq!((answer.status, &answer.json["draining"]), (503, &Value::Bool(true)), "{answer:?}");
        world.stop().await;
    });
}
