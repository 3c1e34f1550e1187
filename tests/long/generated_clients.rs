//! The shops of `examples/clients/`: their clients are generated of the documents of a running `seckill dev`, their types are checked,
//! each of them buys, pays and refunds there, and each receiver takes real deliveries and refuses changed ones.
//!
//! What generates is installed from npm and PyPI into `target/tmp/clients`, and stays there for the next run.

use crate::support::outside::hook_receiver::{HookCall, HookReceiver, SECRET, SOON, webhook};
use crate::support::processes::programs::{Folder, Program, seckill};
use crate::support::world::{Answer, QUICK, eventually, run_waiting};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Language, and the words that start its shop in its folder.
const SHOPS: [(&str, &[&str]); 3] =
    [("typescript", &["node", "dist/shop.js"]), ("python", &[".venv/bin/python", "shop.py"]), ("go", &["./shop"])];
/// Language, and the words that start its receiver.
const RECEIVERS: [(&str, &[&str]); 2] =
    [("typescript", &["node", "dist/webhooks.js"]), ("python", &[".venv/bin/python", "webhooks.py"])];
const EVENTS: [&str; 2] = ["order.paid", "order.refund_needed"];
/// Installing and generating for one language may take this long; a shop, a minute.
const BUILD_S: &str = "900";

/// Runs a program of the examples to its end.
fn finished(folder: &Path, seconds: &str, words: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.arg(seconds).args(words).current_dir(folder);
    let output = command.output().expect("timeout");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The examples as they are in the repository, where what was installed for them before may be.
fn examples() -> PathBuf {
    let (from, to) = (Path::new(env!("CARGO_MANIFEST_DIR")), Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients"));
    std::fs::create_dir_all(&to).expect("a folder");
    finished(from, "60", &["cp", "-R", "examples/clients/.", to.to_str().expect("a path")]);
    to
}

/// A port where nothing listens now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A receiver of the examples.
struct Receiver {
    program: Program,
    said: PathBuf,
    url: String,
}

impl Receiver {
    async fn start(folder: &Path, said: PathBuf, words: &[&str], port: u16) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" >\"$0\""]).arg(&said).args(words);
        command.args([SECRET, &port.to_string()]).current_dir(folder);
        let url = format!("http://127.0.0.1:{port}/");
        let mut receiver = Self { program: Program::run(said.parent().expect("a folder"), command), said, url };
        eventually("a receiver that listens", async || {
            receiver.program.must_run();
            receiver.said().contains(&receiver.url)
        })
        .await;
        receiver
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// What it answers to a delivery with this body.
    async fn answers(&self, call: &HookCall, body: &str) -> u16 {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut request = client.post(&self.url).body(body.to_owned());
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type"] {
            request = request.header(name, &call.headers[name]);
        }
        Answer::of(request).await.status
    }

    /// A delivery is taken as it came, and not when one digit of it is another.
    async fn refuses_what_was_changed(&self, call: &HookCall) {
        let body = String::from_utf8(call.body.clone()).expect("text");
        let amount = format!("\"amount\":{}", call.json()["data"]["amount"]);
        let changed = body.replace(&amount, &format!("{amount}0"));
        assert_ne!(changed, body);
        assert_eq!(
            (self.answers(call, &body).await, self.answers(call, &changed).await),
            (204, 400),
            "{}",
            self.said()
        );
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the receiver at {} said: {}", self.url, self.said());
        }
    }
}

/// A local stack with the webhooks of the receivers at these ports, and one of the test.
async fn stack(folder: &Path, ports: &[u16], hooks: &HookReceiver) -> (Program, PathBuf) {
    let mut config = webhook("captured", &hooks.url(), &[SECRET], &EVENTS);
    for ((language, _), port) in RECEIVERS.iter().zip(ports) {
        config.push_str(&webhook(language, &format!("http://127.0.0.1:{port}/"), &[SECRET], &EVENTS));
    }
    let (file, data) = (folder.join("webhooks.toml"), folder.join("stack"));
    std::fs::write(&file, config).expect("a file");
    let quick = QUICK.into_iter().filter(|set| !set.contains("secret")).chain(["admin.listen=127.0.0.1:0", SOON]);
    let mut args: Vec<&str> = quick.flat_map(|set| ["--set", set]).collect();
    args.extend(["--config", file.to_str().expect("a path"), "dev", "--data-dir", data.to_str().expect("a path")]);
    let mut dev = Program::run(folder, seckill(&args));
    let dev_json = data.join("dev.json");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    eventually("a stack that sells", async || {
        dev.must_run();
        let Ok(text) = std::fs::read(&dev_json) else { return false };
        let api = serde_json::from_slice::<Value>(&text).ok().and_then(|dev| Some(dev["api"].as_str()?.to_owned()));
        let Some(api) = api else { return false };
        let asked = client.get(format!("{api}/v1/sales")).send().await;
        asked.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    (dev, dev_json)
}

#[test]
fn shops_with_generated_clients_buy_pay_and_refund_and_their_receivers_verify_webhooks() {
    run_waiting(async {
        let (folder, examples, hooks) = (Folder::new("clients"), examples(), HookReceiver::start().await);
        let ports = RECEIVERS.map(|_| free_port());
        let (mut dev, dev_json) = stack(folder.path(), &ports, &hooks).await;
        let dev_json = dev_json.to_str().expect("a path").to_owned();
        let asyncapi = concat!("ASYNCAPI=", env!("CARGO_MANIFEST_DIR"), "/docs/asyncapi.yaml");
        finished(&examples, "60", &["env", asyncapi, "./documents.sh", &dev_json]);
        for (language, _) in SHOPS {
            finished(&examples, BUILD_S, &[&format!("./{language}/build.sh")]);
        }
        let mut receivers = Vec::new();
        for ((language, words), port) in RECEIVERS.iter().zip(ports) {
            let said = folder.path().join(format!("{language}.out"));
            receivers.push(Receiver::start(&examples.join(language), said, words, port).await);
        }
        let mut bought = Vec::new();
        for (language, words) in SHOPS {
            let buyer = format!("buyer-of-{language}");
            let words = [words, &[&dev_json, &buyer]].concat();
            let said = finished(&examples.join(language), "60", &words);
            let done: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
            assert_eq!(done["states"], json!(["UNPAID", "PAID", "CANCELLED", "REFUNDED"]), "{language}: {done}");
            bought.push(done["request_id"].as_str().expect("an id").to_owned());
        }
        for receiver in &mut receivers {
            eventually("every event of every shop", async || {
                receiver.program.must_run();
                let said = receiver.said();
                bought.iter().all(|id| EVENTS.iter().all(|event| said.contains(&format!("{event} {id}"))))
            })
            .await;
            assert!(!receiver.said().contains("refused"), "{}", receiver.said());
        }
        eventually("the same deliveries here", async || hooks.calls().len() >= EVENTS.len() * bought.len()).await;
        for call in hooks.calls() {
            for receiver in &receivers {
                receiver.refuses_what_was_changed(&call).await;
            }
        }
        assert_eq!(dev.terminate().await.0, Some(0), "{}", dev.stderr());
    });
}
