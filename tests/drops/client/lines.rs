//! Calls for a line: to enter it, to leave it, to see one's entry.

use super::{Answer, Client, PAUSE_MS, TRIES, locked, text};
use crate::accounts::Showing;
use crate::checker::{Came, Entering, Leaving, Seen};
use crate::time::time_passes;
use reqwest::Method;
use seckill::runtime::now_ms;
use serde_json::json;

/// Who wants to be in which line.
#[derive(Debug, Clone, Copy)]
pub struct Entrance<'a> {
    pub buyer: &'a str,
    pub sale: &'a str,
    pub quantity: u32,
    pub showing: &'a Showing,
    pub trick: Option<&'static str>,
}

impl Client {
    async fn enter_once(&self, entrance: Entrance<'_>) -> Came {
        let Entrance { buyer, sale, quantity, showing, trick } = entrance;
        let request = self.call(Method::POST, &format!("/v1/sales/{sale}/entries"), showing);
        let begun_ms = now_ms();
        let came = match Answer::of(request.json(&json!({ "quantity": quantity }))).await {
            Answer::Whole(201, body) => Came::Accepted(text(&body, "entry_id")),
            Answer::Whole(500.., _) | Answer::Cut => Came::Unknown,
            Answer::Whole(status, body) => Came::Refused { status, code: text(&body, "code") },
            Answer::Unsent => Came::Unsent,
        };
        let (refused, accepted) = (matches!(came, Came::Refused { .. }), matches!(came, Came::Accepted(_)));
        self.tally(trick.filter(|_| came != Came::Unsent), refused, accepted);
        let (buyer, sale, ended_ms, known) = (buyer.to_owned(), sale.to_owned(), now_ms(), came.clone());
        locked(&self.log).entering.push(Entering { buyer, sale, quantity, begun_ms, ended_ms, came });
        known
    }

    /// Enters; while a process is away, again.
    pub async fn enter(&self, entrance: Entrance<'_>) -> Came {
        let mut came = Came::Unsent;
        for _ in 0..TRIES {
            came = self.enter_once(entrance).await;
            match &came {
                Came::Unsent | Came::Unknown | Came::Refused { status: 429, .. } => time_passes(PAUSE_MS).await,
                Came::Accepted(_) | Came::Refused { .. } => break,
            }
        }
        came
    }

    /// Leaves, or has somebody else try it, until there is an answer: its status.
    pub async fn leave(&self, entrance: Entrance<'_>, entry: &str) -> u16 {
        let path = format!("/v1/sales/{}/entries/{entry}", entrance.sale);
        for _ in 0..TRIES {
            let status = self.ask(Method::DELETE, &path, entrance.showing, entrance.trick).await;
            let left = match status {
                204 => Some(true),
                0 | 429 | 500.. => None,
                _ => Some(false),
            };
            let (buyer, entry) = (entrance.buyer.to_owned(), entry.to_owned());
            locked(&self.log).leaving.push(Leaving { buyer, entry, left });
            if left.is_some() {
                return status;
            }
            time_passes(PAUSE_MS).await;
        }
        0
    }

    /// Asks for one's entry, once.
    pub async fn mine(&self, (buyer, sale): (&str, &str), showing: &Showing) -> Option<Seen> {
        let begun_ms = now_ms();
        let asked = self.call(Method::GET, &format!("/v1/sales/{sale}/entries/mine"), showing);
        let Answer::Whole(200, body) = Answer::of(asked).await else { return None };
        let seen = Seen {
            buyer: buyer.to_owned(),
            sale: sale.to_owned(),
            entry: text(&body, "entry_id"),
            state: text(&body, "state"),
            quantity: body["quantity"].as_u64().and_then(|units| units.try_into().ok()).unwrap_or(0),
            rank: body["rank"].as_i64(),
            rid: body["request_id"].as_str().map(str::to_owned),
            begun_ms,
        };
        locked(&self.log).seen.push(seen.clone());
        Some(seen)
    }
}
