//! The demo shop: a product page for one visitor, and a crowd at the press of a button. For a local stack only.
//!
//! Its calls do what no production system may: they make access tokens for anyone, have `seckill-bench` make load, and say that orders
//! are paid (`payments.rs`). So they exist only where [`Shop`] was made, which `seckill dev` does and which refuses an address that others can reach.

use super::crowd::{self, Crowd};
use super::files::serve;
use super::shop_calls::{answer, must_be_json};
use super::{assets, payments};
use crate::bench_program;
use crate::config::Auth;
use crate::domain::ids::SaleId;
use crate::http::ExtraRoutes;
use crate::http::problem::{Kind, Problem};
use crate::runtime::Stopper;
use crate::token_issuer::TokenIssuer;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buyers of one crowd.
const CROWD_MAX: u64 = 10_000;
/// Connections of a crowd: many enough to be felt, few enough for a laptop.
const CROWD_CONNECTIONS: u32 = 64;
/// A visitor's access token lives this long, seconds.
const VISIT_TTL_S: u64 = 12 * 3600;
/// The fact that a member has, where `auth.facts` names its claim.
const MEMBER_FACT: &str = "tier";
/// Its value.
const MEMBER_TIER: &str = "gold";

/// Why there is no shop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoShop {
    /// Others can reach it.
    #[error(
        "http.listen: {0} can be reached from other machines; the demo shop makes access tokens for anyone, so it is for a loopback address only"
    )]
    Reachable(SocketAddr),
    /// There is no key to sign with.
    #[error("auth.secret: the demo shop signs its visitors' tokens with HS256 and needs its secret")]
    NoKey,
}

/// What the shop's calls share.
pub struct Shop {
    auth: Auth,
    issuer: TokenIssuer,
    api_url: String,
    stop: Stopper,
    crowd: Arc<Mutex<Crowd>>,
}

impl Shop {
    /// A shop in front of the API at `address`, whose tokens are checked by `auth`. A crowd ends early on `stop`.
    pub(crate) fn new(auth: &Auth, address: SocketAddr, stop: Stopper) -> Result<Self, NoShop> {
        if !address.ip().is_loopback() {
            return Err(NoShop::Reachable(address));
        }
        if !auth.uses_secrets() {
            return Err(NoShop::NoKey);
        }
        let issuer =
            TokenIssuer::new(auth.signing_secret(), &auth.issuer, &auth.audience).map_err(|_| NoShop::NoKey)?;
        let api_url = format!("http://{address}");
        Ok(Self { auth: auth.clone(), issuer, api_url, stop, crowd: Arc::default() })
    }

    /// The shop as routes for the public server.
    #[must_use]
    pub(crate) fn extra_routes(self) -> ExtraRoutes {
        let shop = web::Data::new(self);
        Arc::new(move |config| routes(config, shop.clone()))
    }

    fn crowd(&self) -> MutexGuard<'_, Crowd> {
        self.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `/shop/`, on the public port of a local stack.
fn routes(config: &mut web::ServiceConfig, shop: web::Data<Shop>) {
    config.service(web::redirect("/shop", "/shop/")).service(
        web::scope("/shop")
            .app_data(shop)
            .route("/v1/visitors", web::post().to(visit))
            .route("/v1/payments", web::post().to(payments::pay))
            .route("/v1/crowds", web::post().to(gather))
            .route("/v1/crowds", web::get().to(crowd_now))
            .route("/{file:.*}", web::get().to(shop_file)),
    );
}

async fn shop_file(request: HttpRequest, file: web::Path<String>) -> HttpResponse {
    serve(&request, assets::SHOP, &file)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VisitBody {
    /// Somebody whose access token says the fact `tier`.
    #[serde(default)]
    member: bool,
}

async fn visit(
    shop: web::Data<Shop>,
    request: HttpRequest,
    body: Result<web::Bytes, actix_web::Error>,
) -> HttpResponse {
    let work = || {
        must_be_json(&request)?;
        let wanted: VisitBody = read(body)?;
        let visitor = format!("visitor-{:08x}", rand::random::<u32>());
        let claim = shop.auth.facts.of(MEMBER_FACT);
        let (has_members, tier) = (claim.is_some(), claim.filter(|_| wanted.member).map(|_| MEMBER_TIER));
        let mut claims = Map::new();
        if let (Some(claim), Some(tier)) = (claim, tier) {
            claims.insert(claim.to_owned(), tier.into());
        }
        let token = shop.issuer.sign_with(&visitor, VISIT_TTL_S, &claims);
        let token = token.map_err(|error| Kind::Internal.because(error.to_string()))?;
        Ok(json!({ "visitor": visitor, "token": token, "tier": tier, "has_members": has_members }))
    };
    answer(&request, work())
}

fn read<T: DeserializeOwned>(body: Result<web::Bytes, actix_web::Error>) -> Result<T, Problem> {
    let body = body.map_err(|_| Problem::from(Kind::BodyTooLarge))?;
    serde_json::from_slice(&body)
        .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrowdBody {
    sale_id: SaleId,
    buyers: u64,
    /// The sale wants purchase tokens.
    #[serde(default)]
    tokens: bool,
    /// The sale has a waiting room.
    #[serde(default)]
    room: bool,
}

async fn gather(
    shop: web::Data<Shop>,
    request: HttpRequest,
    body: Result<web::Bytes, actix_web::Error>,
) -> HttpResponse {
    let work = || {
        must_be_json(&request)?;
        let wanted: CrowdBody = read(body)?;
        if !(1..=CROWD_MAX).contains(&wanted.buyers) {
            return Err(Kind::Unprocessable
                .because_both(format!("buyers: expected 1 to {CROWD_MAX}"), format!("buyers：应为 1 至 {CROWD_MAX}")));
        }
        shop.send(&wanted)?;
        Ok(shop.document())
    };
    answer(&request, work())
}

async fn crowd_now(shop: web::Data<Shop>, request: HttpRequest) -> HttpResponse {
    answer(&request, Ok(shop.document()))
}

impl Shop {
    /// The crowd, and the clock that the countdown goes by.
    fn document(&self) -> serde_json::Value {
        json!({ "buyers_max": CROWD_MAX, "crowd": self.crowd().clone() })
    }

    fn send(&self, wanted: &CrowdBody) -> Result<(), Problem> {
        let mut crowd_now = self.crowd();
        if crowd_now.running {
            return Err(
                Kind::Conflict.because_both("a crowd is under way; wait for its end", "人群仍在进行，请等待结束")
            );
        }
        let child = crowd::start().map_err(|error| Kind::Unavailable.because(bench_program::missing(&error)))?;
        *crowd_now = Crowd { running: true, number: crowd_now.number + 1, ..Crowd::default() };
        let plan = self.plan(wanted).to_string();
        tokio::spawn(crowd::follow(child, plan, self.crowd.clone(), self.stop.clone()));
        Ok(())
    }

    /// What `seckill-bench crowd` reads on its standard input: a command line can be read by everyone on the machine.
    fn plan(&self, wanted: &CrowdBody) -> serde_json::Value {
        json!({
            "api_url": self.api_url,
            "sale_id": wanted.sale_id,
            "secret": self.auth.signing_secret().expose(),
            "issuer": self.auth.issuer,
            "audience": self.auth.audience,
            "buyers": wanted.buyers,
            // Everyone is new, so that the next crowd is not refused as having bought.
            "first_buyer": u64::from(rand::random::<u32>()) * CROWD_MAX,
            "connections": CROWD_CONNECTIONS,
            "tokens": wanted.tokens || wanted.room,
            "room": wanted.room,
            "max_retries": 20,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Settings};

    fn auth(secret: &str) -> Auth {
        let set = vec![format!("auth.secret={secret}")];
        Settings::load(&Layers { files: vec![], set }).unwrap().auth
    }

    #[test]
    fn a_shop_that_others_can_reach_or_that_cannot_sign_is_refused() {
        let shop = |auth: &Auth, address: &str| Shop::new(auth, address.parse().unwrap(), Stopper::new()).err();
        let good = auth("test-access-secret-of-32-bytes-or-more");
        assert!(shop(&good, "127.0.0.1:8080").is_none());
        assert!(shop(&good, "[::1]:8080").is_none());
        assert!(matches!(shop(&good, "0.0.0.0:8080"), Some(NoShop::Reachable(_))));
        assert!(matches!(shop(&good, "192.168.1.2:8080"), Some(NoShop::Reachable(_))));
        assert!(matches!(shop(&auth(""), "127.0.0.1:8080"), Some(NoShop::NoKey)));
        assert!(matches!(
            shop(&Auth { algorithm: crate::config::Algorithm::EdDsa, ..good }, "127.0.0.1:1"),
            Some(NoShop::NoKey)
        ));
    }
}
