//! Every operation of the admin API, for every role and every spelling of its path (S2).

use crate::support::buyers::raw_http::send_on;
use crate::support::world::admin_port::{AdminPort, OPERATOR, SHOP, TOKEN, VIEWER, named_tokens, with_any_ids};
use crate::support::world::{World, run};
use seckill::admin::document;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::net::TcpStream;

/// An operation of the document, on things that do not exist.
struct OpenOperation {
    method: String,
    path: String,
    roles: BTreeSet<String>,
}

fn operations() -> Vec<OpenOperation> {
    let document = serde_json::to_value(document()).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let calls = paths.flat_map(|(path, calls)| calls.as_object().unwrap().iter().map(move |call| (path, call)));
    let of = |(path, (method, call)): (&String, (&String, &Value))| {
        let roles = call["x-role"].as_array().unwrap_or_else(|| panic!("{method} {path} declares no role"));
        let path = with_any_ids(path);
        let roles = roles.iter().map(|role| role.as_str().unwrap().to_owned()).collect();
        OpenOperation { method: method.to_uppercase(), path, roles }
    };
    calls.map(of).collect()
}

/// Each token with the role that it has; `admin` is every role.
const TOKENS: [(&str, &str); 4] = [("view", VIEWER), ("operate", OPERATOR), ("money", SHOP), ("admin", TOKEN)];

impl OpenOperation {
    fn is_for(&self, role: &str) -> bool {
        role == "admin" || self.roles.contains(role)
    }

    /// Other spellings of the path, which some router, proxy or file system takes for the same.
    fn spellings(&self) -> Vec<String> {
        let segments: Vec<&str> = self.path.trim_start_matches('/').split('/').collect();
        let last = segments.len() - 1;
        let encoded = |which: usize, percent: &str, upper: bool| {
            let mut spelt: Vec<String> = segments.iter().map(|segment| (*segment).to_owned()).collect();
            let letter = spelt[which].pop().unwrap() as u32;
            let hex = if upper { format!("{letter:02X}") } else { format!("{letter:02x}") };
            spelt[which].push_str(&format!("{percent}{hex}"));
            format!("/{}", spelt.join("/"))
        };
        let (head, tail) = self.path.rsplit_once('/').unwrap();
        let mut all: Vec<String> = (0..=last).map(|which| encoded(which, "%", which % 2 == 0)).collect();
        all.extend([encoded(last, "%", false), encoded(last, "%", true), encoded(last, "%25", false)]);
        for between in ["%2F", "%2f", "//", "/./", "/x/../", "/%2e/", ";x=1/"] {
            all.push(format!("{head}{between}{tail}"));
        }
        all.extend([format!("{}/", self.path), format!("{}%00", self.path), format!("{}%20", self.path)]);
        all.push(format!("{}/{}", head.to_uppercase(), tail));
        all
    }
}

async fn raw(admin: &AdminPort, method: &str, path: &str, token: Option<&str>) -> u16 {
    let mut stream = TcpStream::connect(admin.url.strip_prefix("http://").unwrap()).await.unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: seckill\r\n{token}");
    let body = "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    send_on(&mut stream, format!("{head}{body}").as_bytes()).await.status
}

#[test]
fn each_operation_is_open_to_the_roles_that_its_document_names_and_to_no_other() {
    run(async {
        let world = World::with(&[], &[&named_tokens()]).await;
        let admin = world.admin_port();
        let all = operations();
        assert!(all.len() > 35 && all.iter().any(|one| one.roles == BTreeSet::from(["money".to_owned()])));
        for one in &all {
            let (method, path) = (one.method.to_lowercase(), one.path.strip_prefix("/admin/v1").unwrap());
            let body = (method == "post").then_some(("application/json", "{}"));
            assert_eq!(one.is_for("view"), method == "get", "{method} {path}: all read, and no viewer writes");
            for (role, token) in TOKENS {
                let answer = admin.call(&method, path, Some(token), body).await;
                let expected = if one.is_for(role) { "another" } else { "FORBIDDEN" };
                let found = if [401, 403].contains(&answer.status) { answer.code() } else { "another".to_owned() };
                assert_eq!(found, expected, "{role}: {method} {path}: {answer:?}");
            }
            assert_eq!(admin.call(&method, path, None, body).await.status, 401, "{method} {path}");
        }
        world.finish().await;
    });
}

#[test]
fn each_path_of_the_admin_api_has_one_spelling() {
    run(async {
        let world = World::with(&[], &[&named_tokens()]).await;
        let admin = world.admin_port();
        for one in operations() {
            for spelling in one.spellings() {
                let tokens = TOKENS.iter().map(|(role, token)| (*role, Some(*token))).chain([("none", None)]);
                for (role, token) in tokens {
                    let status = raw(&admin, &one.method, &spelling, token).await;
                    let unknown = token.is_none() && status == 401;
                    // A dot is an id of nothing, where a path has an id.
                    let judged = status == 403 && !one.is_for(role) && !spelling.contains('%');
                    assert!(
                        unknown || judged || [400, 404].contains(&status),
                        "{role}: {} {spelling}: {status}",
                        one.method
                    );
                }
            }
        }
        assert_eq!(world.rows("operator_acts", "outcome = 'ok'").await, 0, "nothing was done");
        world.finish().await;
    });
}
