//! Whether a buyer has what a sale needs (Q1): facts of the access token, and a pass; and who the person is (Q2).
//!
//! Input: a sale with needs, the buyer, and what the buyer's call shows. Output: nothing, or the refusal with what is needed. No
//! server is asked. A sale without needs reads none of it. Keeps the keys of passes; a crash leaves nothing.

mod passes;
mod shown;

pub(crate) use shown::ShownFacts;

use super::access_tokens::Authenticator;
use super::key_set::{AuthKeyError, KeySetRefresher};
use crate::config::{FactClaims, Settings};
use crate::domain::facts::fact_values;
use crate::domain::ids::UserId;
use crate::domain::needs::Needs;
use crate::domain::policy::LimitBy;
use crate::domain::sale::Sale;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::runtime::Stopper;
use crate::telemetry::count;
use passes::PassChecks;
use serde_json::Value;
use std::sync::Arc;

/// Judges buyers by what they show. One a process.
pub(crate) struct Entitlements {
    claims: FactClaims,
    passes: PassChecks,
}

impl Entitlements {
    /// Reads the keys of `[passes]`.
    ///
    /// # Errors
    /// A file of keys cannot be used.
    pub(crate) fn new(settings: &Settings) -> Result<Self, AuthKeyError> {
        let [ours, of_shop] = settings.pass_keys();
        let checks = |keys: Option<_>| keys.map(|keys| Authenticator::of_passes(&keys)).transpose();
        let passes = PassChecks { ours: checks(ours)?, of_shop: checks(of_shop)? };
        Ok(Self { claims: settings.auth.facts.clone(), passes })
    }

    /// What keeps the shop's keys up to date; once. None without such keys.
    pub(crate) fn refresher(&self, settings: &Settings, stopper: &Stopper) -> Option<KeySetRefresher> {
        let [_, of_shop] = settings.pass_keys();
        self.passes.of_shop.as_ref()?.refresher(&of_shop?, stopper)
    }

    /// Whether access tokens have facts.
    pub(super) fn reads_access_tokens(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Whether there are passes.
    pub(super) const fn reads_passes(&self) -> bool {
        self.passes.ours.is_some() || self.passes.of_shop.is_some()
    }

    /// Why this buyer may not buy in this sale, if so.
    #[must_use]
    pub(crate) fn refusal(&self, sale: &Sale, buyer: &UserId, shown: Option<&ShownFacts>) -> Option<Problem> {
        let needs = sale.needs.as_ref()?;
        let judged = match shown {
            Some(shown) => self.judge((needs, sale), buyer, shown),
            None => Err(not_entitled(needs)),
        };
        let problem = judged.err()?;
        count(State::P1(P1Entry::NotEntitled), 1);
        Some(problem)
    }

    /// The person behind the buyer, where the sale limits by person: the fact of the access token, else that of the pass.
    ///
    /// # Errors
    /// Neither has the fact, it has several values, or the pass is none. Without it the sale takes no purchase.
    pub(crate) fn person(
        &self,
        sale: &Sale,
        buyer: &UserId,
        shown: Option<&ShownFacts>,
    ) -> Result<Option<UserId>, Problem> {
        match sale.limit_by {
            LimitBy::Account => Ok(None),
            LimitBy::Person => {
                let person = shown.map(|shown| self.fact_of_person(sale, buyer, shown)).transpose();
                let person = person.and_then(|person| person.flatten().ok_or_else(no_person));
                person.map(Some).inspect_err(|_refused| count(State::P1(P1Entry::NotEntitled), 1))
            }
        }
    }

    fn fact_of_person(&self, sale: &Sale, buyer: &UserId, shown: &ShownFacts) -> Result<Option<UserId>, Problem> {
        let by_token = self.claims.of(LimitBy::FACT).and_then(|claim| shown.token_claims().remove(claim));
        if let Some(claim) = by_token {
            return one_person(&claim);
        }
        let pass = shown.pass()?.map(|text| self.passes.claims(text, sale, buyer)).transpose()?;
        pass.and_then(|mut claims| claims.remove(LimitBy::FACT)).map_or(Ok(None), |claim| one_person(&claim))
    }

    /// A pass is read only where the access token does not do.
    fn judge(&self, (needs, sale): (&Arc<Needs>, &Sale), buyer: &UserId, shown: &ShownFacts) -> Result<(), Problem> {
        let token = shown.token_claims();
        let by_token = |fact: &str, value: &str| {
            let claim = self.claims.of(fact).and_then(|claim| token.get(claim));
            claim.is_some_and(|claim| has_value(claim, value))
        };
        if needs.are_met(by_token, false) {
            return Ok(());
        }
        let pass = shown.pass()?.map(|text| self.passes.claims(text, sale, buyer)).transpose()?;
        let by_either = |fact: &str, value: &str| {
            let claim = pass.as_ref().and_then(|claims| claims.get(fact));
            by_token(fact, value) || claim.is_some_and(|claim| has_value(claim, value))
        };
        if needs.are_met(by_either, pass.is_some()) { Ok(()) } else { Err(not_entitled(needs)) }
    }
}

/// The person that a claim names; several are none.
fn one_person(claim: &Value) -> Result<Option<UserId>, Problem> {
    match fact_values(claim).as_slice() {
        [] => Ok(None),
        [person] => UserId::parse(person).map(Some).map_err(|error| Kind::NotEntitled.because(error.to_string())),
        [_, _, ..] => Err(Kind::NotEntitled.because("the fact person has several values, expected one")),
    }
}

/// The sale limits by person, and the person is not known.
fn no_person() -> Problem {
    Kind::NotEntitled.because_both(
        "this sale counts its limit by person: the fact person is needed, in the access token or in a pass (Seckill-Pass)",
        "该活动按人限购：需要事实 person，写在访问令牌或通行证（Seckill-Pass）中",
    )
}

fn has_value(claim: &Value, value: &str) -> bool {
    fact_values(claim).iter().any(|has| has == value)
}

/// The sale needs something that was not shown.
fn not_entitled(needs: &Arc<Needs>) -> Problem {
    let [english, chinese] = needs.words();
    Kind::NotEntitled
        .because_both(format!("this sale needs {english}"), format!("该活动需要：{chinese}"))
        .needs(needs.clone())
}
