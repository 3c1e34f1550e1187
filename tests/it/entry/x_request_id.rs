//! F5: `X-Request-Id`: the caller's comes back with every answer, and a person finds the log lines by it.

use crate::support::basics::answer::Answer;
use crate::support::buyers::raw_http;
use crate::support::processes::programs::signal;
use crate::support::world::{World, eventually, run};
use reqwest::Method;
use seckill::dev::ports::free_port;
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const URN: &str = "urn:seckill:x-request-id:";

#[test]
fn every_answer_has_the_callers_id_or_a_new_one() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("named", 1, Some(1)).await;
        let orders = format!("/v1/sales/{sale}/orders");
        let post = |path: &str, user: &str| world.request(Method::POST, path, user);
        let get = |path: &str| world.request(Method::GET, path, "alice");
        let calls = || {
            vec![
                (202, post(&orders, "alice").json(&json!({}))),
                (409, post(&orders, "alice").json(&json!({}))),
                (410, post(&orders, "bob").json(&json!({}))),
                (410, post(&format!("/v1/sales/{sale}/tokens"), "bob")),
                (200, get("/v1/sales")),
                (200, get("/openapi.json")),
                (200, get("/docs/")),
                (404, get(&format!("{orders}/1"))),
                (404, get("/v1/sales/none")),
                (404, get("/nowhere")),
                (400, get("/v1/sales/%ff")),
                (400, get(&format!("{orders}/1?wait=x"))),
                (405, post("/v1/sales", "alice")),
                (401, world.http.post(format!("{}{orders}", world.api)).json(&json!({}))),
                (413, post(&orders, "bob").header("Content-Type", "application/json").body("x".repeat(5_000))),
                (415, post(&orders, "bob").body("{}")),
                (422, post(&orders, "bob").json(&json!({ "quantity": 0 }))),
            ]
        };
        let mut made = BTreeSet::new();
        for (number, (status, request)) in calls().into_iter().enumerate() {
            let mine = format!("call-{number}_{}.A", "x".repeat(40));
            let answer = Answer::of(request.header("X-Request-Id", &mine)).await;
            assert_eq!((answer.status, answer.header("x-request-id")), (status, mine.as_str()), "{answer:?}");
            if status >= 400 {
                assert_eq!(answer.text("instance"), format!("{URN}{mine}"), "{answer:?}");
            }
        }
        for (_, request) in calls().into_iter().skip(1) {
            let answer = Answer::of(request).await;
            let id = answer.header("x-request-id").to_owned();
            assert!(id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id:?}: {answer:?}");
            if answer.status >= 400 {
                assert_eq!(answer.text("instance"), format!("{URN}{id}"), "{answer:?}");
            }
            assert!(made.insert(id), "each call has its own");
        }
        // What cannot be used is replaced; the purchase is not refused for it.
        for bad in ["", "a b", "a\"b", "ä", &"x".repeat(65), "a\r\nX-Request-Id: b"] {
            let more = format!("X-Request-Id: {bad}\r\nContent-Length: 0\r\n\r\n");
            let answer =
                raw_http::send(&world, raw_http::purchase_head(&world, sale.as_str(), "bob", &more).as_bytes()).await;
            let line = answer.head.lines().find_map(|line| line.strip_prefix("x-request-id: ")).unwrap_or_default();
            assert!(answer.status == 400 && line.len() == 16, "{bad:?}: {answer:?}");
            assert_eq!(answer.text("instance"), format!("{URN}{line}"), "{bad:?}");
        }
        world.finish().await;
    });
}

/// The lines of a process that was asked to write JSON.
fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn the_log_lines_of_a_call_are_found_by_its_id() {
    run(async {
        for format in ["json", "text"] {
            let mut world = World::with(&[Relay, Consumer], &[]).await;
            let sale = world.sale("logged", 10, Some(1)).await;
            let listen = format!("127.0.0.1:{}", free_port().unwrap());
            world.api = format!("http://{listen}");

            let (listen, format_set) = (format!("http.listen={listen}"), format!("log.format={format}"));
            let mut api = world.process("api", "", &[&listen, &format_set, "log.level=info,seckill::p1_entry=debug"]);
            eventually("the api", async || world.http.get(format!("{}/v1/sales", world.api)).send().await.is_ok())
                .await;
            let buy = async |user: &str, id: &str| {
                let request = world.request(Method::POST, &format!("/v1/sales/{sale}/orders"), user);
                Answer::of(request.header("X-Request-Id", id).json(&json!({}))).await
            };
            let accepted = buy("alice", "find-me").await;
            assert_eq!(accepted.status, 202, "{accepted:?}");
            assert_eq!(buy("alice", "not-me").await.status, 409);
            let request_id = accepted.text("request_id");
            let said = api.program.stderr();
            if format == "json" {
                let mine: Vec<Value> =
                    lines(&said).into_iter().filter(|line| line["x_request_id"] == "find-me").collect();
                let word = |word: &str| mine.iter().find(|line| line["message"] == word).cloned().unwrap_or_default();
                assert_eq!(word("decided")["request_id"], request_id.as_str(), "{said}");
                assert_eq!(word("answered")["status"], 202, "{said}");
                assert!(mine.iter().all(|line| line["status"] != 409), "{mine:?}");
            } else {
                let mine: Vec<&str> = said.lines().filter(|line| line.ends_with(" x_request_id=find-me")).collect();
                assert!(mine.iter().any(|line| line.contains("decided") && line.contains(&request_id)), "{said}");
                assert!(mine.iter().any(|line| line.contains("answered") && line.contains("status=202")), "{said}");
                assert!(mine.iter().all(|line| !line.contains("status=409")), "{mine:?}");
            }
            signal(api.program.pid(), libc::SIGTERM);
            assert_eq!(api.program.ended().await, Some(0), "{}", api.program.stderr());
            world.finish().await;
        }
    });
}
