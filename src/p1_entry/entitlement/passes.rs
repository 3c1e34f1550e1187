//! Passes: JWTs that say facts of one buyer for one sale or one drop, signed by us (HS256) or by the shop (a public key).
//!
//! Input: the text of a pass, the buyer, the sale. Output: its claims, or what is wrong with it. Signature and times are checked as
//! those of access tokens are, and remembered as they are ([`crate::p1_entry::access_tokens`]). A crash leaves nothing.

use super::shown::claims_of;
use crate::domain::ids::UserId;
use crate::domain::sale::Sale;
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::access_tokens::Authenticator;
use jsonwebtoken::{Algorithm, decode_header};
use serde_json::{Map, Value};

/// Checks passes. One a process.
pub(super) struct PassChecks {
    /// With the secrets that we sign with.
    pub(super) ours: Option<Authenticator>,
    /// With the public keys of the shop.
    pub(super) of_shop: Option<Authenticator>,
}

impl PassChecks {
    /// The claims of a pass of this buyer for this sale.
    pub(super) fn claims(&self, pass: &str, sale: &Sale, buyer: &UserId) -> Result<Map<String, Value>, Problem> {
        let Some(checks) = self.checks_of(pass) else { return Err(invalid("uses no algorithm that has a key here")) };
        if !checks.key_health().has_keys() {
            return Err(Kind::Unavailable
                .because_both("the keys of passes cannot be read right now", "暂时无法读取通行证的密钥"));
        }
        let named = checks.check(pass).map_err(|denied| match denied.is_busy() {
            true => Kind::Unavailable.because(format!("Seckill-Pass {}", denied.detail)),
            false => invalid(&denied.detail),
        })?;
        if named != *buyer {
            return Err(invalid("is of another buyer (sub)"));
        }
        let claims = claims_of(pass).ok_or_else(|| invalid("is malformed"))?;
        match is_for(&claims, sale) {
            Ok(()) => Ok(claims),
            Err(why) => Err(invalid(why)),
        }
    }

    /// Each has keys of its own algorithms only, so a header decides no more than which error a forgery gets.
    fn checks_of(&self, pass: &str) -> Option<&Authenticator> {
        let is_ours = decode_header(pass).is_ok_and(|header| header.alg == Algorithm::HS256);
        let [first, other] = if is_ours { [&self.ours, &self.of_shop] } else { [&self.of_shop, &self.ours] };
        first.as_ref().or(other.as_ref())
    }
}

/// Whether these claims name this sale or its drop.
fn is_for(claims: &Map<String, Value>, sale: &Sale) -> Result<(), &'static str> {
    match (claims.get("sale"), claims.get("drop")) {
        (Some(named), None) if named.as_str() == Some(sale.sale_id.as_str()) => Ok(()),
        (Some(_), None) => Err("is for another sale (sale)"),
        (None, Some(named)) => match &sale.in_drop {
            Some(drop) if named.as_str() == Some(drop.drop_id.as_str()) => Ok(()),
            Some(_) | None => Err("is for another drop (drop)"),
        },
        (Some(_), Some(_)) => Err("names a sale and a drop, expected one of the two"),
        (None, None) => Err("names neither a sale nor a drop, expected the claim sale or drop"),
    }
}

fn invalid(why: &str) -> Problem {
    Kind::PassInvalid.because(format!("Seckill-Pass {why}"))
}
