//! What must always hold of a drop, and what its searches must have seen to be worth anything.

use super::setup::DropsSetup;
use super::state::{DropMoment, KEYS, Place, Requested, Sells};
use super::steps::is_quiet;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 4] = [
    (
        "D1",
        "a person never has more orders of a drop than its limit, whatever Redis lost and whatever a person replays",
    ),
    (
        "D2",
        "the script accepts no request of a person who has the drop's limit in orders or on their way; of what was parked it \
         may know nothing after a rebuild",
    ),
    (
        "D3",
        "when nothing happens any more, each sale of the drop is whole, each accepted request of which anything is left is \
         decided, and Redis, `drop_purchases` and the orders have the same sums",
    ),
    ("D4", "when nothing happens any more, who has not reached the limit can buy in each sale that is open"),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 4] = [
    ("waited", "a sale sells nothing, because another sale of its drop is frozen"),
    ("guarded", "the database refuses what Redis accepted"),
    ("bought again", "a person whose order in one sale was cancelled buys in the other"),
    ("archived", "the drop is closed, and both sales are archived"),
];

/// Whether Redis, `drop_purchases` and the orders agree. Requests that were refused or parked still count in Redis.
fn adds_up(setup: &DropsSetup, moment: &DropMoment) -> bool {
    let is_counted =
        |request: &Requested| !matches!(request.place, Place::Refused | Place::Parked) && !request.was_parked;
    let is_archived = moment.sales.iter().any(|sale| sale.sells == Sells::Archived);
    let in_redis = is_archived
        || !moment.requests.iter().all(is_counted)
        || (0..KEYS).all(|key| moment.owned(key) == moment.ordered_of(setup, None, key));
    in_redis && (0..KEYS).all(|key| moment.noted[key] == moment.ordered_of(setup, None, key))
}

pub fn all() -> Vec<Property<DropsSetup>> {
    let [d1, d2, d3, d4] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4] = SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(d1, |setup: &DropsSetup, moment: &DropMoment| moment.ordered() <= setup.limit),
        Property::always(d2, |_, moment: &DropMoment| !moment.over),
        Property::always(d3, |setup, moment: &DropMoment| {
            let is_whole = moment.sales.iter().all(|sale| match sale.sells {
                Sells::Open | Sells::Closed => sale.has_buyers,
                Sells::Archived => true,
                Sells::Frozen | Sells::Begun | Sells::Loaded => false,
            });
            let is_decided = moment.requests.iter().all(|request| !request.place.is_on_its_way());
            (is_whole && is_decided && adds_up(setup, moment)) || !is_quiet(setup, moment)
        }),
        Property::always(d4, |setup, moment: &DropMoment| {
            let is_kept_out = moment.wished(setup).any(|(wish, request)| {
                let is_open = moment.sales[wish.sale].sells == Sells::Open;
                request.place == Place::Nowhere && is_open && moment.owned(setup.key(wish.account)) < setup.limit
            });
            !is_kept_out || !is_quiet(setup, moment)
        }),
        Property::sometimes(s1, |_, moment: &DropMoment| moment.waited),
        Property::sometimes(s2, |_, moment: &DropMoment| moment.guarded),
        Property::sometimes(s3, |_, moment: &DropMoment| moment.bought_again),
        Property::sometimes(s4, |_, moment: &DropMoment| {
            moment.sales.iter().all(|sale| sale.sells == Sells::Archived) && moment.ordered() > 0
        }),
    ]
}
