//! The operators' port of a world: the admin server in this process, and calls to it.

use super::{World, eventually};
use crate::support::basics::answer::Answer;
use crate::support::basics::answer_schema::{misfits, of_answer};
use reqwest::Method;
use seckill::admin::{self, Admin, Readiness, ServerProbe};
use seckill::config::Secret;
use seckill::roles::Role;
use seckill::runtime::Stopper;
use serde_json::Value;
use std::net::TcpListener;
use std::sync::LazyLock;

/// The token of every test's admin port.
pub const TOKEN: &str = "operators-token-of-the-tests-of-32-bytes-and-more";

/// The tokens of [`named_tokens`]: of the roles view, operate and money.
pub const VIEWER: &str = "viewers-token-of-the-tests-of-32-bytes-and-more";
pub const OPERATOR: &str = "li-weis-token-of-the-tests-of-32-bytes-and-more";
pub const SHOP: &str = "the-shops-token-of-the-tests-of-32-bytes-and-more";

/// The path of a route with ids that nothing has.
pub fn with_any_ids(template: &str) -> String {
    template
        .replace("{sale_id}", "any")
        .replace("{drop_id}", "any")
        .replace("{request_id}", "7")
        .replace("{delivery_id}", "7")
}

/// SHA-256 as the configuration has it.
pub fn digest(token: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A token for each role: `viewer`, `li` and `shop`.
pub fn named_tokens() -> String {
    let (viewer, operator, shop) = (digest(VIEWER), digest(OPERATOR), digest(SHOP));
    format!("admin.tokens=viewer:view:{viewer},li:operate:{operator},shop:money:{shop}")
}

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(admin::document()).expect("JSON"));

/// The path of the document that a call's path is one of; one without a variable goes first, as in the server.
fn template(path: &str) -> Option<&'static str> {
    let called = format!("/admin/v1{}", path.split('?').next().unwrap_or(path));
    let fits = |template: &str| {
        let (mine, its): (Vec<&str>, Vec<&str>) = (called.split('/').collect(), template.split('/').collect());
        mine.len() == its.len() && mine.iter().zip(its).all(|(mine, its)| *mine == its || its.starts_with('{'))
    };
    let templates = DOCUMENT["paths"].as_object().expect("paths").keys().map(String::as_str);
    templates.filter(|template| fits(template)).min_by_key(|template| template.contains('{'))
}

/// The answer, after it was held against the document: every JSON that a test gets with 200 is as the document says.
fn held(method: &str, path: &str, answer: Answer) -> Answer {
    if answer.status == 200 && answer.header("content-type") == "application/json" {
        let template = template(path).unwrap_or_else(|| panic!("{path} is not in the document"));
        let found = misfits(&DOCUMENT, of_answer(&DOCUMENT, method, template, 200), &answer.json);
        assert!(found.is_empty(), "{method} {template}: {found:#?}: {:#}", answer.json);
    }
    answer
}

/// An admin server, until it is dropped.
pub struct AdminPort {
    /// `http://127.0.0.1:port`.
    pub url: String,
    stopper: Stopper,
}

impl Drop for AdminPort {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

impl World {
    /// Serves the admin port of a process that runs all roles.
    pub fn admin_port(&self) -> AdminPort {
        self.admin_port_until(&Stopper::new())
    }

    /// The same, of a process that ends when `process` is stopped.
    pub fn admin_port_until(&self, process: &Stopper) -> AdminPort {
        let mut settings = (*self.settings).clone();
        settings.admin.token = Secret::new(TOKEN.to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (url, stopper) = (format!("http://{}", listener.local_addr().expect("an address")), Stopper::new());
        let admin = Admin::new(&settings, &self.servers, &Role::ALL, process);
        tokio::spawn(admin::serve(admin, listener, stopper.clone()).expect("the admin server"));
        AdminPort { url, stopper }
    }
}

impl AdminPort {
    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        client.request(method, format!("{}/admin/v1{path}", self.url))
    }

    /// A read, with the token.
    pub async fn get(&self, path: &str) -> Answer {
        held("get", path, Answer::of(self.request(Method::GET, path).bearer_auth(TOKEN)).await)
    }

    /// A read, with the token, of a client that prefers this language.
    pub async fn get_in(&self, language: &str, path: &str) -> Answer {
        let request = self.request(Method::GET, path).bearer_auth(TOKEN);
        Answer::of(request.header("accept-language", language)).await
    }

    /// A write, with the token.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        held("post", path, Answer::of(self.request(Method::POST, path).bearer_auth(TOKEN).json(&body)).await)
    }

    /// A write, with the token, of a client that prefers this language.
    pub async fn post_in(&self, language: &str, path: &str, body: Value) -> Answer {
        let request = self.request(Method::POST, path).bearer_auth(TOKEN).json(&body);
        Answer::of(request.header("accept-language", language)).await
    }

    /// Anything, with any token.
    pub async fn call(&self, method: &str, path: &str, token: Option<&str>, body: Option<(&str, &str)>) -> Answer {
        let mut request = self.request(method.to_uppercase().parse().expect("a method"), path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some((kind, body)) = body {
            request = request.header("content-type", kind).body(body.to_owned());
        }
        Answer::of(request).await
    }
}

impl World {
    /// What `/readyz` of a process with this role finds first.
    pub async fn probed(&self, role: Role) -> Vec<ServerProbe> {
        let readiness = Readiness::new(&self.servers, &[role], Stopper::new());
        let mut needs = Vec::new();
        eventually("a result of each probe", async || {
            needs = readiness.needs();
            needs.iter().all(|need| need.age_ms.is_some())
        })
        .await;
        needs
    }
}
