//! The crowd against a small shop that answers by rule: every number of the report must be exact.

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use seckill::config::Secret;
use seckill::domain::ids::{RequestId, SaleId};
use seckill_bench::loadgen::{AcceptedPurchase, FinalAnswer, LoadPlan, await_outcomes, run};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the shop does to a buyer's first try, by the last digit of the buyer's number.
#[derive(Clone, Copy, PartialEq)]
enum Trick {
    None,
    Busy,
    Slow,
    AcceptThen504,
    Only504,
}

struct Book {
    stock: u64,
    tricks: [Trick; 10],
    /// AcceptedPurchase requests, and how often each was asked about.
    accepted: BTreeMap<u64, u64>,
    tried: BTreeSet<u64>,
    next: u64,
    forgetful: bool,
}

type Shop = web::Data<Mutex<Book>>;

fn buyer(request: &HttpRequest) -> u64 {
    let token = request.headers().get("Authorization").unwrap().to_str().unwrap().strip_prefix("Bearer ").unwrap();
    let mut validation = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::HS256);
    validation.set_audience(&["seckill"]);
    let key = jsonwebtoken::DecodingKey::from_secret(KEY.as_bytes());
    let claims = jsonwebtoken::decode::<serde_json::Value>(token, &key, &validation).unwrap().claims;
    claims["sub"].as_str().unwrap().strip_prefix("buyer-").unwrap().parse().unwrap()
}

async fn token(shop: Shop, request: HttpRequest) -> HttpResponse {
    buyer(&request);
    let mut book = shop.lock().unwrap();
    book.next += 1;
    let id = book.next.to_string();
    HttpResponse::Created().json(serde_json::json!({"request_id": id, "token": format!("t{id}"), "expires_at": 1}))
}

async fn order(shop: Shop, request: HttpRequest, body: web::Json<serde_json::Value>) -> HttpResponse {
    assert_eq!(body.into_inner(), serde_json::json!({"quantity": 2}));
    let buyer = buyer(&request);
    let mut book = shop.lock().unwrap();
    let id = match request.headers().get("Idempotency-Key") {
        Some(key) => key.to_str().unwrap().strip_prefix('t').unwrap().parse().unwrap(),
        None => {
            book.next += 1;
            book.next
        }
    };
    let place = format!("/v1/sales/s/orders/{id}");
    let yes = || {
        HttpResponse::Accepted()
            .insert_header(("Location", place.as_str()))
            .json(serde_json::json!({"request_id": id.to_string(), "status": "QUEUED", "code": "P2-R0"}))
    };
    let no = |status: u16, code: &str| {
        HttpResponse::build(status.try_into().unwrap())
            .insert_header(("Retry-After", "1"))
            .json(serde_json::json!({"code": code}))
    };
    if book.accepted.contains_key(&id) && !book.forgetful {
        return yes();
    }
    let trick = if book.tried.insert(buyer) { book.tricks[usize::try_from(buyer % 10).unwrap()] } else { Trick::None };
    match trick {
        Trick::Busy => return no(503, "P1-S8"),
        Trick::Slow => return no(429, "RATE_LIMITED"),
        Trick::None | Trick::AcceptThen504 | Trick::Only504 => {}
    }
    if trick != Trick::Only504 {
        if book.stock == 0 {
            return no(410, "P2-R2");
        }
        book.stock -= 1;
        book.accepted.insert(id, 0);
    }
    if trick == Trick::None {
        return yes();
    }
    let unknown = serde_json::json!({"code": "OUTCOME_UNKNOWN", "status": 504, "request_id": id.to_string()});
    HttpResponse::GatewayTimeout().insert_header(("Location", place.as_str())).json(unknown)
}

async fn status(shop: Shop, id: web::Path<u64>) -> HttpResponse {
    let mut book = shop.lock().unwrap();
    let Some(asked) = book.accepted.get_mut(&id) else {
        return HttpResponse::NotFound().json(serde_json::json!({"code": "ORDER_NOT_FOUND"}));
    };
    *asked += 1;
    HttpResponse::Ok().json(match (*asked, *id % 10) {
        (_, 9) => serde_json::json!({"status": "QUEUED", "code": "P2-R0"}),
        (1, _) => serde_json::json!({"status": "QUEUED", "code": "P2-R0"}),
        (_, 8) => serde_json::json!({"status": "FAILED", "code": "P4-C2", "reason": "LIMIT"}),
        _ => serde_json::json!({"status": "CONFIRMED", "code": "P4-C0"}),
    })
}

const KEY: &str = "0123456789abcdef0123456789abcdef";

fn open(stock: u64, tricks: [Trick; 10]) -> (Shop, LoadPlan) {
    let book = Book { stock, tricks, accepted: BTreeMap::new(), tried: BTreeSet::new(), next: 0, forgetful: false };
    let shop = web::Data::new(Mutex::new(book));
    let data = shop.clone();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/v1/sales/s/tokens", web::post().to(token))
            .route("/v1/sales/s/orders", web::post().to(order))
            .route("/v1/sales/s/orders/{id}", web::get().to(status))
    });
    let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.addrs()[0]);
    tokio::spawn(server.run());
    let plan = LoadPlan::new(url, SaleId::parse("s").unwrap(), Secret::new(KEY.to_owned()));
    (shop, LoadPlan { quantity: 2, retry_wait_max_ms: 5, keep_history: true, ..plan })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_buyers_want_a_thousand_units() {
    let (shop, plan) = open(1_000, [Trick::None; 10]);
    let last = Arc::new(Mutex::new(None));
    let sink = Arc::clone(&last);
    let progress: seckill_bench::loadgen::OnLoadProgress =
        Arc::new(move |progress| *sink.lock().unwrap() = Some(progress));
    let report = run(LoadPlan { buyers: 10_000, first_buyer: 70_000, progress: Some(progress), ..plan }).await.unwrap();
    assert_eq!(
        (report.purchases, report.requests, report.accepted, report.accepted_units),
        (10_000, 10_000, 1_000, 2_000)
    );
    assert_eq!(
        (report.by_status.code(202, "P2-R0"), report.by_status.code(410, "P2-R2"), report.by_status.rows().len()),
        (1_000, 9_000, 2)
    );
    assert_eq!((report.unknown, report.unresolved, report.not_connected, report.accepted_twice), (0, 0, 0, 0));
    assert_eq!((report.latency().count, report.connected), (10_000, 64));
    let ids: Vec<u64> = report.accepted_requests.iter().map(|accepted| accepted.request_id.get()).collect();
    assert_eq!(ids, shop.lock().unwrap().accepted.keys().copied().collect::<Vec<_>>());
    let buyers: BTreeSet<u64> = report.history.iter().map(|answer| answer.user).collect();
    assert_eq!(
        (buyers.len(), buyers.first(), buyers.last(), report.history.len()),
        (10_000, Some(&70_000), Some(&79_999), 10_000)
    );
    let progress = last.lock().unwrap().unwrap();
    assert_eq!(
        (progress.planned, progress.finished, progress.accepted, progress.requests),
        (10_000, 10_000, 1_000, 10_000)
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&json["accepted"], &json["by_status"][0]["count"], &json["latency"]["count"]),
        (&1_000.into(), &1_000.into(), &10_000.into())
    );
    assert_eq!(json["history"][0]["user"], seckill_bench::loadgen::buyer_name(report.history[0].user));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_trouble_ends_in_one_acceptance_each() {
    use Trick::{AcceptThen504, Busy, None, Only504, Slow};
    let tricks = [None, Busy, Slow, AcceptThen504, Only504, None, None, None, None, None];
    let (shop, plan) = open(1_000, tricks);
    let plan = LoadPlan { buyers: 200, connections: 8, tokens: true, duplicate_percent: 100, ..plan };
    let report = run(plan).await.unwrap();
    assert_eq!((report.accepted, report.unresolved, report.unknown), (200, 0, 40));
    assert_eq!(
        (report.by_status.code(503, "P1-S8"), report.by_status.status(429), report.by_status.status(504)),
        (20, 20, 40)
    );
    // Found by asking: 20. Not found, repeated with the same token: 20. Everyone's replay gets 202 again.
    assert_eq!((report.polls_by_status.status(200), report.polls_by_status.status(404)), (20, 20));
    assert_eq!((report.replays, report.replays_broken, report.by_status.status(202)), (200, 0, 180 + 200));
    assert_eq!((report.tokens_by_status.status(201), report.tokens_by_status.total()), (200, 200));
    assert_eq!(report.requests, report.by_status.total());
    assert_eq!(report.history.iter().filter(|answer| answer.doubted).count(), 40);
    assert!(report.history.iter().all(|answer| answer.verdict == FinalAnswer::Accepted));
    let book = shop.lock().unwrap();
    assert_eq!((book.accepted.len(), book.stock), (200, 800));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_no_buyer_repeats_what_may_have_happened() {
    use Trick::{AcceptThen504, Only504};
    let (shop, plan) = open(
        1_000,
        [
            AcceptThen504,
            Only504,
            AcceptThen504,
            Only504,
            AcceptThen504,
            Only504,
            AcceptThen504,
            Only504,
            AcceptThen504,
            Only504,
        ],
    );
    let report = run(LoadPlan { buyers: 20, connections: 4, max_retries: 3, ..plan }).await.unwrap();
    assert_eq!((report.requests, report.unknown, report.accepted, report.unresolved), (20, 20, 10, 10));
    assert_eq!((report.polls_by_status.status(200), report.polls_by_status.status(404)), (10, 40));
    assert_eq!(shop.lock().unwrap().accepted.len(), 10);
    assert!(report.history.iter().all(|answer| answer.doubted && answer.request_id.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shop_that_forgets_its_promise_is_found_out() {
    let (shop, plan) = open(31, [Trick::None; 10]);
    shop.lock().unwrap().forgetful = true;
    let plan = LoadPlan { buyers: 30, connections: 1, tokens: true, duplicate_percent: 100, ..plan };
    let report = run(plan).await.unwrap();
    // Each replay takes a unit again and gets 202, which keeps the promise; of 31 units the last leaves none for its replay.
    assert_eq!((report.accepted, report.replays, report.replays_broken), (16, 30, 1));
    assert_eq!((report.broken.len(), report.broken[0].verdict), (1, FinalAnswer::Refused { status: 410 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seed_chooses_who_comes_again() {
    let (_, plan) = open(10_000, [Trick::None; 10]);
    let plan = LoadPlan {
        buyers: 500,
        requests_per_buyer: 2,
        tokens: true,
        duplicate_percent: 20,
        other_retry_percent: 5,
        ..plan
    };
    let (one, two) = (run(plan.clone()).await.unwrap(), run(plan.clone()).await.unwrap());
    assert_eq!((one.replays, one.purchases), (two.replays, two.purchases));
    assert!(
        (150..250).contains(&one.replays) && (1_020..1_090).contains(&one.purchases),
        "{} {}",
        one.replays,
        one.purchases
    );
    assert_eq!((one.accepted, one.accepted_twice), (one.purchases, 0));
    let other = run(LoadPlan { seed: 2, ..plan }).await.unwrap();
    assert_ne!((other.replays, other.purchases), (one.replays, one.purchases));
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_are_awaited_until_time_is_up() {
    let (_, plan) = open(100, [Trick::None; 10]);
    let report = run(LoadPlan { buyers: 100, connections: 8, ..plan.clone() }).await.unwrap();
    let mut accepted = report.accepted_requests;
    accepted.push(AcceptedPurchase { request_id: RequestId::new(5_000).unwrap(), user: 1, quantity: 2 });
    let outcomes = await_outcomes(&plan, &accepted, Duration::from_millis(400)).await.unwrap();
    assert_eq!((outcomes.confirmed, outcomes.failed["LIMIT"], outcomes.failed_count()), (80, 10, 10));
    assert_eq!(outcomes.queued.iter().map(|id| id.get() % 10).collect::<Vec<_>>(), vec![9; 10]);
    assert_eq!((outcomes.missing, outcomes.unanswered.len()), (vec![RequestId::new(5_000).unwrap()], 0));
    accepted.retain(|accepted| accepted.request_id.get() % 10 < 8 && accepted.request_id.get() < 5_000);
    assert!(await_outcomes(&plan, &accepted, Duration::from_secs(5)).await.unwrap().all_final());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_kept_and_late_sends_count_as_latency() {
    let (shop, plan) = open(1_000, [Trick::None; 10]);
    let plan = LoadPlan { buyers: 200, connections: 4, rate_per_s: Some(1_000.0), ..plan };
    let report = run(plan.clone()).await.unwrap();
    assert!(report.elapsed_ms >= 199, "{} ms", report.elapsed_ms);
    assert!(report.latency().max_us > 50, "{:?}", report.latency());
    let warmed = run(LoadPlan { unmeasured: 150, ..plan.clone() }).await.unwrap();
    assert_eq!((warmed.purchases, report.latency().count, warmed.latency().count), (200, 200, 50));
    let task = tokio::spawn(run(plan));
    // The shop stands still for 300 ms: everything that should have been sent meanwhile is late.
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let _still = shop.lock().unwrap();
        runtime.block_on(crate::support::world::time_passes(300));
    });
    let report = task.await.unwrap().unwrap();
    assert!(report.latency().p50_us > 100_000, "{:?}", report.latency());
}

#[tokio::test]
async fn a_run_that_cannot_start_says_why() {
    let (_, plan) = open(1, [Trick::None; 10]);
    let why = async |plan: LoadPlan| run(plan).await.unwrap_err().to_string();
    assert_eq!(why(LoadPlan { duplicate_percent: 1, ..plan.clone() }).await, "duplicate_percent needs tokens");
    assert!(why(LoadPlan { api_url: "https://x".into(), ..plan.clone() }).await.contains("plain address"));
    assert!(
        why(LoadPlan { api_url: "http://127.0.0.1:1".into(), ..plan.clone() })
            .await
            .starts_with("cannot connect to 127.0.0.1:1")
    );
    assert!(why(LoadPlan { secret: Secret::default(), ..plan }).await.contains("auth.secret"));
}
