//! The rules of a new sale's payment step.

use super::new_sale::{NewSaleForm, Rule};
use crate::domain::payment::AMOUNT_MAX;
use crate::domain::policy::ORDER_UNITS_MAX;

/// Longest time to pay, seconds: 30 days.
pub(super) const PAY_WITHIN_S_MAX: u32 = 2_592_000;
/// Longest grace, seconds.
pub(super) const PAY_GRACE_S_MAX: u32 = 86_400;

impl NewSaleForm {
    /// What an order costs at most, in the currency's smallest unit.
    fn dearest_order(&self) -> i128 {
        i128::from(self.price_cents) * i128::from(self.limit.unwrap_or(ORDER_UNITS_MAX).min(ORDER_UNITS_MAX))
    }

    /// The rules of the payment step.
    pub(super) fn payment_rules(&self) -> [Rule; 5] {
        [
            (
                self.price_cents > 0 || self.pay_within_s.is_none(),
                "price_cents",
                "1 to 1,000,000,000,000 where the sale has a payment step (pay_within_s): what costs nothing needs no payment",
                "1 至 1,000,000,000,000（有付款环节 pay_within_s 的活动）：免费的订单没有人付款",
            ),
            (
                self.pay_within_s.is_none() || self.dearest_order() <= i128::from(AMOUNT_MAX),
                "price_cents",
                "at most 9,007,199,254,740,991 for all units that one order may have, which is limit, or 1,000,000 without \
                 one: more cannot be reported as paid; set a limit, or a lower price",
                "（一笔订单可购件数 × 单价）至多 9,007,199,254,740,991；可购件数为 limit，不限时按 1,000,000 计：更高的金额无法报告付款；\
                 请设置限购或降低单价",
            ),
            (
                self.pay_within_s.is_none_or(|s| (1..=PAY_WITHIN_S_MAX).contains(&s)),
                "pay_within_s",
                "1 to 2,592,000 seconds, or none for no payment step",
                "1 至 2,592,000 秒，或留空无付款环节",
            ),
            (self.pay_grace_s <= PAY_GRACE_S_MAX, "pay_grace_s", "0 to 86,400 seconds", "0 至 86,400 秒"),
            (
                !self.limit_returns || self.pay_within_s.is_some(),
                "limit_returns",
                "false where the sale has no payment step (pay_within_s)",
                "无付款环节（pay_within_s）时为 false",
            ),
        ]
    }
}
