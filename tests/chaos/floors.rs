//! Floors of a run: a system that refuses everybody breaks no promise, and faults that hit nothing prove nothing.
//!
//! Input: how long the faults lasted, what was accepted, what became of each fault. Output: what there was too little of. A tenth of
//! what a run comes to on an idle machine is asked for, so that a busy one is not to blame.

use crate::nemesis::Record;
use std::collections::BTreeMap;

/// Requests accepted per second of faults; a run comes to about forty.
const ACCEPTED_PER_S: u64 = 4;
/// Faults that hit, of those that were planned: one of this number. A process that is down cannot be frozen, and few runs miss a fifth.
const HIT_ONE_OF: usize = 2;
/// A kind that was planned so often hits at least once. Short runs have the rare kinds less often.
const PLANNED: usize = 6;

/// What there was too little of.
pub fn shortfalls(length_ms: u64, accepted: u64, faults: &[Record]) -> Vec<String> {
    let mut short = Vec::new();
    let wanted = ACCEPTED_PER_S * length_ms / 1_000;
    if accepted < wanted {
        short.push(format!("{accepted} requests were accepted, at least {wanted} are wanted"));
    }
    let injected = faults.iter().filter(|record| record.injected).count();
    if injected * HIT_ONE_OF < faults.len() || faults.is_empty() {
        short.push(format!("{injected} of {} faults hit", faults.len()));
    }
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for record in faults {
        let (planned, hit) = kinds.entry(record.fault.kind.name()).or_default();
        (*planned, *hit) = (*planned + 1, *hit + usize::from(record.injected));
    }
    let missed = kinds.iter().filter(|(_, (planned, hit))| *planned >= PLANNED && *hit == 0);
    short.extend(missed.map(|(kind, (planned, _))| format!("{kind}: none of {planned} hit")));
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::plan;
    use seckill::roles::Role;

    /// Faults of a run of half a minute, all of which hit.
    fn all_hit() -> Vec<Record> {
        let counts = [(Role::Api, 2), (Role::Relay, 2), (Role::Consumer, 2), (Role::Reconcile, 1)];
        let record = |fault| Record { fault, injected: true, note: None, began_ms: 0, healed_ms: 0, recovery_ms: None };
        plan(7, 30_000, counts).into_iter().map(record).collect()
    }

    #[test]
    fn a_run_that_sold_nothing_or_hit_nothing_is_too_little() {
        let faults = all_hit();
        assert!(faults.len() > 30, "{}", faults.len());
        assert_eq!(shortfalls(30_000, 120, &faults), Vec::<String>::new());
        assert_eq!(shortfalls(30_000, 119, &faults).len(), 1, "a system that refuses everybody");
        let mut missed = faults.clone();
        missed.iter_mut().for_each(|record| record.injected = false);
        assert!(shortfalls(30_000, 120, &missed)[0].contains("faults hit"), "{:?}", shortfalls(30_000, 120, &missed));
        assert_eq!(shortfalls(30_000, 120, &[]).len(), 1, "no fault was planned");
        let often = faults
            .iter()
            .map(|record| record.fault.kind)
            .find(|kind| faults.iter().filter(|record| record.fault.kind == *kind).count() >= PLANNED);
        let often = often.expect("a kind that comes often");
        let mut blind = faults;
        blind.iter_mut().filter(|record| record.fault.kind == often).for_each(|record| record.injected = false);
        assert_eq!(shortfalls(30_000, 120, &blind).len(), 1, "{}", often.name());
    }
}
