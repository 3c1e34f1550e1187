//! `index_cost`: what the indexes of `orders` that answer questions cost each order that lands, in processor time of the database.
//!
//! The same number of orders lands with all of them, without each of them, and without all; in every round each in turn, in
//! another order, so that a table that grows weighs on all alike. Once for a sale without a payment step, once with one. Buyers come
//! in no order of their names.

use super::bar::Bar;
use super::baseline::mysql_indexes::{self, OF_ORDERS};
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::fill::{BuyerOrder, fill_with};
use super::growth_cost::OrderCost;
use super::sizes::{Sizes, Spinner};
use super::{landing, relay};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use serde_json::{Map, Value, json};

/// Times that each is measured.
const ROUNDS: usize = 5;
/// Orders that land unmeasured first: the table is to have some depth.
const BEFORE: u64 = 200_000;
const STOCK: i64 = 100_000_000;
const TERMS: PaymentTerms = PaymentTerms { pay_within_s: 86_400, pay_grace_s: 0, limit_returns: false };

/// Which indexes are there.
#[derive(Debug, Clone)]
struct Kept {
    name: String,
    indexes: Vec<&'static str>,
}

fn variants() -> Vec<Kept> {
    let all: Vec<&str> = OF_ORDERS.iter().map(|(name, _)| *name).collect();
    let without = |left_out: &&'static str| Kept {
        name: format!("without {left_out}"),
        indexes: all.iter().copied().filter(|name| name != left_out).collect(),
    };
    let mut variants = vec![Kept { name: "all".to_owned(), indexes: all.clone() }];
    variants.extend(all.iter().map(without));
    variants.push(Kept { name: "without all".to_owned(), indexes: Vec::new() });
    variants
}

/// Measures both kinds of sale. Nothing may be under way, and only the api role may run.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    spinner.say("orders before");
    let sale = environment.sale("index-before", STOCK, Some(1)).await?;
    landed(environment, &sale, BEFORE.min(sizes.entries * 4), sizes).await?;
    let plain = kind(environment, sizes, (None, "index_cost"), spinner).await?;
    let paying = kind(environment, sizes, (Some(TERMS), "index_cost_paying"), spinner).await?;
    Ok(vec![plain, paying])
}

async fn kind(
    environment: &mut Environment,
    sizes: &Sizes,
    (terms, name): (Option<PaymentTerms>, &'static str),
    spinner: &Spinner,
) -> Result<Bar, Failure> {
    let variants = variants();
    let mut us: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
    for round in 0..ROUNDS {
        spinner.say(&format!("{name}, round {}", round + 1));
        for turn in 0..variants.len() {
            let at = (turn + round) % variants.len();
            let kept = &variants[at].indexes;
            let sale = match terms {
                Some(terms) => environment.paying_sale("index", STOCK, terms).await?,
                None => environment.sale("index", STOCK, Some(1)).await?,
            };
            mysql_indexes::keep(&environment.servers.db, kept).await?;
            let cost = landed(environment, &sale, sizes.entries, sizes).await;
            // Before the error, if it is one: the audit at the end needs them.
            mysql_indexes::restore(&environment.servers.db, kept).await?;
            us[at].push(cost?.by_process_us.get("mysql").copied().unwrap_or(0.0));
        }
    }
    Ok(bar(name, &variants, &us, sizes.entries))
}

fn bar(name: &'static str, variants: &[Kept], us: &[Vec<f64>], count: u64) -> Bar {
    let medians: Vec<f64> = us.iter().map(|rounds| median(rounds)).collect();
    let more: Map<String, Value> = variants
        .iter()
        .zip(us)
        .map(|(kept, rounds)| (kept.name.clone(), json!({ "median_us": median(rounds), "rounds_us": rounds })))
        .collect();
    let words: Vec<String> = variants.iter().zip(&medians).map(|(kept, us)| format!("{} {us:.2}", kept.name)).collect();
    let note = format!(
        "µs of the database's processor time for an order that lands, median of {ROUNDS} rounds of {count} orders: {}",
        words.join(", ")
    );
    let (all, none) = (medians.first().copied().unwrap_or(0.0), medians.last().copied());
    Bar::of(name, all, "µs").beside(none).note(note).more(json!({ "orders": count, "variants": more }))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// `count` orders land; what that cost.
async fn landed(environment: &mut Environment, sale: &SaleId, count: u64, sizes: &Sizes) -> Result<OrderCost, Failure> {
    let mut relayer = relay::relayer(environment);
    fill_with(environment, sale, count, BuyerOrder::Scattered).await?;
    relay::empty(environment, &mut relayer, sizes).await?;
    let landers = landing::landers(environment);
    let watch = CpuMeter::start_as("seckill", environment);
    landing::empty(environment, landers, count, sizes).await?;
    Ok(OrderCost::of(&watch.end(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_is_left_out_once_and_all_of_them() {
        let counts: Vec<usize> = variants().iter().map(|kept| kept.indexes.len()).collect();
        assert_eq!(counts, [2, 1, 1, 0]);
        let us = [[5.0, 7.0, 6.0], [4.0; 3], [4.0; 3], [3.0; 3]].map(Vec::from);
        let bar = bar("index_cost", &variants(), &us, 10);
        assert_eq!((bar.value, bar.baseline, bar.ratio), (6.0, Some(3.0), Some(2.0)));
    }
}
