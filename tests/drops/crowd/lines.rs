//! Honest buyers of sales with lines. Of a raffle they enter one or several sales before its close, some leave again, and they wait for an
//! offer. Of a waiting list they click until it is sold out, and enter it then. What they are given some pay in time, some too late, some
//! cancel, and some do nothing.

use super::{Buyer, COMES_BACK_MS, WAITS_MS, until};
use crate::accounts::{Account, Showing};
use crate::checker::{Came, LineTerms, SaleTerms, Seen};
use crate::client::{Client, Entrance, Purchase};
use crate::time::time_passes;
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use seckill::runtime::now_ms;
use std::iter::repeat_n;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Buyers who enter a raffle for each ten units, and those who only click.
const ENTRANTS: i64 = 20;
const CLICKERS: i64 = 3;
/// Buyers of a sale with a waiting list for each ten units.
const FOR_LIST: i64 = 24;
/// They enter a raffle within this time before its close.
pub const ENTERS_MS: i64 = 6_000;
/// Between two calls for one's entry, at least.
const ASKS_MS: u64 = 1_200;

fn buyers(sale: &SaleTerms, for_ten_units: i64) -> usize {
    usize::try_from(sale.units() * for_ten_units / 10).expect("few")
}

/// Sends those of all sales with lines, from buyer number `count` on. How many.
pub(super) fn send(client: &Arc<Client>, chance: &mut StdRng, mut count: usize, tasks: &mut JoinSet<()>) -> usize {
    let of = |is: fn(LineTerms) -> bool| -> Vec<SaleTerms> {
        client.terms.sales.iter().filter(|sale| sale.line.is_some_and(is)).cloned().collect()
    };
    let raffles = of(|line| matches!(line, LineTerms::Raffle(_)));
    let lists = of(|line| line == LineTerms::Waitlist);
    let begun = count;
    let mut buyer = |sale: &SaleTerms, chance: &mut StdRng| {
        let name = format!("buyer-{count}");
        let account = Account::of(name.clone(), format!("person of {name}"), sale, count);
        client.knows(&account);
        count += 1;
        let buyer = Buyer { client: client.clone(), sale: sale.clone(), account };
        (buyer, StdRng::seed_from_u64(chance.random()))
    };
    let units: i64 = raffles.iter().map(|sale| sale.stock).sum();
    for _ in 0..units * ENTRANTS / 10 {
        let many = chance.random_range(1..=raffles.len());
        let wanted: Vec<SaleTerms> = raffles.choose_multiple(chance, many).cloned().collect();
        let (buyer, seed) = buyer(&wanted[0], chance);
        let closes_ms = wanted[0].raffle_closes_ms().expect("a raffle");
        let at_ms = chance.random_range(closes_ms - ENTERS_MS..closes_ms - 300);
        tasks.spawn(async move {
            until(at_ms).await;
            buyer.enters_all(&wanted, seed).await;
        });
    }
    for sale in raffles.iter().flat_map(|sale| repeat_n(sale, buyers(sale, CLICKERS))) {
        let (buyer, mut seed) = buyer(sale, chance);
        tasks.spawn(async move {
            until(buyer.sale.starts_ms + seed.random_range(0..3_000)).await;
            buyer.clicks(seed).await;
        });
    }
    for sale in lists.iter().flat_map(|sale| repeat_n(sale, buyers(sale, FOR_LIST))) {
        let (buyer, mut seed) = buyer(sale, chance);
        let rushes = seed.random_bool(0.7);
        let latest = if rushes { sale.starts_ms + super::RUSH_MS } else { sale.ends_ms - 3_000 };
        let at_ms = seed.random_range(sale.starts_ms - 150..latest);
        tasks.spawn(async move {
            until(at_ms).await;
            buyer.clicks_or_enters(seed).await;
        });
    }
    count - begun
}

impl Buyer {
    /// The entrance to its line.
    pub fn entrance<'a>(&'a self, showing: &'a Showing, quantity: u32) -> Entrance<'a> {
        let (buyer, sale) = (self.account.name.as_str(), self.sale.sale_id.as_str());
        Entrance { buyer, sale, quantity, showing, trick: None }
    }

    /// Enters each of these, and leaves some; takes what is offered.
    async fn enters_all(&self, wanted: &[SaleTerms], mut chance: StdRng) {
        let of =
            |sale: &SaleTerms| Self { client: self.client.clone(), sale: sale.clone(), account: self.account.clone() };
        let places = wanted.iter().map(|sale| (of(sale), StdRng::seed_from_u64(chance.random())));
        let places: Vec<(Self, StdRng)> = places.collect();
        join_all(places.into_iter().map(async |(place, mut chance)| {
            let showing = place.client.signer().showing(&place.account, &place.sale);
            let entrance = place.entrance(&showing, 1);
            if place.gets_in(entrance).await.is_none() {
                return;
            }
            if chance.random_bool(0.15) {
                let left = place.leaves(entrance).await;
                if !left || chance.random_bool(0.5) || place.gets_in(entrance).await.is_none() {
                    return;
                }
            }
            place.takes_its_turn(&showing, &mut chance).await;
        }))
        .await;
    }

    /// Leaves with the entry that it has.
    async fn leaves(&self, entrance: Entrance<'_>) -> bool {
        let mine = self.client.mine((entrance.buyer, entrance.sale), entrance.showing).await;
        let Some(mine) = mine else { return false };
        self.client.leave(entrance, &mine.entry).await == 204
    }

    /// Enters as soon as entries are taken, until none is taken any more. Nothing: it is not in the line.
    pub async fn gets_in(&self, entrance: Entrance<'_>) -> Option<()> {
        while now_ms() < self.sale.ends_ms {
            match self.client.enter(entrance).await {
                Came::Accepted(_) => return Some(()),
                // The answer to an earlier try was lost.
                Came::Refused { code, .. } if code == "ALREADY_ENTERED" => return Some(()),
                Came::Refused { status: 404, .. } => {}
                Came::Refused { code, .. } if code == "LINE_AWAITED" => {}
                Came::Refused { .. } => return None,
                Came::Unknown | Came::Unsent => {}
            }
            time_passes(WAITS_MS / 2).await;
        }
        None
    }

    /// Waits until it is offered units, and deals with the order; whether that ended unpaid. Nothing: it got none.
    pub async fn takes_its_turn(&self, showing: &Showing, chance: &mut StdRng) -> Option<bool> {
        let mine = self.offered(showing, chance).await?;
        self.deals_with(&mine.rid?, mine.quantity, showing, chance).await
    }

    /// Its entry, once that has got its offer.
    pub async fn offered(&self, showing: &Showing, chance: &mut StdRng) -> Option<Seen> {
        // Before the close an entry says nothing new.
        until(self.sale.raffle_closes_ms().unwrap_or(0)).await;
        while now_ms() < self.sale.ends_ms + 1_000 {
            let mine = self.client.mine((&self.account.name, &self.sale.sale_id), showing).await;
            match mine.as_ref().map(|mine| mine.state.as_str()) {
                Some("OFFERED") => return mine,
                Some("WAITING") | None => {}
                Some(_over) => return None,
            }
            time_passes(ASKS_MS + chance.random_range(0..600)).await;
        }
        None
    }

    /// Clicks, while that is the way to get a unit, and enters the waiting list when it is sold out.
    async fn clicks_or_enters(&self, mut chance: StdRng) {
        let showing = self.client.signer().showing(&self.account, &self.sale);
        let quantity = if chance.random_bool(0.6) { 1 } else { 2 };
        for _ in 0..2 {
            let Some(ended_unpaid) = self.gets_units(&showing, quantity, &mut chance).await else { return };
            if !ended_unpaid || chance.random_bool(0.3) {
                return;
            }
            time_passes(COMES_BACK_MS).await;
        }
    }

    /// By click or by the list; whether it ended unpaid. Nothing: it got none.
    async fn gets_units(&self, showing: &Showing, quantity: u32, chance: &mut StdRng) -> Option<bool> {
        while now_ms() < self.sale.ends_ms {
            match self.client.buy(self.click(showing, quantity)).await {
                Came::Accepted(rid) => return self.deals_with(&rid, quantity, showing, chance).await,
                // A purchase without an answer may have been it: another one is within the limit, or is refused by it.
                Came::Refused { status: 425 | 404 | 423, .. } | Came::Unsent | Came::Unknown => {}
                Came::Refused { status: 409 | 410, code }
                    if ["ONLY_BY_LINE", "P1-S2", "P2-R2"].contains(&code.as_str()) =>
                {
                    match self.client.enter(self.entrance(showing, quantity)).await {
                        Came::Accepted(_) => return self.takes_its_turn(showing, chance).await,
                        Came::Refused { code, .. } if code == "ALREADY_ENTERED" => {
                            return self.takes_its_turn(showing, chance).await;
                        }
                        Came::Refused { .. } | Came::Unknown | Came::Unsent => {}
                    }
                }
                Came::Refused { .. } => return None,
            }
            time_passes(WAITS_MS / 2).await;
        }
        None
    }

    /// Clicks now and then: when no entry waits any more the units are anybody's.
    async fn clicks(&self, mut chance: StdRng) {
        let showing = self.client.signer().showing(&self.account, &self.sale);
        while now_ms() < self.sale.ends_ms - 500 {
            if let Came::Accepted(rid) = self.client.buy(self.click(&showing, 1)).await {
                self.deals_with(&rid, 1, &showing, &mut chance).await;
                return;
            }
            time_passes(ASKS_MS + chance.random_range(0..900)).await;
        }
    }

    fn click<'a>(&'a self, showing: &'a Showing, quantity: u32) -> Purchase<'a> {
        let (buyer, sale) = (self.account.name.as_str(), self.sale.sale_id.as_str());
        Purchase { buyer, sale, quantity, token: None, showing, encoded: false, trick: None }
    }
}
