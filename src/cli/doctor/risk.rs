//! The shop's risk service: whether it answers, and whether there is one where a sale asks for it.
//!
//! Input: the sales that are not over, and `[risk]`. Output: a line where either has to do with it. It is asked once, about no buyer.

use super::check::{CheckVerdict, DoctorCheck};
use crate::config::Risk;
use crate::domain::challenge::Challenge;
use crate::domain::sale::{Sale, SaleStatus};
use crate::p1_entry::challenge::risk::probe;
use crate::runtime::now_ms;
use crate::sales::rows::SaleRows;

/// Nothing where there is no service and no sale that needs one.
pub(super) async fn check_risk(sales: &SaleRows, risk: &Risk) -> Option<DoctorCheck> {
    let (sales, now_ms) = (sales.list().await.unwrap_or_default(), now_ms());
    let is_over = |sale: &Sale| sale.status == SaleStatus::Closed || sale.ends_at_ms <= now_ms;
    let mut hooked = sales.iter().filter(|sale| sale.challenge == Some(Challenge::Hook) && !is_over(sale));
    let sale = hooked.next().map(|sale| &sale.sale_id);
    let check = |value: &str, expected: &str| DoctorCheck::new("risk", "risk.url", value, expected);
    if !risk.is_given() {
        let sale = sale?;
        let why = format!("sale {sale} has the challenge hook: without a service it issues no purchase token");
        let change =
            format!("give risk.url and risk.secrets, or seckill sale edit {sale} --challenge none before its start");
        return Some(check("none", "the address of the risk service").judged(
            false,
            CheckVerdict::Wrong,
            &why,
            &change,
        ));
    }
    let (shown, expected) = (risk.url.shown(), "answers {\"allow\": true|false}");
    Some(match probe(risk).await {
        Ok(()) => check(&shown, expected),
        Err(problem) => {
            let verdict = if sale.is_some() { CheckVerdict::Away } else { CheckVerdict::Warning };
            let why = format!("risk.on_failure decides about buyers until it is back: {problem}");
            let change =
                "start it, or mend what it names; it verifies the signature and answers 200 within risk.timeout_ms";
            check(&format!("{shown}: does not answer"), expected).judged(false, verdict, &why, change)
        }
    })
}
