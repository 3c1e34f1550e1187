//! P2's decision as the buyer's answer: the request id, or the problem that says why not.
//!
//! Input: a decision. Output: the answer, counted by its state. Marks the sale as sold out when P2 found it so.

use super::Purchasing;
use super::sale_state::{ended, not_started, only_by_line, paused, token_missing};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::policy::LimitBy;
use crate::domain::reserve::Reserved;
use crate::domain::states::{P2Reserve, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::catalog::SaleView;
use crate::p1_entry::overload::overloaded;
use crate::p1_entry::status::status_url;
use crate::p2_reserve::Decision;
use crate::telemetry::count;
use std::num::NonZeroU32;

impl Purchasing {
    /// The answer to one decision.
    pub(super) async fn answer(
        &self,
        decision: Decision,
        request_id: RequestId,
        shard: u16,
        view: &SaleView,
    ) -> Result<RequestId, Problem> {
        let sale = &view.sale.sale_id;
        let reserved = match decision {
            Decision::Decided(reserved) => reserved,
            Decision::Unknown => {
                return Err(Kind::Unknown
                    .because_both("the purchase may or may not have been accepted", "购买可能已被受理，也可能没有")
                    .about(request_id, status_url(sale, request_id)));
            }
            Decision::Unavailable => return Err(Kind::Unavailable.into()),
            Decision::AllEmpty => {
                count(State::P2(P2Reserve::BucketAllEmpty), 1);
                Box::pin(self.catalog.mark_sold_out(view)).await;
                return Err(Kind::AllEmpty.into());
            }
            Decision::BucketEmpty => {
                return Err(Kind::BucketEmpty.because_both("units are between two buckets", "库存正在分桶之间调拨"));
            }
            Decision::Overloaded => return Err(overloaded("too many requests are waiting")),
        };
        if let Some(state) = reserved.state() {
            count(State::P2(state), 1);
        }
        tracing::debug!(phase = "p2_reserve", %request_id, %sale, ?reserved, "decided");
        if reserved == Reserved::Short(0) {
            Box::pin(self.catalog.mark_sold_out(view)).await;
        }
        // Whatever showed that this process knows an old sale.
        if matches!(reserved, Reserved::StaleEpoch | Reserved::TokenMissing | Reserved::OnlyByLine) {
            Box::pin(self.catalog.forget(sale)).await;
        }
        self.decided(&reserved, request_id, shard, view)
    }

    /// The answer to what the script decided.
    fn decided(
        &self,
        reserved: &Reserved,
        request_id: RequestId,
        shard: u16,
        view: &SaleView,
    ) -> Result<RequestId, Problem> {
        let sale = &view.sale.sale_id;
        match *reserved {
            Reserved::Accepted => {
                self.admission.accepted(sale, shard, request_id);
                Ok(request_id)
            }
            Reserved::Replayed => Ok(request_id),
            // It may be the request of another account.
            Reserved::DuplicateBuyer(_) if view.sale.limit_by == LimitBy::Person => Err(Kind::Duplicate.because_both(
                "one purchase a person in this sale, by whichever account",
                "该活动每人限购一次，不论使用哪个账号",
            )),
            Reserved::DuplicateBuyer(first) => Err(Kind::Duplicate
                .because_both("one purchase a buyer in this sale", "该活动每人限购一次")
                .about(first, status_url(sale, first))),
            Reserved::LimitExceeded(owned) => {
                let limit = view.sale.policy.limit().unwrap_or_default();
                let who = who(view);
                let english = format!("the limit is {limit} a {who}, you have {owned}");
                Err(Kind::LimitExceeded.because_both(english, format!("每人限购 {limit} 件，您已有 {owned} 件")))
            }
            Reserved::DropLimitExceeded(owned) => Err(drop_limit(view, owned)),
            Reserved::Short(0) => Err(Kind::SoldOut.into()),
            Reserved::Short(left) => {
                Err(Kind::NotEnough.because_both(format!("{left} left"), format!("仅剩 {left} 件")).remaining(left))
            }
            Reserved::Conflict => {
                Err(Kind::TokenReused
                    .because_both("repeat it with the quantity of the first time", "请按第一次的数量重试"))
            }
            Reserved::Paused => Err(paused("stopped by an operator", "已由运营暂停")),
            Reserved::Closed => Err(Kind::Ended.into()),
            Reserved::Frozen | Reserved::NotLoaded => {
                Err(paused("closed until its stock has been checked", "库存核对完成之前暂停售卖"))
            }
            Reserved::NotStarted(wait_ms) => Err(not_started(wait_ms)),
            Reserved::Ended => Err(ended()),
            Reserved::StaleEpoch => Err(Kind::Loading.because_both("the sale is being reloaded", "活动正在重新加载")),
            Reserved::TokenMissing => Err(token_missing(sale)),
            Reserved::OnlyByLine => Err(only_by_line(sale)),
            Reserved::Backlog => Err(overloaded("more orders are waiting than can be landed in time")),
            Reserved::Damaged => {
                Err(unusable(sale, "the sale's keys in redis are damaged, nothing is sold; run seckill audit"))
            }
            Reserved::OtherShards => {
                let shards = self.replays.shards();
                Err(unusable(
                    sale,
                    &format!(
                        "the sale was warmed for another number of shards than {shards}, nothing is sold; set redis.shards back"
                    ),
                ))
            }
        }
    }
}

/// Who counts as one for limits.
const fn who(view: &SaleView) -> &'static str {
    match view.sale.limit_by {
        LimitBy::Account => "buyer",
        LimitBy::Person => "person",
    }
}

/// The limit of the drop, over all its sales.
fn drop_limit(view: &SaleView, owned: u64) -> Problem {
    let limit = view.sale.in_drop.as_ref().and_then(|drop| drop.limit).map_or(0, NonZeroU32::get);
    let who = who(view);
    let english = format!("the limit over all sales of this drop is {limit} a {who}, you have {owned}");
    Kind::LimitExceeded.because_both(english, format!("该组合活动合计每人限购 {limit} 件，您已有 {owned} 件"))
}

/// What only an operator can put right.
fn unusable(sale: &SaleId, why: &str) -> Problem {
    tracing::error!(phase = "p2_reserve", %sale, "{why}");
    Kind::Unavailable.into()
}
