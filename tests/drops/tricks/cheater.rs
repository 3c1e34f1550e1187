//! What a cheater does, by its trick.

use super::{
    ACCOUNTS, AT_ONCE, EARLY, ENCODED, HIDDEN, LATE, NO_TOKEN, ORDERS, PASSES, PERSONS, PRICE, QUANTITY, REPEATS,
    TOKENS,
};
use crate::accounts::{Account, Bad, Showing};
use crate::checker::{Came, SaleTerms};
use crate::client::{Client, Purchase};
use crate::crowd::until;
use futures::future::join_all;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use reqwest::Method;
use serde_json::json;
use std::sync::Arc;

/// Tokens, repeats and accounts of one cheater.
pub(super) const MANY: usize = 8;

/// One of them.
pub(super) struct Cheater {
    pub(super) client: Arc<Client>,
    pub(super) sale: SaleTerms,
    pub(super) account: Account,
    pub(super) trick: &'static str,
    pub(super) chance: u64,
}

impl Cheater {
    /// Tries its trick.
    pub(super) async fn plays(self) {
        let showing = self.client.signer().showing(&self.account, &self.sale);
        match self.trick {
            EARLY => self.many(&showing, 4).await,
            LATE => self.late(&showing).await,
            QUANTITY => self.too_many(&showing).await,
            ENCODED => self.encoded(&showing).await,
            REPEATS => self.repeats(&showing).await,
            TOKENS => self.tokens(&showing).await,
            AT_ONCE => self.at_once(&showing).await,
            ACCOUNTS => self.accounts().await,
            PERSONS => self.persons().await,
            PASSES => self.passes().await,
            NO_TOKEN => self.no_token(&showing).await,
            HIDDEN => self.guesses(&showing).await,
            PRICE => self.price(&showing).await,
            ORDERS => self.orders(&showing).await,
            _ => self.plays_in_line(&showing).await,
        }
    }

    /// A purchase of this cheater in this sale.
    fn purchase<'a>(&'a self, showing: &'a Showing, token: Option<&'a str>) -> Purchase<'a> {
        let (buyer, sale) = (self.account.name.as_str(), self.sale.sale_id.as_str());
        Purchase { buyer, sale, quantity: 1, token, showing, encoded: false, trick: Some(self.trick) }
    }

    pub(super) async fn asks_token(&self, showing: &Showing) -> Option<String> {
        let asked = self.client.token((&self.account.name, &self.sale.sale_id), showing, Some(self.trick)).await;
        asked.ok().map(|token| token.text)
    }

    /// Buys once.
    pub(super) async fn click(&self, showing: &Showing, token: Option<&str>, encoded: bool) {
        self.client.buy(Purchase { encoded, ..self.purchase(showing, token) }).await;
    }

    /// Buys often, one after another, by both spellings, with a token where one is needed and given.
    async fn many(&self, showing: &Showing, times: usize) {
        for at in 0..times {
            let token = if self.sale.token_required { self.asks_token(showing).await } else { None };
            let purchase = self.purchase(showing, token.as_deref());
            self.client.buy(Purchase { encoded: at % 2 == 1, ..purchase }).await;
        }
    }

    /// With a token of before the end, and without.
    async fn late(&self, showing: &Showing) {
        let token = self.asks_token(showing).await;
        until(self.sale.ends_ms + 20).await;
        for token in [token.as_deref(), None] {
            for encoded in [false, true] {
                self.client.buy(Purchase { encoded, ..self.purchase(showing, token) }).await;
            }
        }
    }

    async fn too_many(&self, showing: &Showing) {
        let most = [self.sale.limit, self.client.terms.limit].into_iter().flatten().min().unwrap_or(1);
        let more = u32::try_from(most).expect("few") + 1;
        for quantity in [more, 0, more * 10, u32::MAX] {
            let token = if self.sale.token_required { self.asks_token(showing).await } else { None };
            self.client.buy(Purchase { quantity, ..self.purchase(showing, token.as_deref()) }).await;
        }
    }

    /// Plainly and otherwise at once: one sale, one limit.
    async fn encoded(&self, showing: &Showing) {
        let tokens = join_all((0..MANY).map(|_| self.asks_token(showing))).await;
        let needed = self.sale.token_required;
        let tries = tokens.iter().enumerate().map(|(at, token)| {
            let token = token.as_deref().filter(|_| needed || at % 2 == 0);
            self.client.buy(Purchase { encoded: at % 3 > 0, ..self.purchase(showing, token) })
        });
        join_all(tries).await;
    }

    /// At once and again, also for another quantity and by another account.
    async fn repeats(&self, showing: &Showing) {
        let Some(token) = self.asks_token(showing).await else { return };
        join_all((0..MANY).map(|_| self.client.buy(self.purchase(showing, Some(&token))))).await;
        self.client.buy(Purchase { encoded: true, ..self.purchase(showing, Some(&token)) }).await;
        self.client.buy(Purchase { quantity: 2, ..self.purchase(showing, Some(&token)) }).await;
        let other = self.another(0, &format!("person of {}-0", self.account.name));
        let showing = self.client.signer().showing(&other, &self.sale);
        self.client.buy(Purchase { buyer: &other.name, ..self.purchase(&showing, Some(&token)) }).await;
    }

    async fn tokens(&self, showing: &Showing) {
        let tokens = join_all((0..MANY).map(|_| self.asks_token(showing))).await;
        let tries = tokens.iter().flatten().map(|token| self.client.buy(self.purchase(showing, Some(token))));
        join_all(tries).await;
    }

    /// Each sale of the drop that sells now, the own one twice.
    async fn at_once(&self, showing: &Showing) {
        let open = |sale: &&SaleTerms| sale.starts_ms <= self.sale.starts_ms && self.sale.starts_ms < sale.ends_ms;
        let mut sales: Vec<&SaleTerms> = self.client.terms.sales.iter().filter(open).collect();
        sales.push(&self.sale);
        let mut chance = StdRng::seed_from_u64(self.chance);
        let chosen: Vec<&SaleTerms> = sales.choose_multiple(&mut chance, MANY).copied().collect();
        let tries = chosen.into_iter().map(async |sale| {
            let most = sale.limit.unwrap_or(1).min(self.client.terms.limit.unwrap_or(1));
            let quantity = u32::try_from(most).expect("few");
            // One who has what the own sale needs may lack it in another one.
            let has = &self.account.identity;
            let showing = Showing { shows: sale.are_needs_met(&has.facts, has.has_pass), ..showing.clone() };
            self.client.buy(Purchase { sale: &sale.sale_id, quantity, ..self.purchase(&showing, None) }).await;
        });
        join_all(tries).await;
    }

    /// Another account, of this person.
    pub(super) fn another(&self, number: usize, person: &str) -> Account {
        let account = Account::of(format!("{}-{number}", self.account.name), person.to_owned(), &self.sale, number);
        self.client.knows(&account);
        account
    }

    async fn accounts(&self) {
        let most = u32::try_from(self.client.terms.limit.or(self.sale.limit).unwrap_or(1)).expect("few");
        let sales: Vec<&SaleTerms> = self.client.terms.sales.iter().collect();
        let tries = (0..MANY + 4).map(async |number| {
            let account = self.another(number, &self.account.identity.person);
            let sale = if number % 2 == 0 { &self.sale } else { sales[number % sales.len()] };
            let showing = self.client.signer().showing(&account, sale);
            let quantity = if number % 3 == 0 { most } else { 1 };
            let purchase =
                Purchase { buyer: &account.name, sale: &sale.sale_id, quantity, ..self.purchase(&showing, None) };
            self.client.buy(Purchase { encoded: number % 4 == 3, ..purchase }).await;
        });
        join_all(tries).await;
    }

    /// Two persons, an empty one, a list of none, one with a tab; and no fact at all.
    async fn persons(&self) {
        let (mine, signer) = (&self.account.identity.person, self.client.signer());
        for claim in
            [json!([mine, "somebody else"]), json!(""), json!([]), json!(format!("{mine}\tand more")), json!(null)]
        {
            let showing = signer.claimed_person(&self.account.name, &claim);
            self.client.buy(self.purchase(&showing, None)).await;
        }
        let nothing =
            Showing { access: signer.access(&self.account.name, &serde_json::Map::new()), pass: None, shows: false };
        self.client.buy(self.purchase(&nothing, None)).await;
    }

    async fn passes(&self) {
        // These accounts have nothing.
        for (number, bad) in Bad::ALL.into_iter().enumerate() {
            let mut account = self.another(number, &format!("person of {}-{number}", self.account.name));
            account.identity.facts.clear();
            account.identity.has_pass = false;
            self.client.knows(&account);
            let showing = self.client.signer().bad_showing(&account.name, &self.sale, bad);
            let asked = self.client.token((&account.name, &self.sale.sale_id), &showing, Some(self.trick)).await;
            let token = asked.as_ref().ok().map(|token| token.text.as_str());
            for encoded in [false, true] {
                let purchase = Purchase { buyer: &account.name, ..self.purchase(&showing, token) };
                self.client.buy(Purchase { encoded, ..purchase }).await;
            }
        }
    }

    async fn no_token(&self, showing: &Showing) {
        let friend = self.another(0, &format!("person of {}-0", self.account.name));
        let friends = self.client.signer().showing(&friend, &self.sale);
        let borrowed = self.client.token((&friend.name, &self.sale.sale_id), &friends, None).await;
        let edited = borrowed.as_ref().ok().map(|token| {
            let (head, last) = token.text.split_at(token.text.len() - 1);
            format!("{head}{}", if last == "A" { "B" } else { "A" })
        });
        let tokens = [None, Some("1".to_owned()), borrowed.ok().map(|token| token.text), edited];
        for token in &tokens {
            for encoded in [false, true] {
                self.client.buy(Purchase { encoded, ..self.purchase(showing, token.as_deref()) }).await;
            }
        }
    }

    async fn guesses(&self, showing: &Showing) {
        let sale = &self.sale.sale_id;
        for path in [format!("/v1/sales/{sale}"), format!("/v1/drops/{}", self.client.terms.drop_id)] {
            self.client.ask(Method::GET, &path, showing, Some(self.trick)).await;
        }
        self.many(showing, 2).await;
        self.client.buy(self.purchase(showing, Some("guessed"))).await;
    }

    /// Buys, and has another amount reported as paid than it costs; in another currency, too.
    async fn price(&self, showing: &Showing) {
        let bought = self.client.buy(Purchase { trick: None, ..self.purchase(showing, None) }).await;
        let Came::Accepted(rid) = bought else { return };
        let cheapest = self.client.terms.sales.iter().map(|sale| sale.price_cents).min().unwrap_or(0);
        let less = if cheapest < self.sale.price_cents { cheapest } else { self.sale.price_cents / 2 };
        self.client.pay(&rid, (less, &self.sale.currency), Some(self.trick)).await;
        self.client.pay(&rid, (1, &self.sale.currency), Some(self.trick)).await;
    }

    /// Buys, and another account asks for the order, and cancels it.
    async fn orders(&self, showing: &Showing) {
        let bought = self.client.buy(Purchase { trick: None, ..self.purchase(showing, None) }).await;
        let Came::Accepted(rid) = bought else { return };
        let other = self.another(0, &format!("person of {}-0", self.account.name));
        let theirs = self.client.signer().showing(&other, &self.sale);
        let (sale, trick) = (&self.sale.sale_id, Some(self.trick));
        for (method, path) in [
            (Method::GET, format!("/v1/sales/{sale}/orders/{rid}")),
            (Method::GET, format!("/v1/orders/{rid}")),
            (Method::DELETE, format!("/v1/orders/{rid}")),
        ] {
            self.client.ask(method, &path, &theirs, trick).await;
        }
        let price = (self.sale.price_cents, self.sale.currency.as_str());
        self.client.pay(&rid, price, None).await;
    }
}
