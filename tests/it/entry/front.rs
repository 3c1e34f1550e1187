//! A purchase or a status question is answered before the framework's `App`, or by it: the bytes are the same. A request whose
//! path spells the sale's id with `%` is one that the `App` answers.

use crate::support::buyers::raw_http::{RawAnswer, purchase_head, send};
use crate::support::world::{Answer, World, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;

const BODY: &str = "Content-Length: 14\r\n\r\n{\"quantity\":1}";

/// One request of the corpus: what it is, the sale, the head after the request line, body included.
type Recorded = (&'static str, &'static str, String, u16);

/// The same sale in a path that only the `App` reads.
fn spelt(sale: &str) -> String {
    let first = sale.as_bytes()[0];
    format!("%{first:02X}{}", &sale[1..])
}

/// What is compared: the status, the headers without the date in their order by name, and the body. The request id of a new
/// purchase is another one each time.
fn comparable(answer: &RawAnswer, request_id: &str) -> (u16, String, String) {
    let mask = |text: &str| if request_id.is_empty() { text.to_owned() } else { text.replace(request_id, "<id>") };
    // When to come back is drawn for each answer.
    let drawn = |line: &str| if line.starts_with("retry-after: ") { "retry-after: <s>".to_owned() } else { mask(line) };
    let mut head: Vec<String> = answer.head.lines().filter(|line| !line.starts_with("date: ")).map(drawn).collect();
    head.sort();
    let (head, body) = (head.join("\n"), mask(&answer.body));
    // Seconds to the start go on.
    let timeless =
        |text: String| if answer.status == 425 { text.replace(|c: char| c.is_ascii_digit(), "") } else { text };
    (answer.status, timeless(head), timeless(body))
}

async fn both_ways(world: &World, (method, rest): (&str, &str), (what, sale, request, status): &Recorded) {
    let mut answers = Vec::new();
    for path in [(*sale).to_owned(), spelt(sale)] {
        let line =
            format!("{method} /v1/sales/{path}/orders{rest} HTTP/1.1\r\nHost: seckill\r\nX-Request-Id: corpus\r\n");
        let answer = send(world, format!("{line}{request}").as_bytes()).await;
        assert_eq!(answer.status, *status, "{what}, {path}: {answer:?}");
        let id = if *status == 202 { answer.text("request_id") } else { String::new() };
        answers.push(comparable(&answer, &id));
    }
    assert_eq!(answers[0], answers[1], "{what}");
}

fn recorded(world: &World, winners_token: &str) -> Vec<Recorded> {
    let bearer = |user: &str| format!("Authorization: Bearer {}\r\n", world.access(user));
    let json = "Content-Type: application/json\r\n";
    let good = |user: &str| format!("{}{json}", bearer(user));
    let with = |body: &str| format!("{}Content-Length: {}\r\n\r\n{body}", good("alice"), body.len());
    let all = |head: &str| format!("{head}{BODY}");
    let sold = |sale, status| ("as the sale is", sale, all(&good("bob")), status);
    vec![
        ("accepted", "plenty", all(&good("alice")), 202),
        (
            "in chunks",
            "plenty",
            format!("{}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n", good("alice")),
            202,
        ),
        ("a replay", "plenty", all(&format!("{}Idempotency-Key: {winners_token}\r\n", good("winner"))), 202),
        ("another's token", "plenty", all(&format!("{}Idempotency-Key: {winners_token}\r\n", good("bob"))), 403),
        ("no token that was issued", "plenty", all(&format!("{}Idempotency-Key: x\r\n", good("bob"))), 403),
        ("two tokens", "plenty", all(&format!("{}Idempotency-Key: x\r\nIdempotency-Key: x\r\n", good("bob"))), 400),
        ("no access token", "plenty", all(json), 401),
        ("no bearer", "plenty", all(&format!("Authorization: Basic x\r\n{json}")), 401),
        ("a forged token", "plenty", all(&format!("Authorization: Bearer a.b.c\r\n{json}")), 401),
        ("two access tokens", "plenty", all(&format!("{}{}", bearer("bob"), good("bob"))), 400),
        ("another media type", "plenty", all(&format!("{}Content-Type: text/plain\r\n", bearer("bob"))), 415),
        ("no media type", "plenty", all(&bearer("bob")), 415),
        ("in Chinese", "plenty", all("Accept-Language: zh-CN\r\n"), 401),
        ("no body", "plenty", with(""), 400),
        ("no JSON", "plenty", with("{"), 400),
        ("another field", "plenty", with("{\"price\":0}"), 400),
        ("no quantity", "plenty", with("{\"quantity\":0}"), 422),
        ("too long", "plenty", with(&" ".repeat(world.settings.http.body_bytes_max + 1)), 413),
        ("too slow", "plenty", format!("{}Content-Length: 14\r\n\r\n", good("bob")), 408),
        ("no such sale", "nowhere", all(&good("bob")), 404),
        ("a second purchase", "single", all(&good("winner")), 409),
        ("more than the limit", "few", format!("{}Content-Length: 14\r\n\r\n{{\"quantity\":9}}", good("bob")), 409),
        sold("gone", 410),
        sold("ended", 410),
        sold("paused", 423),
        sold("later", 425),
        sold("tokens", 428),
    ]
}

/// Questions about an order of the winner's, by what stands behind `orders`.
fn questions(world: &World, order: &str) -> Vec<(String, Recorded)> {
    let of = |user: &str| format!("Authorization: Bearer {}\r\n\r\n", world.access(user));
    let asked = |what, rest: &str, head: String, status| (format!("/{rest}"), (what, "plenty", head, status));
    let winner = || of("winner");
    vec![
        asked("queued", order, winner(), 200),
        asked("waited for", &format!("{order}?wait=1"), winner(), 200),
        asked("in Chinese", order, format!("Accept-Language: zh-CN\r\n{}", of("bob")), 404),
        asked("another's", order, of("bob"), 404),
        asked("never made", "254385310867492864", winner(), 404),
        asked("no token", order, "\r\n".to_owned(), 401),
        asked("no token, and no number", "x", "\r\n".to_owned(), 401),
        asked("no number", "0", winner(), 400),
        asked("no seconds", &format!("{order}?wait=soon"), winner(), 400),
        asked("another question", &format!("{order}?now"), winner(), 400),
        asked("a body", order, format!("Content-Length: 2\r\n{}{{}}", winner()), 200),
    ]
}

/// Sales in the states that a purchase can meet.
async fn sales(world: &World) {
    world.sale("plenty", 100, None).await;
    world.sale("single", 10, Some(1)).await;
    world.sale("few", 100, Some(3)).await;
    world.sale("gone", 1, Some(1)).await;
    let now = seckill::runtime::now_ms();
    world.draft("ended", 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = (now - 9_000, now - 1_000)).await;
    world.draft("later", 10, |sale| sale.starts_at_ms = now + 3_000_000).await;
    world.sale_with("tokens", 10, |sale| sale.token_required = true).await;
    let paused: SaleId = world.sale("paused", 10, None).await;
    world.sale_control().pause(&paused).await.unwrap();
}

#[test]
fn the_app_and_what_is_before_it_give_the_same_bytes() {
    run(async {
        let world = World::with(&[Role::Api], &["http.body_timeout_ms=300"]).await;
        sales(&world).await;
        let buy = async |sale: &str, more: &str| {
            send(&world, purchase_head(&world, sale, "winner", &format!("{more}{BODY}")).as_bytes()).await
        };
        let issued = Answer::of(world.request(Method::POST, "/v1/sales/plenty/tokens", "winner")).await;
        let token = issued.text("token");
        let bought = buy("plenty", &format!("Idempotency-Key: {token}\r\n")).await;
        assert_eq!(bought.status, 202);
        for (rest, question) in questions(&world, &bought.text("request_id")) {
            both_ways(&world, ("GET", &rest), &question).await;
        }
        assert_eq!((buy("single", "").await.status, buy("gone", "").await.status), (202, 202));
        // The first refusal is the script's, the next ones are the entry's.
        assert_eq!(buy("gone", "").await.status, 409);
        assert_eq!(send(&world, purchase_head(&world, "gone", "eve", BODY).as_bytes()).await.status, 410);
        for request in recorded(&world, &token) {
            both_ways(&world, ("POST", ""), &request).await;
        }
        world.stop().await;
    });
}
