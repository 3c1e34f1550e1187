//! Honest buyers: more of them than units. They come at the start and later, try again while a process is away, and wait where units
//! may come. Where orders have to be paid some pay, some cancel, and some do neither.

pub mod lines;

use crate::accounts::{Account, Showing};
use crate::checker::{Came, SaleTerms};
use crate::client::{Client, Purchase};
use crate::time::time_passes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use seckill::runtime::now_ms;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Buyers for each ten units.
const FOR_TEN_UNITS: i64 = 14;
/// Most of them come within this time after the start.
const RUSH_MS: i64 = 2_500;
/// Between two tries of one who waits.
const WAITS_MS: u64 = 400;
/// Who pays too late pays this long after the order was accepted.
const TOO_LATE_MS: u64 = 6_500;
/// Who did not pay comes back after this time, when the order has ended.
const COMES_BACK_MS: u64 = 4_000;

/// Waits until a moment, if it is to come.
pub async fn until(unix_ms: i64) {
    time_passes(u64::try_from(unix_ms - now_ms()).unwrap_or(0)).await;
}

/// Whether units may come to a sale after it was sold out.
fn may_come_back(sale: &SaleTerms, client: &Client) -> bool {
    let into = client.terms.sales.iter().any(|other| other.rollover_to.as_ref() == Some(&sale.sale_id));
    !sale.releases.is_empty() || sale.pays || into
}

/// Sends the crowd; each of its buyers is a task.
pub fn send(client: &Arc<Client>, seed: u64, tasks: &mut JoinSet<()>) -> usize {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut count = 0;
    for sale in client.terms.sales.iter().filter(|sale| sale.line.is_none()) {
        // What rolls over is wanted in the other sale.
        let rolled: i64 = client
            .terms
            .sales
            .iter()
            .filter(|other| other.rollover_to.as_ref() == Some(&sale.sale_id))
            .map(|other| other.stock)
            .sum();
        // Of a sale that rolls over some stays.
        let wanted =
            if sale.rollover_to.is_some() { sale.units() * 6 } else { (sale.units() + rolled) * FOR_TEN_UNITS };
        for _ in 0..(wanted / 10).max(4) {
            let name = format!("buyer-{count}");
            let account = Account::of(name.clone(), format!("person of {name}"), sale, count);
            client.knows(&account);
            let opens = sale.starts_ms.max(sale.hidden_until_ms.unwrap_or(0));
            let latest = (sale.ends_ms - 800).max(opens + 1);
            let rushes = chance.random_bool(0.5);
            let at_ms = chance.random_range(opens - 150..if rushes { (opens + RUSH_MS).min(latest) } else { latest });
            let (client, sale, seed) = (client.clone(), sale.clone(), chance.random());
            count += 1;
            tasks.spawn(async move {
                until(at_ms).await;
                Buyer { client, sale, account }.buys(StdRng::seed_from_u64(seed)).await;
            });
        }
    }
    count + lines::send(client, &mut chance, count, tasks)
}

/// One of them.
pub struct Buyer {
    pub client: Arc<Client>,
    pub sale: SaleTerms,
    pub account: Account,
}

impl Buyer {
    async fn buys(self, mut chance: StdRng) {
        let showing = self.client.signer().showing(&self.account, &self.sale);
        let most = self.sale.limit.unwrap_or(2).min(self.client.terms.limit.unwrap_or(2)).min(3);
        let quantity = chance.random_range(1..=u32::try_from(most).expect("few"));
        let Some(rid) = self.gets_one(&showing, quantity, &mut chance).await else { return };
        let Some(ended_unpaid) = self.deals_with(&rid, quantity, &showing, &mut chance).await else { return };
        if ended_unpaid && self.sale.limit_returns && chance.random_bool(0.5) {
            time_passes(COMES_BACK_MS).await;
            if let Some(again) = self.gets_one(&showing, quantity, &mut chance).await {
                let price = self.sale.price_cents * i64::from(quantity);
                self.client.pay(&again, (price, &self.sale.currency), None).await;
            }
        }
    }

    /// Tries until it is accepted, or cannot be any more.
    async fn gets_one(&self, showing: &Showing, quantity: u32, chance: &mut StdRng) -> Option<String> {
        let (buyer, sale) = (self.account.name.as_str(), self.sale.sale_id.as_str());
        let with_token = self.sale.token_required || chance.random_bool(0.5);
        let mut token = None;
        while now_ms() < self.sale.ends_ms + 500 {
            if with_token && token.is_none() {
                match self.client.token((buyer, sale), showing, None).await {
                    Ok(issued) => token = Some(issued.text),
                    // Not open, or not published yet.
                    Err((425 | 404, _)) => {
                        time_passes(WAITS_MS / 4).await;
                        continue;
                    }
                    Err((410, _)) if may_come_back(&self.sale, &self.client) => {
                        time_passes(WAITS_MS).await;
                        continue;
                    }
                    Err(_refused) => return None,
                }
            }
            let token = token.as_deref();
            let purchase = Purchase { buyer, sale, quantity, token, showing, encoded: false, trick: None };
            match self.client.buy(purchase).await {
                Came::Accepted(rid) => return Some(rid),
                Came::Refused { status: 425 | 404 | 423, .. } => time_passes(WAITS_MS / 4).await,
                Came::Refused { status: 410, code } if code != "P1-S6" && may_come_back(&self.sale, &self.client) => {
                    time_passes(WAITS_MS).await;
                }
                Came::Unknown | Came::Unsent => time_passes(WAITS_MS).await,
                Came::Refused { .. } => return None,
            }
        }
        None
    }

    /// Pays, cancels or does nothing; whether the order ends unpaid, nothing where it has no payment step.
    async fn deals_with(&self, rid: &str, quantity: u32, showing: &Showing, chance: &mut StdRng) -> Option<bool> {
        if !self.sale.pays {
            return None;
        }
        let fate = chance.random_range(0..10);
        if fate < 6 {
            let price = self.sale.price_cents * i64::from(quantity);
            let paid = self.client.pay(rid, (price, &self.sale.currency), None).await;
            return Some(paid == Some(false));
        }
        if fate == 6 {
            self.client.ask(Method::DELETE, &format!("/v1/orders/{rid}"), showing, None).await;
        }
        if fate == 7 && self.sale.line.is_some() {
            time_passes(TOO_LATE_MS).await;
            let price = self.sale.price_cents * i64::from(quantity);
            let paid = self.client.pay(rid, (price, &self.sale.currency), None).await;
            return Some(paid == Some(false));
        }
        Some(true)
    }
}
