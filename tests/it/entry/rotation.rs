//! Secrets that change while buyers are between their token and their purchase: no buyer is turned away before the old one goes.

use crate::support::world::{Answer, World, run};
use reqwest::Method;
use seckill::config::{Secret, Settings};
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use seckill::token_issuer::TokenIssuer;
use serde_json::json;
use std::sync::Arc;

const ACCESS: [&str; 2] = ["first-access-secret-of-32-bytes-or-more", "second-access-secret-of-32-bytes-or-more"];
const PURCHASE: [&str; 2] = ["first-purchase-secret-of-32-bytes-or-more", "second-purchase-secret-of-32-bytes-or-more"];

/// What a buyer may hold when the secrets change.
struct Held {
    access: String,
    purchase: String,
    ticket: String,
}

/// The api starts again with these secrets, the signing one first.
async fn restart(world: &mut World, access: &[&str], purchase: &[&str]) {
    let list = |texts: &[&str]| texts.iter().map(|text| Secret::new((*text).to_owned())).collect::<Vec<_>>().into();
    let mut settings = Settings::clone(&world.settings);
    (settings.auth.secret, settings.auth.secrets) = (Secret::default(), list(access));
    (settings.p1_entry.token_secret, settings.p1_entry.token_secrets) = (Secret::default(), list(purchase));
    world.stop_roles().await;
    world.settings = Arc::new(settings);
    world.start_roles(&Role::ALL).await;
}

fn access(secret: &str, user: &str) -> String {
    TokenIssuer::new(&Secret::new(secret.to_owned()), "seckill", "seckill").unwrap().sign(user, 600).unwrap()
}

async fn call(world: &World, path: &str, token: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = world.http.request(Method::POST, format!("{}{path}", world.api)).bearer_auth(token);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.json(&json!({}))).await
}

async fn hold(world: &World, (plain, room): (&SaleId, &SaleId), secret: &str, user: &str) -> Held {
    let access = access(secret, user);
    let purchase = call(world, &format!("/v1/sales/{plain}/tokens"), &access, &[]).await;
    let ticket = call(world, &format!("/v1/sales/{room}/places"), &access, &[]).await;
    assert!(purchase.status == 201 && ticket.status < 300, "{purchase:?} {ticket:?}");
    Held { access, purchase: purchase.text("token"), ticket: ticket.text("ticket") }
}

async fn buy(world: &World, sale: &SaleId, held: &Held) -> Answer {
    call(world, &format!("/v1/sales/{sale}/orders"), &held.access, &[("idempotency-key", &held.purchase)]).await
}

async fn place(world: &World, room: &SaleId, held: &Held) -> u16 {
    let url = format!("{}/v1/sales/{room}/places", world.api);
    let request = world.http.get(url).bearer_auth(&held.access).header("seckill-place", &held.ticket);
    Answer::of(request).await.status
}

#[test]
fn each_step_of_a_rotation_takes_what_was_signed_in_the_step_before() {
    run(async {
        let mut world = World::start().await;
        let (sale, room) = (world.sale("rotation", 20, None).await, world.room("rotation-room", 20).await);
        let ([old, new], [old_purchase, new_purchase]) = (ACCESS, PURCHASE);
        // The old secret alone, the new one known, the new one signs, the new one alone.
        restart(&mut world, &[old], &[old_purchase]).await;
        let alice = hold(&world, (&sale, &room), old, "alice").await;
        assert_eq!(call(&world, "/v1/sales/rotation/tokens", &access(new, "x"), &[]).await.status, 401);
        let first = buy(&world, &sale, &alice).await;
        assert_eq!(first.status, 202, "{first:?}");

        restart(&mut world, &[old, new], &[old_purchase, new_purchase]).await;
        let bob = hold(&world, (&sale, &room), new, "bob").await;
        for _ in 0..2 {
            restart(&mut world, &[new, old], &[new_purchase, old_purchase]).await;
            let replay = buy(&world, &sale, &alice).await;
            assert_eq!((replay.status, replay.text("request_id")), (202, first.text("request_id")), "{replay:?}");
            assert_eq!(buy(&world, &sale, &bob).await.status, 202);
            assert_eq!((place(&world, &room, &alice).await, place(&world, &room, &bob).await), (200, 200));
        }
        let carol = hold(&world, (&sale, &room), new, "carol").await;

        restart(&mut world, &[new], &[new_purchase]).await;
        assert_eq!(buy(&world, &sale, &carol).await.status, 202);
        assert_eq!(place(&world, &room, &carol).await, 200);
        assert_eq!(buy(&world, &sale, &alice).await.status, 401, "the old access secret is gone");
        let late = buy(&world, &sale, &bob).await;
        assert_eq!(
            (late.status, late.code().as_str()),
            (403, "TOKEN_INVALID"),
            "the old purchase secret is gone: {late:?}"
        );
        assert_eq!(place(&world, &room, &bob).await, 403);
        let _audit = world.settled(&sale).await;
        world.finish().await;
    });
}
