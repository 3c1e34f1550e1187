//! Access tokens of an issuer, at real processes: a start without keys, an outage later, and floods of tokens that are refused.

use crate::support::basics::time::eventually;
use crate::support::outside::issuer::Issuer;
use crate::support::outside::login_service::{LoginService, base64_url, forged, set_of};
use crate::support::processes::doctor::doctor;
use crate::support::processes::killable::KillableProcess;
use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, run, run_waiting};
use futures::StreamExt;
use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use seckill::runtime::now_ms;
use seckill::token_issuer::TokenIssuer;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::TcpStream;

/// Requests of one flood.
const FLOOD: usize = 4_000;
const CHECKS: &str = "seckill_p1_entry_signature_checks_total";
/// As in the middle of a rotation; the last one signs.
const SECRETS: [&str; 3] = [
    "first-access-secret-of-32-bytes-or-more",
    "second-access-secret-of-32-bytes-or-more",
    "third-access-secret-of-32-bytes-or-more",
];

async fn buy(world: &World, api: &KillableProcess, sale: &SaleId, token: &str) -> Answer {
    let request = world.http.post(format!("{}/v1/sales/{sale}/orders", api.api_url())).json(&json!({}));
    Answer::of(request.bearer_auth(token)).await
}

/// An address as it is shown.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

#[test]
fn a_process_waits_for_its_first_keys_and_sells_on_when_the_issuer_goes_later() {
    run_waiting(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("first-keys", 20, None).await;
        let service = LoginService::named("ES256", "one");
        let issuer = Issuer::start(&set_of(&[&service])).await;
        issuer.goes_away();
        let (algorithms, url) = ("auth.algorithms=RS256,ES256", format!("auth.jwks_url={}", issuer.url));
        let mut api = world.process("api", "", &["auth.secret=", algorithms, "auth.reread_s=1", &url]);
        api.program.until_logged("no keys of auth.jwks_url yet").await;
        let (ready, keys) = api.readiness("keys").await.unwrap();
        assert!(
            !ready && keys["ok"] == false && keys["problem"].as_str().unwrap().contains(without_query(&issuer.url)),
            "{keys}"
        );
        assert!(TcpStream::connect(api.api_url().trim_start_matches("http://")).is_err(), "no buyer gets in yet");

        issuer.publish(&set_of(&[&service]));
        api.serves_buyers().await;
        assert_eq!(buy(&world, &api, &sale, &service.good("alice")).await.status, 202);
        // An answer of `/readyz` may be a second old.
        eventually("it is ready", async || {
            let (ready, keys) = api.readiness("keys").await.unwrap();
            ready && keys.is_null()
        })
        .await;

        issuer.goes_away();
        let foreign = LoginService::named("ES256", "another").good("mallory");
        eventually("the outage is seen", async || {
            assert_eq!(buy(&world, &api, &sale, &foreign).await.status, 401);
            let (ready, keys) = api.readiness("keys").await.unwrap();
            assert!(ready, "an issuer that is away turns no buyer away: {keys}");
            keys["warnings"].to_string().contains("go on being used")
        })
        .await;
        api.until_metric("seckill_p1_entry_keys_stale", |stale| stale == 1.0).await;
        assert_eq!(buy(&world, &api, &sale, &service.good("bob")).await.status, 202);
        let said = api.program.stderr();
        assert!(said.matches("keys cannot be read").count() <= 2, "each reason once: {said}");

        let set = |url: &str| {
            let urls = [&world.settings.redis.url, &world.settings.rabbitmq.url, &world.settings.mysql.url];
            let names = ["redis.url", "rabbitmq.url", "mysql.url"];
            let mut set: Vec<String> =
                names.iter().zip(urls).map(|(name, url)| format!("{name}={}", url.expose())).collect();
            set.extend([algorithms.to_owned(), url.to_owned()]);
            set
        };
        let found = |set: Vec<String>| async move { tokio::task::spawn_blocking(move || doctor(&set)).await.unwrap() };
        let (_, found_away, text) = found(set(&url)).await;
        assert!(found_away("away").contains(&"issuer auth.jwks_url".to_owned()), "{text}");
        issuer.publish(&set_of(&[&service]));
        let (_, found_fine, text) = found(set(&url)).await;
        assert!(found_fine("fine").contains(&"issuer auth.jwks_url".to_owned()), "{text}");
        drop(api);
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
    });
}

/// Sends a flood of tokens to a process while honest buyers, each with a token that is new to it, buy. The answers to the flood,
/// and the signature checks it took.
async fn flood(
    world: &World,
    (api, sale): (&KillableProcess, &SaleId),
    honest: impl Fn(usize) -> String,
    token: impl Fn(usize) -> String,
) -> (BTreeMap<u16, usize>, f64) {
    let before = api.metric(CHECKS).await.unwrap();
    let attack = async {
        let answers = futures::stream::iter((0..FLOOD).map(|n| (n, token(n)))).map(async |(n, token)| {
            let url = format!("{}/v1/sales/{sale}/orders/{}", api.api_url(), n + 1);
            world.http.get(url).bearer_auth(token).send().await.expect("an answer").status().as_u16()
        });
        let counted = |mut counts: BTreeMap<u16, usize>, status| async move {
            *counts.entry(status).or_default() += 1;
            counts
        };
        answers.buffer_unordered(64).fold(BTreeMap::new(), counted).await
    };
    let buyers = async {
        for n in 0..100 {
            let token = honest(n);
            // 503 says that it was not checked; then it is worth another try, as with any 503.
            let mut tries = 0;
            loop {
                let answer = buy(world, api, sale, &token).await;
                tries += 1;
                if answer.status != 503 {
                    assert_eq!(answer.status, 202, "buyer {n}: {answer:?}");
                    break;
                }
                assert!(tries < 50, "buyer {n} is kept out: {answer:?}");
            }
        }
    };
    let (answers, ()) = tokio::join!(attack, buyers);
    (answers, api.metric(CHECKS).await.unwrap() - before)
}

#[test]
fn floods_of_refused_tokens_are_answered_without_a_check_and_honest_buyers_go_on() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("forged-flood", 1_000, None).await;
        let service = LoginService::named("RS256", "one");
        let file = scratch("forged-flood").join("jwks.json");
        std::fs::write(&file, set_of(&[&service]).to_string()).unwrap();
        let file = format!("auth.jwks_file={}", file.display());
        let api = world.process("api", "", &["auth.secret=", "auth.algorithms=RS256,ES256", &file]);
        api.serves_buyers().await;

        let bad = forged(&service.good("mallory"));
        let expired = service.token("one", "mallory", now_ms() / 1000 - 600);
        let of_another = LoginService::named("ES256", "one").good("mallory");
        let parts: Vec<&str> = bad.split('.').collect();
        let garbled = format!("{}.{}.{}", parts[0], base64_url(b"[no claims]"), parts[2]);
        let foreign = LoginService::named("ES256", "nobody").good("mallory");
        let same: [(&str, String, f64); 6] = [
            // Several threads may see one for the first time at once.
            ("one forgery", bad.clone(), 64.0),
            ("one expired token", expired, 64.0),
            ("the key of another algorithm", of_another, 0.0),
            ("no claims", garbled, 0.0),
            ("an unknown key", foreign, 0.0),
            ("no token", "a.b.c".to_owned(), 0.0),
        ];
        for (number, (what, token, checks_max)) in same.into_iter().enumerate() {
            let honest = |n: usize| service.good(&format!("honest-{number}-{n}"));
            let (answers, checks) = flood(&world, (&api, &sale), honest, |_| token.clone()).await;
            eprintln!("{what}: {FLOOD} tokens, {checks} signature checks, 100 of them of honest buyers");
            assert_eq!(answers, BTreeMap::from([(401, FLOOD)]), "{what}");
            assert!((100.0..=100.0 + checks_max).contains(&checks), "{what}: {checks}");
        }
        // Each another one: no more than one check each, and what is left out is said.
        let unique = |n: usize| forged(&service.good(&format!("mallory-{n}")));
        let honest = |n: usize| service.good(&format!("honest-unique-{n}"));
        let (answers, checks) = flood(&world, (&api, &sale), honest, unique).await;
        eprintln!("each another forgery: {answers:?}, {checks} signature checks");
        let refused = answers.get(&401).copied().unwrap_or(0);
        assert_eq!(refused + answers.get(&503).copied().unwrap_or(0), FLOOD, "{answers:?}");
        assert!(checks <= (refused + 100) as f64, "{checks} for {answers:?}");
        drop(api);
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
    });
}

#[test]
fn floods_of_forged_tokens_under_several_secrets_are_refused_and_hardly_reach_the_library() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("forged-secrets", 1_000, None).await;
        let secrets = format!("auth.secrets={}", SECRETS.join(","));
        let api = world.process("api", "", &["auth.secret=", &secrets]);
        api.serves_buyers().await;
        let issuer = TokenIssuer::new(&Secret::new(SECRETS[2].to_owned()), "seckill", "seckill").unwrap();
        let good = |user: &str| issuer.sign(user, 600).unwrap();
        // From here on the form of its header is known.
        assert_eq!(buy(&world, &api, &sale, &good("first")).await.status, 202);

        let bad = |n: usize| forged(&good(&format!("mallory-{n}")));
        let (answers, checks) = flood(&world, (&api, &sale), |n| good(&format!("honest-{n}")), bad).await;
        eprintln!("the usual form: {answers:?}, {checks} checks by the library");
        assert_eq!((answers, checks), (BTreeMap::from([(401, FLOOD)]), 0.0));

        // Each with a form of its own: one reading of each at most, and what is left out is said.
        let bad = |n: usize| {
            let header = json!({ "alg": "HS256", "typ": "JWT", "kid": n.to_string() }).to_string();
            let claims = json!({ "iss": "seckill", "aud": "seckill", "sub": "mallory", "exp": now_ms() / 1000 + 600 });
            let [header, claims] = [header, claims.to_string()].map(|part| base64_url(part.as_bytes()));
            format!("{header}.{claims}.{}", base64_url(&[7; 32]))
        };
        let (answers, checks) = flood(&world, (&api, &sale), |n| good(&format!("patient-{n}")), bad).await;
        eprintln!("each another form: {answers:?}, {checks} checks by the library");
        let refused = answers.get(&401).copied().unwrap_or(0);
        assert_eq!(refused + answers.get(&503).copied().unwrap_or(0), FLOOD, "{answers:?}");
        assert!(checks > 0.0 && checks <= refused as f64, "{checks} for {answers:?}");
        drop(api);
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
    });
}

#[test]
fn a_new_key_has_no_token_verified_again_and_a_key_that_goes_takes_only_its_own_tokens() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("next-key", 1_000, None).await;
        let (one, next) = (LoginService::named("ES256", "one"), LoginService::named("EdDSA", "next"));
        let file = scratch("next-key").join("jwks.json");
        let publish = |services: &[&LoginService]| std::fs::write(&file, set_of(services).to_string()).unwrap();
        publish(&[&one]);
        let place = format!("auth.jwks_file={}", file.display());
        let set = ["auth.secret=", "auth.algorithms=ES256,EdDSA", "auth.reread_s=1", &place];
        let api = world.process("api", "", &set);
        api.serves_buyers().await;
        let crowd: Vec<String> = (0..50).map(|n| one.good(&format!("crowd-{n}"))).collect();
        let asks = async |token: &str| {
            let url = format!("{}/v1/sales/{sale}/orders/4242", api.api_url());
            world.http.get(url).bearer_auth(token).send().await.expect("an answer").status().as_u16()
        };
        let all_ask = async || {
            for token in &crowd {
                assert_eq!(asks(token).await, 404);
            }
        };
        all_ask().await;
        let first = api.metric(CHECKS).await.unwrap();

        let early = next.good("early");
        publish(&[&one, &next]);
        eventually("the next key", async || asks(&early).await == 404).await;
        all_ask().await;
        assert_eq!(api.metric(CHECKS).await.unwrap(), first + 1.0, "the crowd was verified before");

        publish(&[&next]);
        eventually("the first key goes", async || asks(&crowd[0]).await == 401).await;
        assert_eq!(asks(&early).await, 404);
        assert_eq!(api.metric(CHECKS).await.unwrap(), first + 1.0, "its key stayed");

        // Another key of the same name is another key.
        let other = LoginService::named("ES256", "one");
        publish(&[&next, &other]);
        eventually("another key of that name", async || asks(&other.good("late")).await == 404).await;
        assert_eq!((asks(&crowd[0]).await, asks(&early).await), (401, 404));
        drop(api);
        world.stop().await;
    });
}
