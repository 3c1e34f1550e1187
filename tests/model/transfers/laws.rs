//! What must always hold of two buckets, and what their searches must have seen to be worth anything.

use super::setup::TransfersSetup;
use super::state::{Happened, Mover, TwoBuckets};
use super::steps::is_quiet;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 5] = [
    ("B1", "no more requests are accepted than there are units, over both buckets"),
    (
        "B2",
        "an open sale of which the audit says \"consistent\" has each unit in one place: a bucket, a record that is not given, or an \
         order",
    ),
    (
        "B3",
        "the audit has no finding while no server went back in time, and none at all where writes wait for the replicas",
    ),
    (
        "B4",
        "when nothing happens any more, the sale is open, no transfer is under way, and each unit can be bought; or the audit has a \
         finding",
    ),
    ("B5", "a record is forgotten only when its very units are in the target's bucket"),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 8] = [
    ("both movers", "two processes have the same record to give"),
    ("a record is found", "a process gives what another one took"),
    ("given before", "a gift is repeated"),
    ("refused as behind", "a target refuses a number that it was given with other units, or one below its last"),
    ("gift of an old epoch", "a call of before a rebuild comes after it"),
    ("the fence freezes", "a server that went back is compared, and freezes the sale"),
    ("the audit freezes", "units are in two buckets although the fence was passed"),
    ("rebuilt", "the sale sells in its second epoch"),
];

pub fn all() -> Vec<Property<TransfersSetup>> {
    let [b1, b2, b3, b4, b5] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4, s5, s6, s7, s8] = SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(b1, |_, buckets: &TwoBuckets| !buckets.too_many),
        Property::always(b2, |setup, buckets: &TwoBuckets| {
            !buckets.is_open() || buckets.units_are_right() || buckets.has_finding(setup)
        }),
        Property::always(b3, |setup, buckets: &TwoBuckets| {
            (buckets.went_back && !setup.waits) || !buckets.is_open() || !buckets.has_finding(setup)
        }),
        Property::always(b4, everything_can_be_bought),
        Property::always(b5, |_, buckets: &TwoBuckets| !buckets.forgot_too_early),
        Property::sometimes(
            s1,
            |_, buckets: &TwoBuckets| matches!(buckets.movers, [Mover::Gives(one), Mover::Gives(other)] if one == other),
        ),
        Property::sometimes(s2, |_, buckets: &TwoBuckets| buckets.happened == Some(Happened::FoundRecord)),
        Property::sometimes(s3, |_, buckets: &TwoBuckets| buckets.happened == Some(Happened::GivenBefore)),
        Property::sometimes(s4, |_, buckets: &TwoBuckets| buckets.happened == Some(Happened::Behind)),
        Property::sometimes(s5, |_, buckets: &TwoBuckets| buckets.happened == Some(Happened::OldEpoch)),
        Property::sometimes(s6, |_, buckets: &TwoBuckets| buckets.happened == Some(Happened::FenceFroze)),
        Property::sometimes(s7, |_, buckets: &TwoBuckets| buckets.happened == Some(Happened::AuditFroze)),
        Property::sometimes(s8, |_, buckets: &TwoBuckets| buckets.epoch > 1 && buckets.is_open()),
    ]
}

/// B4.
fn everything_can_be_bought(setup: &TransfersSetup, buckets: &TwoBuckets) -> bool {
    let recorded = buckets.keys.iter().any(|keys| keys.record.is_some());
    let right = buckets.is_open() && !recorded && buckets.units_are_right();
    right || buckets.has_finding(setup) || !is_quiet(setup, buckets)
}
