//! Forgets a buyer (N2): the id becomes a pseudonym in the database and in Redis, with every unit and every order as it was.
//!
//! Input: an operator's wish. Output: no server of ours has the id any more. Steps, each safe to repeat: a row and a block; what is on its
//! way, which refuses it; the decision, on record; orders, then all other rows, then Redis; a search over everything; the end, when the
//! row forgets the id, too. A crash before the decision leaves a block that ends by itself, and later ones leave both names; P5's
//! [`finisher`] ends either, and so does the same command again. The pseudonym has the buyer's home shard, so whatever searches
//! for the buyer's keys finds them. The database is renamed before Redis: what a rebuild loads meanwhile is renamed with the rest.

pub(crate) mod finisher;
pub(crate) mod on_its_way;
mod pseudonym;
mod redis_side;

use self::on_its_way::OnItsWay;
use crate::buyers::forms::NewForgetting;
use crate::buyers::rows::forgotten::{Forgetting, ForgottenRows};
use crate::buyers::rows::searched::{SEARCHED, Walk};
use crate::buyers::rows::walked::TableWalk;
use crate::buyers::spelling::Names;
use crate::domain::fault::MayBeOutage;
use crate::domain::ids::UserId;
use crate::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use crate::faults::crash_point;
use crate::sales::rows::SaleRows;
use crate::store::mysql::DbError;
use crate::store::rabbit::{RabbitConfig, RabbitError};
use crate::store::redis::{BuyerKeys, Outbox, RedisFault, RelayDlq, SaleKeys};
use serde_json::json;
use std::time::{Duration, Instant};

/// Until every api process refuses a buyer who was blocked: they read what was changed each 700 ms.
const BLOCK_HOLDS: Duration = Duration::from_millis(2_500);
/// How often the row and the block are renewed during the work; see `forgotten::BLOCK_S`.
const KEEP_EVERY: Duration = Duration::from_secs(15);
/// Times everything is renamed and searched: what was written meanwhile is found by the next time.
const ROUNDS: usize = 3;

/// Why a buyer was not forgotten, or not yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForgetError {
    /// Nothing is known of such a buyer.
    #[error("nothing is on record of this buyer; is it the sub of the access tokens, spelled as it is there?")]
    Unknown,
    /// Nothing was renamed.
    #[error("something of this buyer is on its way, and nothing was changed: {}", listed(.0, OnItsWay::english))]
    OnItsWay(Vec<OnItsWay>),
    /// It is decided, and not everything could be renamed yet.
    #[error("the buyer is being forgotten, and P5 goes on with it; it waits for: {}", listed(.0, OnItsWay::english))]
    Unfinished(Vec<OnItsWay>),
    /// The account of this process may not do it.
    #[error(
        "the account of mysql.url may not update {}; forget with the account of its own: docs/operations.md#forgetting-a-buyer",
        .0.join(", ")
    )]
    Rights(Vec<String>),
    /// No pseudonym with the buyer's home shards was found.
    #[error("no pseudonym has the home shards of this buyer for all numbers of shards in use; try again")]
    NoPseudonym,
    /// Redis failed.
    #[error(transparent)]
    Redis(#[from] RedisFault),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The broker failed.
    #[error(transparent)]
    Rabbit(#[from] RabbitError),
}

/// What is on its way, in a sentence.
pub(crate) fn listed(all: &[OnItsWay], said: impl Fn(&OnItsWay) -> String) -> String {
    let all: Vec<String> = all.iter().map(said).collect();
    if all.is_empty() { "…".to_owned() } else { all.join("; ") }
}

impl MayBeOutage for ForgetError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Redis(error) => error.is_outage(),
            Self::Database(error) => error.is_outage(),
            Self::Rabbit(_) => true,
            Self::Unknown | Self::OnItsWay(_) | Self::Unfinished(_) | Self::Rights(_) | Self::NoPseudonym => false,
        }
    }
}

/// A buyer who is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Forgotten {
    /// What stands in the place of the id.
    pub(crate) pseudonym: String,
    /// Orders that have it.
    pub(crate) orders: u64,
}

/// What forgetting may touch.
#[derive(Clone)]
pub(crate) struct BuyerForget {
    pub(crate) rows: ForgottenRows,
    pub(crate) sales: SaleRows,
    pub(crate) keys: BuyerKeys,
    pub(crate) sale_keys: SaleKeys,
    pub(crate) outbox: Outbox,
    pub(crate) relay_dlq: RelayDlq,
    pub(crate) rabbit: RabbitConfig,
    /// Shards of every sale.
    pub(crate) shards: u16,
}

/// When the row and the block were renewed last.
struct Kept(Instant);

impl BuyerForget {
    /// Forgets a buyer, or goes on with it. Repeating is safe.
    ///
    /// # Errors
    /// [`ForgetError`]; after one of a server P5 goes on, or lifts the block where nothing was decided.
    pub(crate) async fn forget(&self, actor: &Actor, wanted: &NewForgetting) -> Result<Forgotten, ForgetError> {
        let buyer = &wanted.buyer;
        let missing = self.rows.missing_rights().await?;
        if !missing.is_empty() {
            return Err(ForgetError::Rights(missing));
        }
        if let Some(under_way) = self.rows.of(buyer).await? {
            return self.go_on(actor, &under_way).await;
        }
        let places = self.places(buyer).await?;
        // Before anything is written: the usual refusal costs the buyer nothing.
        let on_its_way = self.on_its_way(buyer, &places).await?;
        if !on_its_way.is_empty() {
            return Err(ForgetError::OnItsWay(on_its_way));
        }
        if !self.is_known(buyer, &places).await? {
            return Err(ForgetError::Unknown);
        }
        let pseudonym = pseudonym::draw(buyer, &places.shard_counts).ok_or(ForgetError::NoPseudonym)?;
        let names = Names::new(buyer.as_str(), pseudonym.as_str());
        let new = Forgetting {
            buyer: buyer.clone(),
            reason: names.in_text(&wanted.reason),
            asked_by: names.in_text(&actor.label()),
            pseudonym,
            is_decided: false,
        };
        let begun = self.rows.begin(&new).await?;
        crash_point!(ForgetBegun);
        match (begun, self.rows.of(buyer).await?) {
            (true, _) => self.go_on(actor, &new).await,
            (false, Some(other)) => self.go_on(actor, &other).await,
            // Another process has begun and ended it meanwhile.
            (false, None) => Err(ForgetError::Unknown),
        }
    }

    /// Goes on with what was begun, from whatever step. Repeating is safe.
    ///
    /// # Errors
    /// As [`BuyerForget::forget`].
    pub(crate) async fn go_on(&self, actor: &Actor, of: &Forgetting) -> Result<Forgotten, ForgetError> {
        if !self.rows.keep(of).await? {
            return self.forgotten(of).await;
        }
        tokio::time::sleep(BLOCK_HOLDS).await;
        if !of.is_decided {
            let on_its_way = self.on_its_way(&of.buyer, &self.places(&of.buyer).await?).await?;
            if !on_its_way.is_empty() {
                self.rows.give_up(of).await?;
                return Err(ForgetError::OnItsWay(on_its_way));
            }
            let mut act = OperatorAct::new(actor, Operation::BuyerForget, ActTarget::Buyer(of.pseudonym.clone()));
            act.reason = Some(of.reason.clone());
            act.after = Some(json!({ "asked_by": of.asked_by }));
            self.rows.decide(of, &act).await?;
            crash_point!(ForgetDecided);
        }
        let mut kept = Kept(Instant::now());
        for _ in 0..ROUNDS {
            match self.rename(of, &mut kept).await {
                Ok(()) => {}
                // Another transaction has some of the rows; what is left is found in the next round.
                Err(ForgetError::Database(DbError::Deadlock | DbError::LockWait)) => continue,
                Err(error) => return Err(error),
            }
            crash_point!(ForgetKeys);
            if self.left(of, &mut kept).await? == 0 {
                self.rows.end(of).await?;
                return self.forgotten(of).await;
            }
        }
        Err(ForgetError::Unfinished(self.on_its_way(&of.buyer, &self.places(&of.buyer).await?).await?))
    }

    async fn forgotten(&self, of: &Forgetting) -> Result<Forgotten, ForgetError> {
        let orders = self.rows.orders_of(&of.pseudonym).await?;
        Ok(Forgotten { pseudonym: of.pseudonym.as_str().to_owned(), orders })
    }

    /// Renames everything once: orders first, Redis last.
    async fn rename(&self, of: &Forgetting, kept: &mut Kept) -> Result<(), ForgetError> {
        let names = Names::new(of.buyer.as_str(), of.pseudonym.as_str());
        while self.rows.rename_orders(of).await? > 0 {
            crash_point!(ForgetHalf);
            self.keep(of, kept).await?;
        }
        self.rows.rename_units(of).await?;
        self.rows.rename_entries(of).await?;
        self.rows.returned(of, &names, true).await?;
        for table in &SEARCHED {
            if !matches!(table.walk, Walk::Waits(_)) {
                let mut walk = TableWalk::of(table);
                while !walk.is_over {
                    walk = self.rows.walk(table, &names, &walk, true).await?;
                    self.keep(of, kept).await?;
                }
            }
        }
        crash_point!(ForgetRows);
        self.rename_keys(of, kept).await
    }

    /// Searches everything: how much still has the id.
    async fn left(&self, of: &Forgetting, kept: &mut Kept) -> Result<u64, ForgetError> {
        let names = Names::new(of.buyer.as_str(), of.pseudonym.as_str());
        let mut left = self.rows.bought(&of.buyer).await? + self.rows.returned(of, &names, false).await?;
        for table in &SEARCHED {
            let mut walk = TableWalk::of(table);
            while !walk.is_over {
                walk = self.rows.walk(table, &names, &walk, false).await?;
                self.keep(of, kept).await?;
            }
            left += walk.found;
        }
        Ok(left + self.keys_left(of, kept).await?)
    }

    /// Renews the row and the block when it is time.
    async fn keep(&self, of: &Forgetting, kept: &mut Kept) -> Result<(), ForgetError> {
        if kept.0.elapsed() > KEEP_EVERY {
            self.rows.keep(of).await?;
            kept.0 = Instant::now();
        }
        Ok(())
    }

    /// Whether anything is on record of the buyer: in Redis, or in the rows that name buyers by themselves.
    async fn is_known(&self, buyer: &UserId, places: &redis_side::Places) -> Result<bool, ForgetError> {
        if self.rows.bought(buyer).await? > 0 || self.is_in_redis(buyer, places).await? {
            return Ok(true);
        }
        if self.rows.is_blocked_or_was(buyer).await? {
            return Ok(true);
        }
        let names = Names::new(buyer.as_str(), "");
        for table in SEARCHED.iter().filter(|table| table.name != "orders") {
            let mut walk = TableWalk::of(table);
            while !walk.is_over && walk.found == 0 {
                walk = self.rows.walk(table, &names, &walk, false).await?;
            }
            if walk.found > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
