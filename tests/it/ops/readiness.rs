//! `/readyz` of each role, over HTTP: 200 with its servers, 503 without any one of those it needs (row F7).

use crate::support::killable::KillableProcess;
use crate::support::world::{Answer, World, eventually, run};
use seckill::dev::ports::free_port;
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
