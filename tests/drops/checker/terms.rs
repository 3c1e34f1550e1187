//! The shop's file as the checker reads it.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A drop.
#[derive(Debug, Clone)]
pub struct DropTerms {
    /// Its id.
    pub drop_id: String,
    /// Most units over all its sales; none: no limit.
    pub limit: Option<u64>,
    /// Whether limits count persons.
    pub by_person: bool,
    /// In the order of the file.
    pub sales: Vec<SaleTerms>,
}

/// A sale of it.
#[derive(Debug, Clone)]
pub struct SaleTerms {
    pub sale_id: String,
    pub stock: i64,
    pub limit: Option<u64>,
    pub price_cents: i64,
    pub currency: String,
    pub starts_ms: i64,
    pub ends_ms: i64,
    /// When, and how many.
    pub releases: Vec<(i64, i64)>,
    pub rollover_to: Option<String>,
    pub needs: Map<String, Value>,
    pub token_required: bool,
    /// When it was published, for a sale that was created hidden; none: never.
    pub hidden_until_ms: Option<i64>,
    /// Whether its orders have to be paid.
    pub pays: bool,
    /// Whether one that ends unpaid no longer counts.
    pub limit_returns: bool,
    /// Its line.
    pub line: Option<LineTerms>,
}

/// The line of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineTerms {
    /// Drawn after its close, Unix milliseconds.
    Raffle(i64),
    /// By arrival, while the sale is sold out.
    Waitlist,
}

fn moment(value: &Value) -> i64 {
    let text = value.as_str().expect("a time");
    chrono::DateTime::parse_from_rfc3339(text).expect("RFC 3339").timestamp_millis()
}

impl DropTerms {
    /// Reads a file; `published_ms`: when its hidden sales were published.
    pub fn of(file: &Value, published_ms: Option<i64>) -> Self {
        let sales = file["sales"].as_array().expect("sales");
        Self {
            drop_id: file["drop_id"].as_str().expect("an id").to_owned(),
            limit: file["limit"].as_u64(),
            by_person: file["limit_by"] == "person",
            sales: sales.iter().map(|sale| SaleTerms::of(sale, published_ms)).collect(),
        }
    }

    /// The sale of an id.
    pub fn sale(&self, id: &str) -> Option<&SaleTerms> {
        self.sales.iter().find(|sale| sale.sale_id == id)
    }

    /// When the first sale starts, and when the last one ends.
    pub fn window(&self) -> (i64, i64) {
        let starts = self.sales.iter().map(|sale| sale.starts_ms).min();
        (starts.expect("sales"), self.sales.iter().map(|sale| sale.ends_ms).max().expect("sales"))
    }

    /// Units of the whole drop.
    pub fn units(&self) -> i64 {
        self.sales.iter().map(SaleTerms::units).sum()
    }
}

impl LineTerms {
    fn of(sale: &Value) -> Option<Self> {
        match sale["line"].as_str()? {
            "raffle" => Some(Self::Raffle(moment(sale.get("line_closes_at").unwrap_or(&sale["starts_at"])))),
            "waitlist" => Some(Self::Waitlist),
            other => panic!("no kind of line: {other}"),
        }
    }
}

impl SaleTerms {
    /// When its raffle closes.
    pub fn raffle_closes_ms(&self) -> Option<i64> {
        match self.line? {
            LineTerms::Raffle(closes_ms) => Some(closes_ms),
            LineTerms::Waitlist => None,
        }
    }

    fn of(sale: &Value, published_ms: Option<i64>) -> Self {
        let text = |field: &str| sale[field].as_str().map(str::to_owned);
        let releases = sale["releases"].as_array().into_iter().flatten();
        Self {
            sale_id: text("sale_id").expect("an id"),
            stock: sale["stock"].as_i64().expect("units"),
            limit: sale["limit"].as_u64(),
            price_cents: sale["price_cents"].as_i64().unwrap_or(0),
            currency: text("currency").unwrap_or_else(|| "CNY".to_owned()),
            starts_ms: moment(&sale["starts_at"]),
            ends_ms: moment(&sale["ends_at"]),
            releases: releases.map(|one| (moment(&one["at"]), one["units"].as_i64().expect("units"))).collect(),
            rollover_to: text("rollover_to"),
            needs: sale["needs"].as_object().cloned().unwrap_or_default(),
            token_required: sale["token_required"] == true,
            hidden_until_ms: if sale["hidden"] == true { Some(published_ms.unwrap_or(i64::MAX)) } else { None },
            pays: sale["pay_within_s"].is_u64(),
            limit_returns: sale["limit_returns"] == true,
            line: LineTerms::of(sale),
        }
    }

    /// Units that its file gives it.
    pub fn units(&self) -> i64 {
        self.stock + self.releases.iter().map(|(_, units)| units).sum::<i64>()
    }

    /// Whether what is known of a buyer is what it needs.
    pub fn are_needs_met(&self, facts: &Map<String, Value>, has_pass: bool) -> bool {
        self.needs.iter().all(|(name, wanted)| match wanted.as_bool() {
            Some(wanted) => has_pass || !wanted,
            None => {
                let values = wanted.as_array().expect("values");
                facts.get(name).is_some_and(|has| values.contains(has))
            }
        })
    }
}

/// Sums by a key.
pub fn summed<K: Ord>(parts: impl IntoIterator<Item = (K, i64)>) -> BTreeMap<K, i64> {
    let mut sums = BTreeMap::new();
    for (key, units) in parts {
        *sums.entry(key).or_default() += units;
    }
    sums
}
