//! A raffle and a waiting list that were made up, and what a change of them breaks.

use crate::checker::{
    Attempt, Books, Came, DropTerms, Entering, EntryRow, Identity, Leaving, LineRow, Log, OrderRow, Played, Reported,
    Seen, judge,
};
use serde_json::json;

/// A raffle `r` of one unit: cat let it lapse, bob took it, ann waits, dan left before the close. A waiting list `w` of two units that eve and
/// fay clicked: fay did not pay, gus waits for two, so hal got one; ann waits.
pub(super) struct Scene {
    pub(super) terms: DropTerms,
    pub(super) log: Log,
    pub(super) books: Books,
}

/// A request that was chosen at this moment.
pub(super) fn rid(ms: i64) -> String {
    (ms << 22).to_string()
}

pub(super) fn order(rid: &str, sale: &str, buyer: &str, accepted_ms: i64, state: &str) -> OrderRow {
    OrderRow {
        rid: rid.into(),
        sale: sale.into(),
        buyer: buyer.into(),
        person: None,
        quantity: 1,
        amount_cents: 100,
        state: Some(state.into()),
        accepted_ms,
        state_ms: Some(accepted_ms + 2_000),
    }
}

fn entry(id: &str, (sale, buyer): (&str, &str), rank: Option<i64>, state: &str, entered_ms: i64) -> EntryRow {
    EntryRow {
        id: id.into(),
        sale: sale.into(),
        buyer: buyer.into(),
        person: None,
        quantity: 1,
        rank,
        state: state.into(),
        listed: true,
        rid: None,
        entered_ms,
        state_ms: entered_ms,
        reason: None,
    }
}

fn seen(entry: &EntryRow, state: &str, rank: Option<i64>, begun_ms: i64) -> Seen {
    let (buyer, sale, rid) = (entry.buyer.clone(), entry.sale.clone(), entry.rid.clone());
    Seen { buyer, sale, entry: entry.id.clone(), state: state.into(), quantity: 1, rank, rid, begun_ms }
}

pub(super) fn attempt(buyer: &str, begun_ms: i64, came: Came) -> Attempt {
    let (buyer, sale, ended_ms) = (buyer.to_owned(), "w".to_owned(), begun_ms + 5);
    Attempt { buyer, sale, quantity: 1, token: None, shows: true, begun_ms, ended_ms, came, trick: None }
}

fn books() -> Books {
    let mut entries = vec![
        entry("11", ("r", "ann"), None, "WAITING", 500),
        entry("12", ("r", "bob"), Some(2), "TAKEN", 510),
        entry("13", ("r", "cat"), Some(1), "LAPSED", 520),
        entry("14", ("r", "dan"), None, "LEFT", 530),
        entry("21", ("w", "gus"), Some(1), "WAITING", 3_100),
        entry("22", ("w", "hal"), Some(2), "TAKEN", 3_200),
        entry("23", ("w", "ann"), Some(3), "WAITING", 6_000),
    ];
    for (at, ms, until) in [(1, 4_600, 6_000), (2, 2_100, 4_500), (5, 4_300, 6_500)] {
        (entries[at].rid, entries[at].state_ms) = (Some(rid(ms)), until);
    }
    entries[2].reason = Some("EXPIRED".into());
    entries[3].listed = false;
    entries[4].quantity = 2;
    let orders = vec![
        order(&rid(2_100), "r", "cat", 2_110, "EXPIRED"),
        order(&rid(4_600), "r", "bob", 4_610, "PAID"),
        order("1", "w", "eve", 2_100, "PAID"),
        order("2", "w", "fay", 2_200, "EXPIRED"),
        order(&rid(4_300), "w", "hal", 4_310, "PAID"),
    ];
    let digest = Some("842bd935f5e328b60654832a51ec7ce68f533b1a70adb65fb15015d50a36278e".to_owned());
    let raffle = LineRow { seed: "07".repeat(32), digest, by_line: true };
    let list = LineRow { digest: None, ..raffle.clone() };
    Books {
        payments: orders.iter().filter(|order| order.holds_units()).map(|order| (order.rid.clone(), 100)).collect(),
        orders,
        entries,
        lines: [("r".to_owned(), raffle), ("w".to_owned(), list)].into(),
        grants: [(("r".to_owned(), "first".to_owned()), 1), (("w".to_owned(), "first".to_owned()), 2)].into(),
        unsold: [("r".to_owned(), 0), ("w".to_owned(), 0)].into(),
        held: [("r", "bob"), ("w", "eve"), ("w", "hal")].map(|(of, who)| ((of.to_owned(), who.to_owned()), 1)).into(),
        ..Books::default()
    }
}

fn scene() -> Scene {
    let sale = |id: &str, stock: u32, line: &str| {
        json!({ "sale_id": id, "stock": stock, "limit": 2, "price_cents": 100, "pay_within_s": 2, "limit_returns": true,
            "starts_at": "1970-01-01T00:00:02Z", "ends_at": "1970-01-01T00:00:20Z", "line": line })
    };
    let mut file = json!({ "drop_id": "d", "sales": [sale("r", 1, "raffle"), sale("w", 2, "waitlist")] });
    file["sales"][0]["line_closes_at"] = "1970-01-01T00:00:01Z".into();
    let (books, mut log) = (books(), Log::default());
    for buyer in ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"] {
        log.who.insert(buyer.into(), Identity { person: format!("p-{buyer}"), ..Identity::default() });
    }
    log.attempts =
        vec![attempt("eve", 2_095, Came::Accepted("1".into())), attempt("fay", 2_195, Came::Accepted("2".into()))];
    log.reported =
        books.payments.keys().map(|rid| Reported { rid: rid.clone(), amount: 100, paid: Some(true) }).collect();
    log.entering = books
        .entries
        .iter()
        .map(|row| Entering {
            buyer: row.buyer.clone(),
            sale: row.sale.clone(),
            quantity: u32::try_from(row.quantity).unwrap(),
            begun_ms: row.entered_ms - 2,
            ended_ms: row.entered_ms + 5,
            came: Came::Accepted(row.id.clone()),
        })
        .collect();
    log.leaving = vec![Leaving { buyer: "dan".into(), entry: "14".into(), left: Some(true) }];
    log.seen = vec![
        seen(&books.entries[0], "WAITING", Some(3), 8_000),
        seen(&books.entries[1], "OFFERED", Some(2), 5_000),
        seen(&books.entries[6], "WAITING", Some(3), 7_000),
    ];
    Scene { terms: DropTerms::of(&file, None), log, books }
}

/// The rules that a change of the scene breaks.
pub(super) fn broken(change: impl FnOnce(&mut Scene)) -> Vec<&'static str> {
    let mut scene = scene();
    change(&mut scene);
    let Scene { terms, log, books } = &scene;
    let mut rules: Vec<_> = judge(&Played { terms, log, books }).into_iter().map(|found| found.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}
