//! Buyers at a constant interval, each with a connection of its own: buys once, then polls until the order is confirmed. Says
//! when each began and when it was confirmed; a try that fails in any way is just no success.

use super::environment::Environment;
use crate::loadgen::answer::text_field;
use crate::loadgen::http::{Connection, ServerAddress};
use crate::loadgen::{access_tokens::ACCESS_TTL_S, buyer_name};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::runtime::Stopper;
use seckill::token_issuer::TokenIssuer;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A new buyer comes this often.
const EVERY: Duration = Duration::from_millis(10);
/// Pause between two questions for the status.
const ASK: Duration = Duration::from_millis(5);
/// One call must be answered within this time; a try that hangs must not hide the ones after it.
const CALL: Duration = Duration::from_secs(2);
/// A buyer gives up after this time.
const PATIENCE: Duration = Duration::from_secs(15);

/// A purchase that was accepted and confirmed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfirmedPurchase {
    pub begun: Instant,
    pub confirmed: Instant,
}

/// Buyers under way.
pub(super) struct RecoveryProbe {
    seen: Arc<Mutex<Vec<ConfirmedPurchase>>>,
    stop: Stopper,
    buyers: tokio::task::JoinHandle<()>,
}

struct ProbeClient {
    target: ServerAddress,
    issuer: TokenIssuer,
    sale: SaleId,
}

impl RecoveryProbe {
    /// Lets buyers come until [`RecoveryProbe::end`]; `first` is the first one's number.
    pub async fn start(environment: &Environment, sale: &SaleId, first: u64) -> Result<Self, Failure> {
        let auth = &environment.settings.auth;
        let target = ServerAddress::resolve(&environment.api, CALL).await?;
        let issuer = TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?;
        let client = Arc::new(ProbeClient { target, issuer, sale: sale.clone() });
        let (seen, stop) = (Arc::new(Mutex::new(Vec::new())), Stopper::new());
        let buyers = tokio::spawn(come(client, Arc::clone(&seen), stop.clone(), first));
        Ok(Self { seen, stop, buyers })
    }

    /// The first success that began after `since` and was confirmed after `from`; `None` after `within`.
    pub async fn first(&self, since: Instant, from: Instant, within: Duration) -> Option<ConfirmedPurchase> {
        let end = Instant::now() + within;
        while Instant::now() < end {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut right: Vec<ConfirmedPurchase> =
                seen.into_iter().filter(|one| one.begun >= since && one.confirmed >= from).collect();
            right.sort_by_key(|one| one.confirmed);
            if let Some(first) = right.first() {
                return Some(*first);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        None
    }

    /// Starts no more buyers and waits for those under way.
    pub async fn end(self) -> Result<(), Failure> {
        self.stop.stop();
        self.buyers.await.map_err(|error| Failure::Failed(error.to_string()))
    }
}

async fn come(client: Arc<ProbeClient>, seen: Arc<Mutex<Vec<ConfirmedPurchase>>>, stop: Stopper, first: u64) {
    let mut under_way = JoinSet::new();
    let mut number = first;
    while !stop.is_stopped() {
        let (client, seen, buyer) = (Arc::clone(&client), Arc::clone(&seen), number);
        under_way.spawn(async move {
            let tried = tokio::time::timeout(PATIENCE, client.buy(buyer)).await;
            if let Ok(Some(success)) = tried {
                seen.lock().unwrap_or_else(PoisonError::into_inner).push(success);
            }
        });
        number += 1;
        stop.sleep(EVERY).await;
    }
    under_way.join_all().await;
}

impl ProbeClient {
    async fn buy(&self, buyer: u64) -> Option<ConfirmedPurchase> {
        let begun = Instant::now();
        let access = self.issuer.sign(&buyer_name(buyer), ACCESS_TTL_S).ok()?;
        let mut connection = Connection::new(self.target.clone(), CALL);
        let (sale, host) = (&self.sale, self.target.host());
        let order = format!(
            "POST /v1/sales/{sale}/orders HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {access}\r\n\
             Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{{\"quantity\":1}}"
        );
        let answer = connection.call(order.as_bytes()).await.ok()?;
        if answer.status() != 202 {
            return None;
        }
        let id = text_field(answer.body(), "request_id")?.to_owned();
        let question = format!(
            "GET /v1/sales/{sale}/orders/{id} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {access}\r\n\r\n"
        );
        loop {
            // While a server is down the status may be unknown; the purchase is accepted all the same.
            if let Ok(answer) = connection.call(question.as_bytes()).await
                && text_field(answer.body(), "status") == Some("CONFIRMED")
            {
                return Some(ConfirmedPurchase { begun, confirmed: Instant::now() });
            }
            tokio::time::sleep(ASK).await;
        }
    }
}
