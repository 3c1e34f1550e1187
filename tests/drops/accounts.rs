//! Accounts of buyers: who they really are, and what they show to a sale.
//!
//! Facts are claims of the access token where the system reads them, for every other account, and else claims of a pass that the shop
//! signed for the account and the drop.

use crate::checker::{DropTerms, Identity, SaleTerms};
use crate::target::{CLAIMS, Target};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use seckill::runtime::now_ms;
use serde_json::{Map, Value, json};

/// An account.
#[derive(Debug, Clone)]
pub struct Account {
    /// `sub`.
    pub name: String,
    /// Who it really is.
    pub identity: Identity,
    /// Whether its facts are in its access token, where the system reads them there.
    pub by_token: bool,
}

/// What an attempt shows.
#[derive(Debug, Clone)]
pub struct Showing {
    /// The access token.
    pub access: String,
    /// `Seckill-Pass`.
    pub pass: Option<String>,
    /// Whether that is all that the sale needs.
    pub shows: bool,
}

/// A JWT of HS256.
fn signed(secret: &str, claims: &Value) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    encode(&Header::new(Algorithm::HS256), claims, &key).expect("a token")
}

fn in_s(seconds: i64) -> i64 {
    now_ms() / 1000 + seconds
}

/// The facts of a buyer for whom a sale is meant.
pub fn wanted(sale: &SaleTerms, number: usize) -> (Map<String, Value>, bool) {
    let facts = sale.needs.iter().filter_map(|(name, values)| {
        let values = values.as_array()?;
        Some((name.clone(), values[number % values.len()].clone()))
    });
    (facts.collect(), sale.needs.get("pass") == Some(&Value::Bool(true)))
}

impl Account {
    /// One of a person of this name, who has what `sale` needs.
    pub fn of(name: String, person: String, sale: &SaleTerms, number: usize) -> Self {
        let (facts, has_pass) = wanted(sale, number);
        Self { name, identity: Identity { person, facts, has_pass }, by_token: number.is_multiple_of(2) }
    }
}

/// What the shop signs.
pub struct Signer<'a> {
    pub target: &'a Target,
    pub terms: &'a DropTerms,
}

/// How a pass is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// None is shown.
    Missing,
    /// Signed by another key.
    Forged,
    /// Its time is over.
    Expired,
    /// Of another buyer.
    Borrowed,
    /// Of another drop.
    OtherDrop,
    /// With another payload than was signed.
    Edited,
    /// Not signed at all.
    Unsigned,
    /// Good, of a buyer who has another value of each fact.
    OtherFacts,
}

impl Bad {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Missing,
        Self::Forged,
        Self::Expired,
        Self::Borrowed,
        Self::OtherDrop,
        Self::Edited,
        Self::Unsigned,
        Self::OtherFacts,
    ];
}

fn part(value: &Value) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string())
}

impl Signer<'_> {
    /// An access token with these claims beside the usual ones.
    pub fn access(&self, name: &str, claims: &Map<String, Value>) -> String {
        let mut all = json!({ "iss": "seckill", "aud": "seckill", "sub": name, "exp": in_s(3_600) });
        all.as_object_mut().expect("claims").extend(claims.clone());
        signed(&self.target.secret, &all)
    }

    fn pass_claims(&self, name: &str, facts: &Map<String, Value>) -> Value {
        let mut claims = json!({ "sub": name, "drop": self.terms.drop_id, "exp": in_s(600), "jti": name });
        claims.as_object_mut().expect("claims").extend(facts.clone());
        claims
    }

    /// The facts that limits and needs read, the person among them where it is counted.
    fn facts(&self, account: &Account) -> Map<String, Value> {
        let mut facts = account.identity.facts.clone();
        if self.terms.by_person {
            facts.insert("person".to_owned(), account.identity.person.clone().into());
        }
        facts
    }

    /// What an honest buyer shows to a sale.
    pub fn showing(&self, account: &Account, sale: &SaleTerms) -> Showing {
        let facts = self.facts(account);
        let by_token = self.target.facts_by_token && account.by_token;
        let claims = CLAIMS.iter().filter_map(|(fact, claim)| Some(((*claim).to_owned(), facts.get(*fact)?.clone())));
        let access = self.access(&account.name, &if by_token { claims.collect() } else { Map::new() });
        let secret = self.target.pass_secret.as_ref();
        let pass = secret.filter(|_| account.identity.has_pass || !by_token && !facts.is_empty());
        let pass = pass.map(|secret| signed(secret, &self.pass_claims(&account.name, &facts)));
        let shows = sale.are_needs_met(&account.identity.facts, account.identity.has_pass);
        Showing { access, pass, shows }
    }

    /// What a buyer shows who has nothing that the sale needs, and tries it with a pass that is none.
    pub fn bad_showing(&self, name: &str, sale: &SaleTerms, bad: Bad) -> Showing {
        let secret = self.target.pass_secret.as_deref().unwrap_or_default();
        let (mut facts, _) = wanted(sale, 0);
        if self.terms.by_person {
            facts.insert("person".to_owned(), format!("person of {name}").into());
        }
        let mut claims = self.pass_claims(name, &facts);
        let pass = match bad {
            Bad::Missing => None,
            Bad::Forged => Some(signed("another-secret-of-the-length-that-is-needed", &claims)),
            Bad::Expired => {
                claims["exp"] = in_s(-3_600).into();
                Some(signed(secret, &claims))
            }
            Bad::Borrowed => {
                claims["sub"] = format!("{name}-friend").into();
                Some(signed(secret, &claims))
            }
            Bad::OtherDrop => {
                claims["drop"] = "another-drop".into();
                Some(signed(secret, &claims))
            }
            Bad::Edited => {
                let good = signed(secret, &json!({ "sub": name, "drop": "another-drop", "exp": in_s(600) }));
                let mut parts = good.split('.');
                let (head, _, signature) = (parts.next(), parts.next(), parts.next());
                Some(format!("{}.{}.{}", head.expect("a head"), part(&claims), signature.expect("a signature")))
            }
            Bad::Unsigned => Some(format!("{}.{}.", part(&json!({ "alg": "none", "typ": "JWT" })), part(&claims))),
            Bad::OtherFacts => {
                let others: Vec<String> = sale.needs.keys().filter(|fact| *fact != "pass").cloned().collect();
                for fact in &others {
                    claims[fact] = "something else".into();
                }
                // A sale that needs a pass and no fact has no other value of one: the pass is for another sale then.
                if others.is_empty() {
                    claims.as_object_mut().expect("claims").remove("drop");
                    claims["sale"] = "another-sale".into();
                }
                Some(signed(secret, &claims))
            }
        };
        Showing { access: self.access(name, &Map::new()), pass, shows: false }
    }

    /// What an account of a known person shows, where limits count persons.
    pub fn claimed_person(&self, name: &str, person: &Value) -> Showing {
        let claims = [("person".to_owned(), person.clone())].into_iter().collect();
        let secret = self.target.pass_secret.as_deref().unwrap_or_default();
        let pass = Some(signed(secret, &self.pass_claims(name, &claims)));
        Showing { access: self.access(name, &Map::new()), pass, shows: false }
    }
}
