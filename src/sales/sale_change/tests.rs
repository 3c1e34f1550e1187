//! The rules of changes, one by one.

use super::*;
use crate::domain::ids::SaleId;
use crate::domain::policy::PurchasePolicy;
use crate::sales::forms::CloneForm;

const NOW_MS: i64 = 1_800_000_000_000;
const HOUR_MS: i64 = 3_600_000;

fn sale(starts_in_ms: i64, status: SaleStatus) -> Sale {
    let text = r#"{"id":"s","product":"p","title":"t","stock":5,"limit":1,"price_cents":5,"pay_within_s":60,"limit_returns":true,
        "starts_at":"2026-01-01T10:00:00+08:00","ends_at":"2026-01-01T12:00:00+08:00"}"#;
    let new: NewSaleForm = serde_json::from_str(text).unwrap();
    let (starts_at_ms, ends_at_ms) = (NOW_MS + starts_in_ms, NOW_MS + starts_in_ms + HOUR_MS);
    Sale { starts_at_ms, ends_at_ms, status, ..new.draft().unwrap() }
}

fn edited(sale: &Sale, edit: &str) -> Result<Sale, ChangeRefusal> {
    SaleChange::Edit(serde_json::from_str(edit).unwrap()).applied(sale, NOW_MS)
}

fn moved(sale: &Sale, start_in_ms: Option<i64>, end_in_ms: Option<i64>) -> Result<Sale, ChangeRefusal> {
    let at = |ms: i64| DateTime::from_timestamp_millis(NOW_MS + ms).unwrap();
    let times = RescheduleForm { starts_at: start_in_ms.map(at), ends_at: end_in_ms.map(at) };
    SaleChange::Reschedule(times).applied(sale, NOW_MS)
}

#[test]
fn an_edit_changes_what_it_names_and_nothing_else() {
    let before = sale(HOUR_MS, SaleStatus::Warmed);
    let after = edited(&before, r#"{"title":"new","price_cents":7,"limit":null}"#).unwrap();
    let policy = PurchasePolicy::Unlimited;
    assert_eq!(after, Sale { title: "new".into(), price_cents: 7, policy, ..before.clone() });
    let free = edited(&before, r#"{"pay_within_s":null}"#).unwrap();
    assert_eq!(free, Sale { payment: None, ..before }, "what belongs to the payment step goes with it");
}

#[test]
fn an_edit_is_refused_with_the_field_or_the_reason() {
    let early = sale(HOUR_MS, SaleStatus::Warmed);
    for (edit, field) in [
        ("{}", "body"),
        (r#"{"title":" "}"#, "title"),
        (r#"{"price_cents":-1}"#, "price_cents"),
        (r#"{"price_cents":0}"#, "price_cents"),
        (r#"{"currency":"yuan"}"#, "currency"),
        (r#"{"limit":0}"#, "limit"),
        (r#"{"pay_within_s":0}"#, "pay_within_s"),
        (r#"{"pay_within_s":null,"limit_returns":true}"#, "limit_returns"),
    ] {
        let refused = edited(&early, edit).unwrap_err();
        assert!(matches!(&refused, ChangeRefusal::Value(bad) if bad.field == field), "{edit}: {refused}");
    }
    let title = r#"{"title":"new"}"#;
    for starts_in_ms in [SETTLED_MS, 0, -1] {
        let late = sale(starts_in_ms, SaleStatus::Warmed);
        assert_eq!(edited(&late, title), Err(ChangeRefusal::StartSettled(late.starts_at_ms)));
    }
    assert!(edited(&sale(SETTLED_MS + 1, SaleStatus::Paused), title).is_ok());
    assert_eq!(edited(&sale(HOUR_MS, SaleStatus::Closed), title), Err(ChangeRefusal::Closed));
    for units in [r#"{"stock":9}"#, r#"{"stock":null}"#] {
        let refused = edited(&sale(HOUR_MS, SaleStatus::Draft), units).unwrap_err().to_string();
        assert_eq!(refused, "stock: expected none in an edit; add units with top-up");
    }
}

#[test]
fn the_start_moves_before_it_and_the_end_until_it_and_neither_into_the_past() {
    let early = sale(HOUR_MS, SaleStatus::Draft);
    let later = moved(&early, Some(2 * HOUR_MS), Some(3 * HOUR_MS)).unwrap();
    assert_eq!((later.starts_at_ms, later.ends_at_ms), (NOW_MS + 2 * HOUR_MS, NOW_MS + 3 * HOUR_MS));
    assert_eq!(moved(&early, Some(SETTLED_MS), None), Err(START_PAST.into()));
    assert_eq!(moved(&early, None, None), Err(NOTHING.into()));
    let field = |refused: Result<Sale, ChangeRefusal>| {
        let ChangeRefusal::Value(bad) = refused.unwrap_err() else { panic!("another refusal") };
        bad.field
    };
    assert_eq!(field(moved(&early, Some(3 * HOUR_MS), None)), "ends_at", "the end stays behind the start");
    let free = Sale { price_cents: 0, ..early };
    assert!(moved(&free, None, Some(9 * HOUR_MS)).is_ok(), "as it was made by a build without the rule");
    let former = Sale { currency: "RMB".into(), ..sale(-1, SaleStatus::Warmed) };
    let longer = moved(&former, None, Some(9 * HOUR_MS)).unwrap();
    assert_eq!((longer.currency.as_str(), longer.ends_at_ms), ("RMB", NOW_MS + 9 * HOUR_MS), "so is its currency");
    let running = sale(-1, SaleStatus::Warmed);
    assert_eq!(moved(&running, Some(HOUR_MS), None), Err(ChangeRefusal::StartSettled(running.starts_at_ms)));
    assert_eq!(moved(&running, Some(-1), Some(9)).unwrap().ends_at_ms, NOW_MS + 9, "the same start is no change");
    assert_eq!(moved(&running, None, Some(0)), Err(END_PAST.into()));
    let over = sale(-HOUR_MS, SaleStatus::Warmed);
    assert_eq!(moved(&over, None, Some(HOUR_MS)), Err(ChangeRefusal::Ended(NOW_MS)));
    assert_eq!(moved(&sale(0, SaleStatus::Closed), None, Some(9)), Err(ChangeRefusal::Closed));
}

#[test]
fn a_sale_is_hidden_only_while_it_does_not_sell() {
    let hide = |sale: &Sale| SaleChange::Hide.applied(sale, NOW_MS).map(|sale| sale.hidden);
    assert_eq!(hide(&sale(-1, SaleStatus::Warmed)), Err(ChangeRefusal::OnSale));
    assert_eq!(hide(&sale(SETTLED_MS, SaleStatus::Draft)), Err(ChangeRefusal::OnSale), "it warms itself and starts");
    for quiet in [
        sale(-1, SaleStatus::Paused),
        sale(SETTLED_MS + 1, SaleStatus::Warmed),
        sale(-HOUR_MS, SaleStatus::Warmed),
        sale(-1, SaleStatus::Closed),
        Sale { hidden: true, ..sale(-1, SaleStatus::Warmed) },
    ] {
        assert_eq!(hide(&quiet), Ok(true), "{quiet:?}");
        assert!(!SaleChange::Publish.applied(&quiet, NOW_MS).unwrap().hidden);
    }
}

#[test]
fn a_clone_has_the_terms_and_a_life_of_its_own() {
    let of = Sale { granted: 9, stock: 2, epoch: 4, version: 7, hidden: true, ..sale(-HOUR_MS, SaleStatus::Closed) };
    let form = r#"{"id":"again","starts_at":"2030-01-01T10:00:00Z","ends_at":"2030-01-01T11:00:00Z"}"#;
    let form: CloneForm = serde_json::from_str(form).unwrap();
    let again = form.draft(&of).unwrap();
    assert_eq!((again.status, again.granted, again.stock, again.epoch), (SaleStatus::Draft, 9, 9, 1));
    assert_eq!((again.hidden, again.version), (false, 1));
    let terms = |sale: &Sale| (sale.title.clone(), sale.price_cents, sale.policy, sale.payment, sale.token_required);
    assert_eq!(terms(&again), terms(&of));
    assert_eq!(again.sale_id, SaleId::parse("again").unwrap());
    assert_eq!(CloneForm { stock: Some(-1), ..form }.draft(&of).unwrap_err().field, "stock");
}
