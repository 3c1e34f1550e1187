//! Shards that answer with errors. Each is left alone for a while, and the others of its server go on (H6). Pure: no I/O.

use crate::domain::fault::MayBeOutage;
use crate::runtime::exponential_backoff;
use crate::store::redis::RedisFault;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a shard is left alone after an error; doubles up to [`LONGEST`], like the pauses of a whole phase.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// The shards in trouble.
#[derive(Debug, Default)]
pub(super) struct ShardTrouble {
    of: BTreeMap<u16, Trouble>,
}

#[derive(Debug)]
struct Trouble {
    fault: RedisFault,
    until: Instant,
    /// Errors in a row, each after a pause.
    times: u32,
    is_reported: bool,
}

/// Whether the stream or its group is not there (yet, or any more).
fn no_group(fault: &RedisFault) -> bool {
    matches!(fault, RedisFault::Refused(error) if error.starts_with("NOGROUP"))
}

impl ShardTrouble {
    /// Notes that a shard answered with an error, or not at all.
    pub(super) fn note(&mut self, shard: u16, fault: RedisFault, now: Instant) {
        let (times, is_reported) = match self.of.get(&shard) {
            // One more of the same moment.
            Some(known) if now < known.until => return,
            Some(known) => (known.times.saturating_add(1), known.is_reported),
            // A missing group is not reported: it is made in the next step.
            None => (0, no_group(&fault)),
        };
        let until = now + exponential_backoff(FIRST, times, LONGEST);
        self.of.insert(shard, Trouble { fault, until, times, is_reported });
    }

    /// Notes that a shard answered.
    pub(super) fn answered(&mut self, shard: u16, now: Instant) {
        if self.of.get(&shard).is_some_and(|known| known.until <= now) {
            self.of.remove(&shard);
            tracing::debug!(phase = "p3_relay", shard, "a shard of the outbox answers again");
        }
    }

    /// Whether a shard is to be asked nothing for now.
    pub(super) fn is_left_alone(&self, shard: u16, now: Instant) -> bool {
        self.of.get(&shard).is_some_and(|known| now < known.until)
    }

    /// The fault when no shard works: the pauses are then those of the whole phase. Else the trouble of single shards is reported,
    /// once.
    pub(super) fn of_all(&mut self, shards: &[u16]) -> Option<RedisFault> {
        if let Some(first) = shards.first().filter(|_| shards.iter().all(|shard| self.of.contains_key(shard))) {
            let now = Instant::now();
            self.of.values_mut().for_each(|known| known.until = known.until.min(now));
            return self.of.get(first).map(|known| known.fault.clone());
        }
        for (shard, known) in self.of.iter_mut().filter(|(_, known)| !known.is_reported) {
            known.is_reported = true;
            // As the loop of a phase counts them.
            if known.fault.is_outage() {
                metrics::counter!("seckill_faults_total", "phase" => "p3_relay").increment(1);
            } else {
                metrics::counter!("seckill_steps_failed_total", "phase" => "p3_relay").increment(1);
            }
            tracing::warn!(phase = "p3_relay", shard, fault = %known.fault, "a shard of the outbox is left alone for now");
        }
        None
    }

    /// Shards whose stream has no consumer group; they are in no trouble any more.
    pub(super) fn without_group(&mut self) -> Vec<u16> {
        let shards: Vec<u16> =
            self.of.iter().filter(|(_, known)| no_group(&known.fault)).map(|(shard, _)| *shard).collect();
        shards.iter().for_each(|shard| drop(self.of.remove(shard)));
        shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_in_trouble_is_left_alone_longer_each_time_until_it_answers() {
        let (mut trouble, start, ms) = (ShardTrouble::default(), Instant::now(), Duration::from_millis);
        let fault = || RedisFault::Refused("WRONGTYPE".to_owned());
        trouble.note(1, fault(), start);
        trouble.note(1, fault(), start + ms(10));
        assert!(trouble.is_left_alone(1, start + ms(49)) && !trouble.is_left_alone(1, start + ms(50)));
        assert!(!trouble.is_left_alone(0, start), "only itself");
        trouble.note(1, fault(), start + ms(60));
        assert!(trouble.is_left_alone(1, start + ms(159)), "twice as long");
        trouble.answered(1, start + ms(100));
        assert!(trouble.is_left_alone(1, start + ms(159)), "an answer to another question of the same moment");
        trouble.answered(1, start + ms(160));
        trouble.note(1, fault(), start + ms(200));
        assert!(!trouble.is_left_alone(1, start + ms(250)), "from the start again");
    }

    #[test]
    fn when_no_shard_works_the_pauses_are_those_of_the_phase() {
        let (mut trouble, now) = (ShardTrouble::default(), Instant::now());
        trouble.note(1, RedisFault::NoScript, now);
        assert!(trouble.of_all(&[0, 1]).is_none() && trouble.of_all(&[]).is_none());
        trouble.note(0, RedisFault::NoScript, now);
        assert!(trouble.of_all(&[0, 1]).is_some());
        assert!(!trouble.is_left_alone(0, Instant::now()) && !trouble.is_left_alone(1, Instant::now()));
    }

    #[test]
    fn a_stream_without_its_group_is_named_once() {
        let mut trouble = ShardTrouble::default();
        trouble.note(3, RedisFault::Refused("NOGROUP No such key".to_owned()), Instant::now());
        trouble.note(4, RedisFault::NoScript, Instant::now());
        assert_eq!((trouble.without_group(), trouble.without_group()), (vec![3], vec![]));
    }
}
