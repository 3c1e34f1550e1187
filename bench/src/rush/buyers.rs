//! The buyers of a rush: an open loop in which each comes when it is due, opens a connection of its own, and buys once.
//!
//! Input: an api, a sale, names without a purchase. Output: what each buyer saw. A dropped rush leaves what was sent.
//! Three of four buyers close their connection with the answer; the fourth keeps it, asks again on it, and holds it until
//! the end, as browsers do.

use super::seen::{RushOutcome, Seen};
use crate::loadgen::access_tokens::AccessTokens;
use crate::loadgen::http::{Connection, ServerAddress};
use crate::loadgen::schedule::Schedule;
use crate::request_texts::purchase_in;
use seckill::cli::Failure;
use seckill::config::Secret;
use seckill::domain::ids::SaleId;
use seckill::runtime::Stopper;
use seckill::token_issuer::TokenIssuer;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// All buyers are due within this time.
const WITHIN: Duration = Duration::from_secs(1);
/// One of this number keeps its connection.
const KEEPS: u64 = 4;
/// Longest wait for a connection, and again for an answer; a SYN is repeated after 1, 3, 7 and 15 seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// The name of the api must be resolved within this time.
const RESOLVE: Duration = Duration::from_secs(5);
/// Buyers that share a source address, about; it has 28,000 ports, and those of an earlier rush stay taken for a minute.
const AN_ADDRESS: u64 = 2_500;
/// The first source address; the api's own is the one before.
const FIRST_SOURCE: u32 = u32::from_be_bytes([127, 0, 0, 2]);

/// Part of a crowd, as one process gets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RushPlan {
    pub api_url: String,
    pub sale: SaleId,
    pub secret: String,
    pub issuer: String,
    pub audience: String,
    pub buyers: u64,
    /// Number of the first buyer.
    pub first: u64,
    /// How many source addresses the parts before this one have.
    pub addresses_before: u32,
}

impl RushPlan {
    /// Source addresses of this number of buyers.
    pub fn addresses(buyers: u64) -> u32 {
        u32::try_from(buyers.div_ceil(AN_ADDRESS).max(1)).unwrap_or(u32::MAX)
    }
}

/// A crowd behind the door.
pub(super) struct Rush {
    plan: RushPlan,
    target: ServerAddress,
    tokens: AccessTokens,
    stop: Stopper,
}

/// What a buyer saw, and the connection it holds.
type Came = (Seen, Option<Connection>);

impl Rush {
    /// Signs a new access token for each buyer.
    pub async fn prepare(plan: RushPlan, stop: Stopper) -> Result<Self, Failure> {
        let issuer = TokenIssuer::new(&Secret::new(plan.secret.clone()), &plan.issuer, &plan.audience)?;
        // Names of no other scenario: a token is the same text again when a buyer of the same name gets it in the same second.
        let numbers = plan.first..plan.first + plan.buyers;
        let names: Vec<String> = numbers.map(|number| format!("rush-{number:08}")).collect();
        let tokens = AccessTokens::signed(issuer, names).await?;
        let target = ServerAddress::resolve(&plan.api_url, RESOLVE).await?;
        Ok(Self { plan, target, tokens, stop })
    }

    /// Lets them come; ends when the last one has an answer or gave up.
    pub async fn run(self) -> Vec<Seen> {
        let rush = Arc::new(self);
        let capacity = usize::try_from(rush.plan.buyers).unwrap_or(usize::MAX).max(1);
        let (report, mut reports) = mpsc::channel(capacity);
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let per_s = rush.plan.buyers as f64 / WITHIN.as_secs_f64();
        let schedule = Schedule::for_one(per_s, rush.plan.buyers, rush.stop.clone());
        let start = Instant::now();
        schedule.begin(start);
        for index in 0..rush.plan.buyers {
            schedule.wait().await;
            if rush.stop.is_stopped() {
                break;
            }
            let (rush, report, due) = (Arc::clone(&rush), report.clone(), schedule.due(index));
            tokio::spawn(async move {
                let came = rush.buy(index, start, due).await;
                // There is room for everybody, and who listens leaves last.
                drop(report.try_send(came));
            });
        }
        drop(report);
        let (mut all, mut held) = (Vec::with_capacity(capacity), Vec::new());
        while let Some((seen, connection)) = reports.recv().await {
            all.push(seen);
            held.extend(connection);
        }
        all
    }

    /// One buyer, due so long after `start`.
    async fn buy(&self, index: u64, start: Instant, due: Duration) -> Came {
        let begun = start.elapsed();
        let keeps = index.is_multiple_of(KEEPS);
        let mut connection = Connection::new(self.target.clone(), PATIENCE).from(self.source(index));
        let access = self.tokens.token(usize::try_from(index).unwrap_or(usize::MAX));
        let more = if keeps { "" } else { "Connection: close\r\n" };
        let request = purchase_in(self.plan.sale.as_str(), self.target.host(), access, more);
        let (opened, outcome) = match connection.warm().await {
            Ok(()) => {
                let opened = start.elapsed();
                (Some(opened), RushOutcome::of(connection.call(request.as_bytes()).await))
            }
            Err(error) => (None, RushOutcome::of(Err(error))),
        };
        let took = start.elapsed().saturating_sub(due);
        let holds = keeps && outcome.is_answer();
        let mut seen = Seen { due, begun, opened, took, outcome, kept: None };
        if holds {
            let again = connection.call(request.as_bytes()).await.is_ok();
            seen.kept = Some(again && connection.made() == 1);
        }
        (seen, keeps.then_some(connection))
    }

    fn source(&self, index: u64) -> Ipv4Addr {
        let addresses = u64::from(RushPlan::addresses(self.plan.buyers));
        Ipv4Addr::from(FIRST_SOURCE + self.plan.addresses_before + u32::try_from(index % addresses).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    async fn rush(api_url: String, buyers: u64, addresses_before: u32) -> Rush {
        let sale = SaleId::parse("rush").unwrap();
        let [issuer, audience] = ["seckill", "seckill"].map(str::to_owned);
        let secret = "k".repeat(32);
        let plan = RushPlan { api_url, sale, secret, issuer, audience, buyers, first: 1, addresses_before };
        let target = ServerAddress::resolve(&plan.api_url, RESOLVE).await.unwrap();
        Rush { plan, target, tokens: AccessTokens::default(), stop: Stopper::new() }
    }

    #[tokio::test]
    async fn no_address_has_more_buyers_than_ports() {
        for buyers in [1, 2_500, 20_000, 500_000] {
            let rush = rush("http://127.0.0.1:1".to_owned(), buyers, 3).await;
            let mut each: BTreeMap<Ipv4Addr, u64> = BTreeMap::new();
            (0..buyers).for_each(|index| *each.entry(rush.source(index)).or_default() += 1);
            assert!(each.values().all(|count| *count <= AN_ADDRESS), "{each:?}");
            assert_eq!(each.keys().next(), Some(&Ipv4Addr::new(127, 0, 0, 5)), "those before it have three");
            assert!(each.keys().all(Ipv4Addr::is_loopback));
        }
    }

    #[tokio::test]
    async fn everyone_who_is_due_comes_and_reports_what_it_saw() {
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let seen = rush(format!("http://{closed}"), 40, 0).await.run().await;
        assert_eq!(seen.len(), 40);
        let refused = RushOutcome::None("connection refused".into());
        assert!(seen.iter().all(|seen| seen.outcome == refused && seen.begun >= seen.due), "{seen:?}");
    }
}
