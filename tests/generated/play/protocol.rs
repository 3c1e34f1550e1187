//! The protocol of P2 to P5: each action of the model as what the product does.

use super::Played;
use super::facts::{Facts, of_world};
use super::relays::{Fate, Finish};
use super::stage::Stage;
use crate::actions::Action;
use crate::books::{Giver, Stage as Rebuilt};
use crate::operator::Act;
use crate::setup::{Kind, Setup, Sync};
use crate::state::{Answered, Hand, ORDER, REQUESTS, Sale, Stage as Consumed, World};
use seckill::domain::outcome::Verdict;
use seckill::domain::reserve::Reserved;

impl Played for Setup {
    type Stage = Stage;

    async fn set_up(&self, stage: &mut Stage) {
        stage.set_up(self).await;
    }

    async fn make(&self, stage: &mut Stage, worlds: (&World, &World), step: Action) -> Result<(), String> {
        make(stage, self, worlds, step).await
    }

    async fn read_facts(&self, stage: &mut Stage) -> Facts {
        stage.read_facts().await
    }

    fn facts(&self, world: &World) -> Facts {
        of_world(world)
    }
}

/// Makes one step on the servers.
async fn make(stage: &mut Stage, setup: &Setup, (world, next): (&World, &World), action: Action) -> Result<(), String> {
    match action {
        Action::Call(_) => calls(stage, setup, (world, next), true).await?,
        Action::LateRuns(_) => calls(stage, setup, (world, next), false).await?,
        Action::Fsync => stage.sync().await,
        Action::Fence => stage.fence.pass(0).await.map_err(|error| error.to_string())?,
        Action::Read(at, k) => stage.relay_reads((at, k)).await,
        Action::Publish(at, k) => stage.relay_publishes((at, k), Fate::Stored).await,
        Action::Confirm(at, k) => stage.relay_finishes((at, k), Finish::Notice).await,
        Action::Relay(at, k) => stage.relay_finishes((at, k), relay_step(world, at, k)).await,
        Action::Deliver(at, attempts, k) => {
            if !stage.delivers(at, attempts, k).await {
                return Err("no such message".to_owned());
            }
        }
        Action::Consumer(at, k) => consumes(stage, (world, next), (at, k)).await?,
        Action::Expire(at) => stage.expires(at).await,
        Action::Audit(at) => {
            if !stage.audits(at).await {
                return Err("the audit found nothing to repair".to_owned());
            }
        }
        Action::Compensate(at) => stage.compensates(at).await?,
        Action::Rebuild(k) | Action::Fault(Kind::SecondLeader, _, k) => leads(stage, (world, next), k).await?,
        Action::Freeze => stage.freezes().await,
        Action::Trim(at) => stage.trims(stage.scene.request_id(at)).await,
        Action::GiverReads(at) => stage.giver_reads(at).await?,
        Action::Giver => {
            stage.giver_goes_on().await?;
            if (next.books.giver == Giver::Idle) != stage.giver.is_none() {
                return Err(format!("the model's giver is {:?}", next.books.giver));
            }
        }
        Action::Send(at) => sends(stage, at).await,
        Action::Persist(at) => persists(stage, next, at).await?,
        Action::Act(act, at) => acts(stage, act, at).await,
        Action::Count | Action::CloseNumber(_) | Action::CleanDlq(_) => return Err("not played".to_owned()),
        Action::Backup => stage.backs_up().await,
        Action::Fault(kind, at, k) => strikes(stage, setup, (world, next), (kind, at, k)).await?,
    }
    Ok(())
}

/// The script, for all whose answers or calls the step has changed.
async fn calls(
    stage: &mut Stage,
    setup: &Setup,
    (world, next): (&World, &World),
    is_answered: bool,
) -> Result<(), String> {
    let asks = |at: &usize| {
        let (before, after) = (&world.requests[*at], &next.requests[*at]);
        before.answered != after.answered || before.late != after.late
    };
    let callers: Vec<usize> = (0..REQUESTS).filter(asks).collect();
    let purchases: Vec<_> = callers.iter().map(|at| stage.scene.purchase(*at)).collect();
    let group: Vec<_> = purchases.iter().collect();
    let stock = &stage.world.servers.redis.stock;
    let decided = stock.reserve(&stage.scene.sale, 0, stage.scene.redis_epoch, &group).await;
    let decided = decided.map_err(|fault| fault.to_string())?.reserved;
    for (at, decided) in callers.iter().zip(&decided) {
        let answered = next.requests[*at].answered;
        let agrees = match answered {
            Answered::Accepted | Answered::Waiting => matches!(decided, Reserved::Accepted | Reserved::Replayed),
            Answered::Refused => matches!(decided, Reserved::Short(_) | Reserved::DuplicateBuyer(_)),
            Answered::Absent | Answered::Nothing | Answered::Unknown => true,
        };
        // No buyer gets the answer of a late call.
        if is_answered && !agrees {
            return Err(format!("request {at}: the model answers {answered:?}, the script {decided:?}"));
        }
    }
    if setup.dedup_lost {
        let (buyers, names) = (&stage.world.servers.redis.keys.buyers(0, &stage.scene.sale), stage.scene.buyer(0));
        stage.redis.call(&["HDEL", buyers, names.as_str()]).await;
    }
    Ok(())
}

const fn relay_step(world: &World, at: usize, k: usize) -> Finish {
    match world.requests[at].hand[k] {
        Hand::Confirmed => Finish::Delete,
        Hand::Failed => Finish::Count,
        Hand::Spent => Finish::Park,
        Hand::None | Hand::Ready | Hand::Sent | Hand::Unsent | Hand::Deleted => Finish::Notice,
    }
}

async fn consumes(stage: &mut Stage, (world, next): (&World, &World), (at, k): (usize, usize)) -> Result<(), String> {
    match world.requests[at].consumer[k].stage {
        Consumed::None => {}
        Consumed::Received => {
            let verdict = stage.persists(at, k).await.map_err(|error| error.to_string())?;
            let parks = next.requests[at].consumer[k].stage == Consumed::Park;
            if parks != (verdict == Verdict::Conflict) {
                return Err(format!("the database says {verdict:?}"));
            }
        }
        Consumed::Retry => stage.copies(at, k, false).await,
        Consumed::Park => stage.copies(at, k, true).await,
        Consumed::Decided | Consumed::Copied => stage.acknowledges(k).await,
    }
    Ok(())
}

/// The step of a leader; one that has ended must have ended in the model, too.
async fn leads(stage: &mut Stage, (world, next): (&World, &World), k: usize) -> Result<(), String> {
    let begins = world.books.leaders[k].stage == Rebuilt::None;
    // What the product has given up, the model may give up a step later.
    if begins || stage.leaders[k].is_at_work() {
        stage.leader_goes_on(k).await?;
    }
    let ended = next.books.leaders[k].stage == Rebuilt::None;
    // Where another one has opened the sale, the model's leader ends as it judges, the product's a step later: its script refuses.
    let judges = world.books.leaders[k].stage == Rebuilt::Numbered && world.meta.sale == Sale::Open;
    if ended && judges && stage.leaders[k].is_at_work() {
        stage.leader_goes_on(k).await?;
    }
    if ended && stage.leaders[k].is_at_work() {
        return Err("the model's rebuild has ended".to_owned());
    }
    Ok(())
}

/// The short way from the outbox to the database: both of its steps by their parts.
async fn sends(stage: &mut Stage, at: usize) {
    stage.relay_reads((at, 0)).await;
    stage.relay_publishes((at, 0), Fate::Stored).await;
    stage.relay_finishes((at, 0), Finish::Delete).await;
}

async fn persists(stage: &mut Stage, next: &World, at: usize) -> Result<(), String> {
    if !stage.delivers(at, 0, 0).await {
        return Err("no such message".to_owned());
    }
    let verdict = stage.persists(at, 0).await.map_err(|error| error.to_string())?;
    if verdict == Verdict::Conflict {
        stage.copies(at, 0, true).await;
    }
    stage.acknowledges(0).await;
    let parked = next.requests[at].mq_dlq;
    if verdict == Verdict::Conflict && !parked {
        return Err("the database says that it conflicts".to_owned());
    }
    Ok(())
}

async fn acts(stage: &mut Stage, act: Act, at: usize) {
    match act {
        Act::TopUp => stage.tops_up().await,
        Act::Cancel => stage.cancels(at).await,
        Act::Reclaim => stage.reclaims().await,
        Act::WriteOff => panic!("not played"),
    }
}

async fn strikes(
    stage: &mut Stage,
    setup: &Setup,
    (world, next): (&World, &World),
    (kind, at, k): (Kind, usize, usize),
) -> Result<(), String> {
    let decides = |at: usize| {
        let after = setup.step(world, if setup.short { Action::Persist(at) } else { Action::Consumer(at, k) });
        world.requests[at].outcome == 0 && after.requests[at].outcome == ORDER
    };
    match kind {
        Kind::LoseCall => {}
        Kind::RelayCrash | Kind::RelayDies => stage.relays[k].forget(),
        Kind::PublishLost => stage.relay_publishes((at, k), Fate::Lost).await,
        Kind::Returned => stage.relay_publishes((at, k), Fate::Returned).await,
        Kind::ConfirmLost => stage.relay_loses_the_confirm((at, k)),
        Kind::DoubleClaim => stage.relay_reads((at, k)).await,
        Kind::ConsumerCrash => stage.consumer_dies(k).await,
        Kind::ConsumerCutOff => return Err("no path has a consumer that goes on without its connection".to_owned()),
        Kind::SystemError if setup.short => {
            if !stage.delivers(at, 0, 0).await {
                return Err("no such message".to_owned());
            }
            stage.fails_to_persist(at, 0, decides(at)).await?;
            stage.copies(at, 0, true).await;
            stage.acknowledges(0).await;
        }
        Kind::SystemError => stage.fails_to_persist(at, k, decides(at)).await?,
        Kind::UnknownCommit => {
            let _unknown = stage.persists(at, k).await;
        }
        Kind::BrokerLosesData => stage.broker_loses_data().await,
        Kind::RedisCrash => {
            if setup.sync != Sync::Always {
                stage.rewind().await;
            }
            stage.forget_scripts().await;
        }
        Kind::RedisWiped => {
            stage.redis.clear().await;
            stage.forget_scripts().await;
        }
        Kind::GiveUp => stage.gives_up(at).await,
        Kind::GiverCrash => stage.giver = None,
        Kind::LeaderCrash => stage.leaders[k].dies(),
        Kind::SecondLeader => leads(stage, (world, next), k).await?,
        Kind::DatabaseGoesBack => stage.goes_back().await,
    }
    Ok(())
}
