//! Buyers who try to get around a drop. Which tricks there are follows from the drop's file: one who may have one unit tries for two,
//! a sale that needs a pass meets forged ones.
//!
//! A trick may get its buyer what is anybody's right: of ten accounts of one person one may buy. The checker judges what came of it.

mod cheater;
mod lines;

use crate::accounts::Account;
use crate::checker::SaleTerms;
use crate::client::Client;
use crate::crowd::until;
use cheater::Cheater;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use tokio::task::JoinSet;

pub const EARLY: &str = "before the start";
pub const LATE: &str = "after the end";
pub const QUANTITY: &str = "more than the limit";
pub const ENCODED: &str = "the sale's id spelt otherwise";
pub const REPEATS: &str = "one token many times";
pub const TOKENS: &str = "many tokens";
pub const AT_ONCE: &str = "several sales at once";
pub const ACCOUNTS: &str = "many accounts of one person";
pub const PERSONS: &str = "several persons, or none";
pub const PASSES: &str = "no pass, or a bad one";
pub const NO_TOKEN: &str = "no purchase token, or a bad one";
pub const HIDDEN: &str = "before it was published";
pub const PRICE: &str = "another price";
pub const ORDERS: &str = "another buyer's order";
pub const CLICKS: &str = "clicks while others wait";
pub const ENTRIES: &str = "two entries";
pub const UNTIMELY: &str = "an entry too early or too late";
pub const LEAVES: &str = "leaving behind an offer";
pub const FOREIGN: &str = "another buyer's entry";

/// Cheaters of each trick, for each sale that it is tried in.
const CHEATERS: usize = 3;
/// Sales that a trick is tried in.
const SALES: usize = 4;

fn in_line(sale: &SaleTerms) -> bool {
    sale.line.is_some()
}

/// The tricks that are tried in this drop.
pub fn of(client: &Client) -> Vec<&'static str> {
    let terms = &client.terms;
    let any = |is: fn(&SaleTerms) -> bool| terms.sales.iter().any(is);
    let tricks = [
        (EARLY, true),
        (LATE, true),
        (QUANTITY, true),
        (ENCODED, true),
        (REPEATS, true),
        (TOKENS, true),
        (AT_ONCE, terms.limit.is_some() && terms.sales.len() > 1),
        (ACCOUNTS, terms.by_person),
        (PERSONS, terms.by_person),
        (PASSES, any(|sale| !sale.needs.is_empty())),
        (NO_TOKEN, any(|sale| sale.token_required)),
        (HIDDEN, any(|sale| sale.hidden_until_ms.is_some())),
        (PRICE, any(|sale| sale.pays && sale.raffle_closes_ms().is_none())),
        (ORDERS, any(|sale| sale.pays && sale.raffle_closes_ms().is_none())),
        (CLICKS, any(in_line)),
        (ENTRIES, any(in_line)),
        (UNTIMELY, any(in_line)),
        (LEAVES, any(in_line)),
        (FOREIGN, any(in_line)),
    ];
    tricks.into_iter().filter(|(_, tried)| *tried).map(|(trick, _)| trick).collect()
}

/// Sends them; each cheater is a task. How many.
pub fn send(client: &Arc<Client>, seed: u64, tasks: &mut JoinSet<()>) -> usize {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut count = 0;
    for trick in of(client) {
        let fits = |sale: &&SaleTerms| match trick {
            PASSES => !sale.needs.is_empty(),
            NO_TOKEN => sale.token_required,
            HIDDEN => sale.hidden_until_ms.is_some(),
            // In a raffle no click gets an order.
            PRICE | ORDERS => sale.pays && sale.raffle_closes_ms().is_none(),
            CLICKS | ENTRIES | UNTIMELY | LEAVES | FOREIGN => in_line(sale),
            _ => true,
        };
        let sales: Vec<&SaleTerms> = client.terms.sales.iter().filter(fits).collect();
        for sale in sales.choose_multiple(&mut chance, SALES).copied().cloned().collect::<Vec<_>>() {
            for _ in 0..CHEATERS {
                let name = format!("cheater-{count}");
                let account = Account::of(name.clone(), format!("person of {name}"), &sale, count);
                client.knows(&account);
                count += 1;
                let (opens, rest) =
                    (sale.starts_ms.max(sale.hidden_until_ms.unwrap_or(0)), chance.random_range(0..1_500));
                let at_ms = match trick {
                    EARLY => sale.starts_ms - 100 - rest,
                    HIDDEN => opens - 200 - rest,
                    LATE => sale.ends_ms - 200,
                    _ => lines::begins_ms(trick, &sale, rest).unwrap_or(opens + rest),
                };
                let cheater =
                    Cheater { client: client.clone(), sale: sale.clone(), account, trick, chance: chance.random() };
                tasks.spawn(async move {
                    until(at_ms).await;
                    cheater.plays().await;
                });
            }
        }
    }
    count
}
