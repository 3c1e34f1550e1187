//! Leaders of a line in their steps, and who makes the door follow the row.

use super::LinesStage;
use crate::lines::state::{Follower, Leader, Line, LineMoment};
use crate::lines::steps::LineStep;
use seckill::domain::ids::EntryId;
use seckill::faults::{Stepped, Stepwise};

/// The one that was leader before.
pub(super) const SLEEPS: usize = 1;

/// A task that goes on step by step.
#[derive(Default)]
pub(super) struct Hand {
    task: Option<Stepwise<Result<(), String>>>,
    /// It asks P2 again for an entry that has its request.
    asks_again: bool,
}

impl Hand {
    pub(super) fn begin(&mut self, task: impl Future<Output = Result<(), String>> + Send + 'static) {
        *self = Self { task: Some(Stepwise::new(task)), asks_again: false };
    }

    /// Goes on to this place; others on the way are passed.
    pub(super) async fn to(&mut self, place: &str) -> Result<(), String> {
        let Some(task) = &mut self.task else { return Err(format!("nothing is under way to {place}")) };
        loop {
            match task.step().await {
                Stepped::At(reached) if reached == place => return Ok(()),
                Stepped::At(_) => {}
                Stepped::Ended(ended) => {
                    self.task = None;
                    return Err(format!("it ended before {place}: {ended:?}"));
                }
            }
        }
    }

    /// Goes on to its end.
    pub(super) async fn ends(&mut self) -> Result<(), String> {
        self.stops_before("the end").await
    }

    /// Goes on to its end, or dies at this place.
    async fn stops_before(&mut self, place: &str) -> Result<(), String> {
        let Some(mut task) = self.task.take() else { return Err("nothing is under way".to_owned()) };
        loop {
            match task.step().await {
                Stepped::At(reached) if reached == place => return Ok(()),
                Stepped::At(_) => {}
                Stepped::Ended(ended) => return ended,
            }
        }
    }
}

impl LinesStage {
    fn id_of(&self, at: usize) -> EntryId {
        self.entries[at].expect("an entry")
    }

    /// A step of a leader: the product's task goes on to the place that the model has reached.
    pub(super) async fn leads(
        &mut self,
        who: usize,
        (moment, next): (&LineMoment, &LineMoment),
        step: LineStep,
    ) -> Result<(), String> {
        let (before, after) = (moment.leaders[who], next.leaders[who]);
        match step {
            LineStep::Counts(_) => {
                self.leaders[who].begin(self.steps.clone().offers(self.sale.clone()));
                self.leaders[who].to("offers: counted").await
            }
            LineStep::Chooses(_) => self.chooses(who, moment, after).await,
            LineStep::WritesIds(_) => self.writes(who, (before, after)).await,
            LineStep::Buys(_, at) => {
                let is_answered = matches!(after, Leader::Answered { .. });
                let hand = &mut self.leaders[who];
                if is_answered {
                    hand.to("offers: asked").await?;
                } else {
                    hand.ends().await?;
                }
                self.collects(at).await
            }
            LineStep::Records(_) => self.leaders[who].ends().await,
            LineStep::Reopens(_) => self.leaders[who].stops_before("align: clocks").await,
            LineStep::TakesClock(_) => {
                self.leaders[who].begin(self.steps.clone().sets_door(self.sale.clone()));
                self.leaders[who].to("align: clocks").await
            }
            LineStep::ReadsRow(_) => self.leaders[who].to("align: row").await,
            LineStep::SetsDoor(_) => self.sets_door(who, moment, after).await,
            LineStep::OpensLine(_) => self.opens_line(who).await,
            LineStep::Draws
            | LineStep::Enters(_)
            | LineStep::Leaves(_)
            | LineStep::IsBlocked(_)
            | LineStep::Clicks(_)
            | LineStep::Lands(_)
            | LineStep::IsPaid(_)
            | LineStep::Expires(_)
            | LineStep::GivesBack(_)
            | LineStep::Compares(_)
            | LineStep::RunsLate(..)
            | LineStep::Follows(_)
            | LineStep::FenceCompares
            | LineStep::FencePasses
            | LineStep::TakesEpoch
            | LineStep::Loads
            | LineStep::ReadsDoor
            | LineStep::OpensSale
            | LineStep::ReadsSale
            | LineStep::Fault(..) => Err("no step of a leader".to_owned()),
        }
    }

    async fn chooses(&mut self, who: usize, moment: &LineMoment, after: Leader) -> Result<(), String> {
        if let Leader::Chosen(set) = after {
            let at = set.trailing_zeros() as usize;
            if moment.entries[at].id.is_none() {
                return self.leaders[who].to("offers: chosen").await;
            }
            // What is in hand is asked for again, whatever units there are.
            self.leaders[who].begin(self.steps.clone().asks_again(self.sale.clone(), self.id_of(at)));
            self.leaders[who].asks_again = true;
            return self.leaders[who].to("offers: in hand").await;
        }
        if after == Leader::Reopens {
            return self.leaders[who].to("offers: reopens").await;
        }
        let ended = self.leaders[who].stops_before("align: clocks").await;
        // A line that another leader has ended, or a sale that is frozen by now.
        if moment.line == Line::Open || moment.line == Line::Awaited { ended } else { Ok(()) }
    }

    async fn writes(&mut self, who: usize, (before, after): (Leader, Leader)) -> Result<(), String> {
        let hand = &mut self.leaders[who];
        match (hand.asks_again, after) {
            (true, Leader::Asking(_)) => Ok(()),
            (true, _) => {
                *hand = Hand::default();
                Ok(())
            }
            (false, Leader::Asking(_)) => {
                let Leader::Chosen(set) = before else { return Err("nothing is chosen".to_owned()) };
                let at = set.trailing_zeros() as usize;
                hand.to("offers: written").await?;
                self.requests[at * 2] = self.request_of(at).await;
                Ok(())
            }
            (false, _) => hand.ends().await,
        }
    }

    async fn sets_door(&mut self, who: usize, moment: &LineMoment, after: Leader) -> Result<(), String> {
        let Leader::DoorIsShut(version) = after else { return self.leaders[who].ends_at_set().await };
        if moment.row.version == version {
            return self.leaders[who].to("door: shut").await;
        }
        // The row has changed since: the product sees that before it opens the line, the model while it does.
        self.leaders[who].ends_at_set().await
    }

    async fn opens_line(&mut self, who: usize) -> Result<(), String> {
        if self.leaders[who].task.is_some() { self.leaders[who].ends().await } else { Ok(()) }
    }

    /// The next step of another process that makes Redis' door follow the row.
    pub(super) async fn follows(&mut self, who: usize, follower: Follower) -> Result<(), String> {
        match follower {
            Follower::Idle => {
                self.followers[who].begin(self.steps.clone().follows_row(self.sale.clone()));
                self.followers[who].to("align: clocks").await
            }
            Follower::Clocked(_) => self.followers[who].to("align: row").await,
            Follower::SetsDoor(_) => self.followers[who].ends_at_set().await,
        }
    }

    /// What has a request is compared with its outcome and its order.
    pub(super) async fn compares(&mut self, at: usize) -> Result<(), String> {
        self.steps.clone().compares(self.sale.clone(), self.id_of(at)).await?;
        self.collects(at).await
    }
}

impl Hand {
    /// The door is set, or the keys that it belongs to are not there; what follows is another step.
    async fn ends_at_set(&mut self) -> Result<(), String> {
        // An error says that the sale does not sell.
        drop(self.stops_before("align: set").await);
        *self = Self::default();
        Ok(())
    }
}
