//! Tricks in lines: to be in one twice, too early or too late, to buy past it, to leave behind an offer, to have another buyer leave.

use super::cheater::{Cheater, MANY};
use super::{CLICKS, ENTRIES, FOREIGN, LEAVES, UNTIMELY};
use crate::accounts::{Account, Showing};
use crate::checker::{LineTerms, SaleTerms};
use crate::client::Entrance;
use crate::crowd::{Buyer, lines::ENTERS_MS, until};
use crate::time::time_passes;
use futures::future::join_all;
use rand::SeedableRng;
use rand::rngs::StdRng;
use seckill::runtime::now_ms;

/// Between two clicks of one who clicks while others wait.
const CLICKS_EVERY_MS: u64 = 500;
/// By then a sale is sold out, and its list takes entries.
const LISTED_MS: i64 = 2_500;

/// When a trick of a line begins; none: it is none of a line.
pub(super) fn begins_ms(trick: &str, sale: &SaleTerms, rest: i64) -> Option<i64> {
    let begins = match (trick, sale.line?) {
        (CLICKS | ENTRIES | FOREIGN | LEAVES, LineTerms::Waitlist) => sale.starts_ms + LISTED_MS + rest,
        (UNTIMELY, LineTerms::Waitlist) => sale.starts_ms - 300 - rest,
        (CLICKS, LineTerms::Raffle(_)) => sale.starts_ms + rest,
        (ENTRIES | FOREIGN | LEAVES, LineTerms::Raffle(closes_ms)) => closes_ms - ENTERS_MS / 2 + rest,
        (UNTIMELY, LineTerms::Raffle(closes_ms)) => closes_ms + 20 + rest,
        _ => return None,
    };
    Some(begins)
}

impl Cheater {
    /// What it tries in a line.
    pub(super) async fn plays_in_line(&self, showing: &Showing) {
        match self.trick {
            CLICKS => self.clicks(showing).await,
            ENTRIES => self.entries(showing).await,
            FOREIGN => self.foreign(showing).await,
            LEAVES => self.leaves(showing).await,
            _ => _ = join_all((0..MANY).map(|_| self.client.enter(self.entrance(showing)))).await,
        }
    }

    fn entrance<'a>(&'a self, showing: &'a Showing) -> Entrance<'a> {
        let (buyer, sale) = (self.account.name.as_str(), self.sale.sale_id.as_str());
        Entrance { buyer, sale, quantity: 1, showing, trick: Some(self.trick) }
    }

    /// As an honest buyer in this account.
    fn honest(&self, account: &Account) -> Buyer {
        Buyer { client: self.client.clone(), sale: self.sale.clone(), account: account.clone() }
    }

    /// While others wait, by both spellings, with a purchase token and without.
    async fn clicks(&self, showing: &Showing) {
        let token = self.asks_token(showing).await;
        let mut at = 0;
        while now_ms() < self.sale.ends_ms - 1_000 {
            self.click(showing, token.as_deref().filter(|_| at % 3 == 0), at % 2 == 1).await;
            at += 1;
            time_passes(CLICKS_EVERY_MS).await;
        }
    }

    /// At once, again, for more than the limit, and by other accounts: of this person where persons are counted.
    async fn entries(&self, showing: &Showing) {
        let me = self.honest(&self.account);
        if me.gets_in(Entrance { trick: None, ..self.entrance(showing) }).await.is_none() {
            return;
        }
        join_all((0..MANY).map(|_| self.client.enter(self.entrance(showing)))).await;
        let more = u32::try_from(self.sale.limit.unwrap_or(1)).expect("few") + 1;
        for quantity in [more, 0] {
            self.client.enter(Entrance { quantity, ..self.entrance(showing) }).await;
        }
        if self.client.terms.by_person {
            join_all((0..MANY).map(async |number| {
                let account = self.another(number, &self.account.identity.person);
                let showing = self.client.signer().showing(&account, &self.sale);
                self.client.enter(Entrance { buyer: &account.name, ..self.entrance(&showing) }).await;
            }))
            .await;
        }
        self.takes(&me, showing).await;
    }

    /// What it is offered it takes, or leaves.
    async fn takes(&self, me: &Buyer, showing: &Showing) {
        me.takes_its_turn(showing, &mut StdRng::seed_from_u64(self.chance)).await;
    }

    /// Another account has it leave, asks for its entry as if it were its own, and so on.
    async fn foreign(&self, showing: &Showing) {
        let me = self.honest(&self.account);
        if me.gets_in(Entrance { trick: None, ..self.entrance(showing) }).await.is_none() {
            return;
        }
        let Some(mine) = self.client.mine((&self.account.name, &self.sale.sale_id), showing).await else { return };
        let other = self.another(0, &format!("person of {}-0", self.account.name));
        let theirs = self.client.signer().showing(&other, &self.sale);
        let entrance = Entrance { buyer: &other.name, ..self.entrance(&theirs) };
        self.client.leave(entrance, &mine.entry).await;
        self.client.leave(entrance, "1").await;
        let path = format!("/v1/sales/{}/entries/mine", self.sale.sale_id);
        self.client.ask(reqwest::Method::GET, &path, &theirs, Some(self.trick)).await;
        self.takes(&me, showing).await;
    }

    /// Leaves when it has its offer, and enters again; the order it leaves unpaid.
    async fn leaves(&self, showing: &Showing) {
        let me = self.honest(&self.account);
        let honest = Entrance { trick: None, ..self.entrance(showing) };
        if me.gets_in(honest).await.is_none() {
            return;
        }
        let mut chance = StdRng::seed_from_u64(self.chance);
        let Some(mine) = me.offered(showing, &mut chance).await else { return };
        self.client.leave(self.entrance(showing), &mine.entry).await;
        self.client.enter(self.entrance(showing)).await;
        // When the offer has lapsed, too.
        until(now_ms() + 6_000).await;
        self.client.enter(self.entrance(showing)).await;
    }
}
