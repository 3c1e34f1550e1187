//! A private Prometheus that scrapes real processes and judges them by the shipped alert rules.
//!
//! One thing about the rules is changed: their time. [`shortened`] makes a second of every minute, so that "for five
//! minutes" takes five seconds. Thresholds, expressions and labels are those of `deploy/prometheus/alerts.yml`.

use crate::support::processes::killable::KillableProcess;
use crate::support::processes::programs::Folder;
use crate::support::world::{World, eventually};
use seckill::dev::Child;
use seckill::dev::ports::free_port;
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

pub const RULES: &str = "deploy/prometheus/alerts.yml";
/// A window of two minutes, the shortest in the rules, becomes two seconds: four reads.
pub const CONFIG: &str = "\
global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }
rule_files: [alerts.yml]
scrape_configs:
  - job_name: seckill
    file_sd_configs: [{ files: [targets.json], refresh_interval: 1s }]
";

pub fn shipped() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(RULES)).expect("the rules")
}

/// The rules with every duration divided by sixty: what follows `for: `, `offset ` and `[`, and nothing else.
pub fn shortened(rules: &str) -> String {
    let shorter = |text: String, opening: &str| -> String {
        let mut parts = text.split(opening);
        let mut out = parts.next().expect("a part").to_owned();
        for part in parts {
            let (digits, rest) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len()));
            let minutes = match (digits.parse::<u32>(), rest.chars().next()) {
                (Ok(minutes), Some('m')) => Some(minutes),
                (Ok(hours), Some('h')) => Some(hours * 60),
                _ => None,
            };
            let part = minutes.map_or(part.to_owned(), |minutes| format!("{minutes}s{}", &rest[1..]));
            out.push_str(opening);
            out.push_str(&part);
        }
        out
    };
    ["for: ", "offset ", "["].into_iter().fold(rules.to_owned(), shorter)
}

/// A running Prometheus; it ends with the value.
pub struct Prometheus {
    url: String,
    folder: Folder,
    http: reqwest::Client,
    _child: Child,
}

impl Prometheus {
    /// Starts one that scrapes these processes, and waits until it has seen all of them.
    pub async fn over(name: &str, processes: &[&KillableProcess]) -> Self {
        let (folder, port) = (Folder::new(name), free_port().expect("a port"));
        std::fs::write(folder.path().join("alerts.yml"), shortened(&shipped())).expect("the rules");
        std::fs::write(folder.path().join("prometheus.yml"), CONFIG).expect("a configuration");
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new("prometheus");
        command.current_dir(folder.path()).args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.args([&format!("--web.listen-address=127.0.0.1:{port}"), "--log.level=warn"]);
        let child = Child::spawn("prometheus", command, &folder.path().join("log")).await;
        let child = child.expect("prometheus is not installed: run scripts/install-deps.sh");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let tower = Self { url, folder, http, _child: child };
        tower.scrape(processes).await;
        tower
    }

    /// Scrapes these processes from now on, and waits until all of them have been seen.
    pub async fn scrape(&self, processes: &[&KillableProcess]) {
        let targets: Vec<&str> = processes.iter().map(|process| process.admin()).collect();
        // Renamed into its place: a half-written file would be read as no targets at all.
        let (new, file) = (self.folder.path().join("targets.new"), self.folder.path().join("targets.json"));
        std::fs::write(&new, json!([{ "targets": targets }]).to_string()).expect("the targets");
        std::fs::rename(new, file).expect("the targets");
        let up = format!("sum(up{{job=\"seckill\",instance=~\"{}\"}})", targets.join("|"));
        eventually("every process is scraped", async || self.value(&up).await == Some(targets.len() as f64)).await;
    }

    /// The first value of a query; `None` without one.
    pub async fn value(&self, query: &str) -> Option<f64> {
        let address = reqwest::Url::parse_with_params(&format!("{}/api/v1/query", self.url), [("query", query)]);
        let answer: Value = self.http.get(address.expect("an address")).send().await.ok()?.json().await.ok()?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }

    /// Names of the alerts that fire.
    pub async fn firing(&self) -> Vec<String> {
        let answer = self.http.get(format!("{}/api/v1/alerts", self.url)).send().await.expect("prometheus answers");
        let answer: Value = answer.json().await.expect("an answer");
        let alerts = answer["data"]["alerts"].as_array().cloned().expect("a list of alerts");
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.filter_map(|alert| Some(alert["labels"]["alertname"].as_str()?.to_owned())).collect()
    }

    /// The moment before a trouble: none of the alerts that it has to raise may fire yet.
    pub async fn before(&self, trouble: &'static str, alerts: &'static [&'static str]) -> Trouble<'_> {
        let firing = self.firing().await;
        assert!(!alerts.iter().any(|alert| firing.iter().any(|name| name == alert)), "{trouble}: {firing:?} already");
        Trouble { tower: self, trouble, alerts, since: Cell::new(Instant::now()) }
    }
}

/// A trouble and the alerts that it raises.
pub struct Trouble<'a> {
    tower: &'a Prometheus,
    trouble: &'static str,
    alerts: &'static [&'static str],
    since: Cell<Instant>,
}

impl Trouble<'_> {
    /// Waits until every one of the alerts fires, and says how long each took.
    pub async fn fires(&self) {
        let mut silent = self.alerts.to_vec();
        eventually(&format!("{:?} fire: {}", self.alerts, self.trouble), async || {
            let firing = self.tower.firing().await;
            silent.retain(|alert| {
                let fires = firing.iter().any(|name| name == alert);
                if fires {
                    eprintln!("{alert}: caused by {}, fired after {:.1} s", self.trouble, self.seconds());
                }
                !fires
            });
            silent.is_empty()
        })
        .await;
    }

    /// The same while `harm` goes on.
    pub async fn fires_during(&self, harm: impl Future<Output = ()>) {
        tokio::select! {
            () = harm => panic!("{}: over before {:?} fired", self.trouble, self.alerts),
            () = self.fires() => {}
        }
    }

    /// The trouble is over: waits until none of its alerts fires.
    pub async fn resolves(&self) {
        self.since.set(Instant::now());
        eventually(&format!("{:?} are over: {}", self.alerts, self.trouble), async || {
            let firing = self.tower.firing().await;
            !self.alerts.iter().any(|alert| firing.iter().any(|name| name == alert))
        })
        .await;
        eprintln!("{}: over {:.1} s after the end of {}", self.alerts.join(", "), self.seconds(), self.trouble);
    }

    fn seconds(&self) -> f64 {
        self.since.get().elapsed().as_secs_f64()
    }
}

impl World {
    /// An api role as a process of its own; this world's requests go to it.
    pub async fn api_process(&mut self, set: &[&str]) -> KillableProcess {
        let api = self.process("api", "", set);
        self.api = api.api_url();
        api.serves_buyers().await;
        api
    }
}
