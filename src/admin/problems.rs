//! Errors of the stores and of the work below, as problems of the admin API.

use crate::buyers::forget::on_its_way::OnItsWay;
use crate::buyers::forget::{ForgetError, listed};
use crate::buyers::rows::{BLOCKS_MAX, BlockError};
use crate::domain::grant_names::reserved;
use crate::http::bad_form::BadForm;
use crate::http::problem::{Kind, Problem};
use crate::p5_reconcile::ReconcileError;
use crate::p5_reconcile::dlq::DlqError;
use crate::p6_fulfil::{CancelError, NoOrderYet, PaymentError};
use crate::sales::forms::BadDrop;
use crate::sales::rows::error::SaleError;
use crate::sales::{ChangeRefusal, SaleControlError};
use crate::store::mysql::DbError;

impl From<DbError> for Problem {
    fn from(error: DbError) -> Self {
        Kind::Unavailable.because_both(error.to_string(), format!("数据库没有完成：{error}"))
    }
}

impl From<BlockError> for Problem {
    fn from(error: BlockError) -> Self {
        let english = error.to_string();
        match error {
            BlockError::TooMany => Kind::Conflict
                .because_both(english, format!("已有 {BLOCKS_MAX} 名买家被限制，不能再增加；请先解除一些")),
            BlockError::Db(error) => error.into(),
        }
    }
}

impl From<ForgetError> for Problem {
    fn from(error: ForgetError) -> Self {
        let english = error.to_string();
        let (kind, chinese) = match error {
            ForgetError::Unknown => {
                (Kind::BuyerNotFound, "没有该买家的任何记录；请确认它就是访问令牌中的 sub，写法一致".to_owned())
            }
            ForgetError::OnItsWay(all) => {
                (Kind::Conflict, format!("该买家还有事项在途，未做任何更改：{}", listed(&all, OnItsWay::chinese)))
            }
            ForgetError::Unfinished(all) => (
                Kind::Conflict,
                format!("正在遗忘该买家，由 P5 继续完成；还在等待：{}", listed(&all, OnItsWay::chinese)),
            ),
            ForgetError::Rights(missing) => (
                Kind::Conflict,
                format!(
                    "mysql.url 的账号无权更新 {}；请用专用账号执行命令，见 docs/operations.zh-CN.md",
                    missing.join("、")
                ),
            ),
            ForgetError::NoPseudonym => {
                (Kind::Conflict, "没有找到与该买家在所有分片数下归属相同的化名，请重试".to_owned())
            }
            ForgetError::Redis(fault) => (Kind::Unavailable, format!("Redis 没有完成：{fault}")),
            ForgetError::Database(error) => return error.into(),
            ForgetError::Rabbit(error) => (Kind::Unavailable, format!("RabbitMQ 没有完成：{error}")),
        };
        kind.because_both(english, chinese)
    }
}

impl From<SaleError> for Problem {
    fn from(error: SaleError) -> Self {
        let english = error.to_string();
        let (kind, chinese) = match error {
            SaleError::Exists(id) => (Kind::Conflict, format!("活动 {id} 已存在，请换一个编号")),
            SaleError::DropExists(id) => (Kind::Conflict, format!("组合活动 {id} 已存在，请换一个编号")),
            SaleError::Archived(id) => (Kind::Conflict, format!("活动 {id} 已归档，其编号不再使用，请换一个编号")),
            SaleError::GrantConflict(grant) => (Kind::Conflict, format!("授量 {grant} 已存在，且数量不同")),
            SaleError::BooksDisagree(id) => (
                Kind::Conflict,
                format!("活动 {id} 未售出的库存少于失败请求应退回的；没有回收，请运行 seckill audit --sale {id}"),
            ),
            SaleError::WithdrawalConflict(name, field) => {
                (Kind::Conflict, format!("名为 {name} 的下架已存在，且 {field} 不同；请换一个名称"))
            }
            SaleError::OtherDrop(from, to) => {
                (Kind::Unprocessable, format!("库存只能在同一组合活动内移动，活动 {from} 与 {to} 不属于同一组合活动"))
            }
            SaleError::UnsoldDisagree(id) => (
                Kind::Conflict,
                format!(
                    "活动 {id} 在数据库中的未售库存少于 Redis 交出的数量；下架保持未完成，请运行 seckill audit --sale {id}"
                ),
            ),
            SaleError::Status(id, status) => {
                (Kind::Conflict, format!("活动 {id} 现为 {}，未做任何更改", status.code()))
            }
            SaleError::Unknown(id) => (Kind::SaleNotFound, format!("没有活动 {id}")),
            SaleError::TooMuch(id) => (Kind::Unprocessable, format!("活动 {id} 的库存将超过上限")),
            SaleError::GrantReserved(grant) => {
                (Kind::Unprocessable, format!("授量名 {grant} 由系统使用；请勿以 {} 开头", reserved("、", " 或 ")))
            }
            SaleError::Db(error) => return error.into(),
        };
        kind.because_both(english, chinese)
    }
}

impl From<SaleControlError> for Problem {
    fn from(error: SaleControlError) -> Self {
        let english = error.to_string();
        let (kind, chinese) = match error {
            SaleControlError::Sale(error) => return error.into(),
            SaleControlError::Refused(refusal) => return refusal.into(),
            SaleControlError::NoSuchSale(id) => (Kind::SaleNotFound, format!("没有活动 {id}")),
            SaleControlError::NoSuchDrop(id) => (Kind::DropNotFound, format!("没有组合活动 {id}")),
            SaleControlError::OfDrop(id, of) => (
                Kind::Conflict,
                format!("活动 {id} 属于组合活动 {of}，其所有活动一起关闭；请暂停该活动，或关闭整个组合活动"),
            ),
            SaleControlError::Closed(id) => (Kind::Conflict, format!("活动 {id} 已关闭，不能再打开；请新建活动")),
            SaleControlError::NotWarmed(id) => (Kind::Conflict, format!("活动 {id} 尚未预热；请先预热")),
            SaleControlError::Draft(id) => {
                (Kind::Conflict, format!("活动 {id} 是草稿，尚无库存在售；请关闭它，并以较少库存新建活动"))
            }
            SaleControlError::KeysLost(id) => {
                (Kind::Conflict, format!("Redis 丢失了活动 {id} 的数据；由数据库重建之前保持关闭"))
            }
            SaleControlError::OtherShards(id, theirs, ours) => (
                Kind::Conflict,
                format!("活动 {id} 以 redis.shards = {theirs} 预热，本进程为 {ours}；活动存续期间不能更改，请改回"),
            ),
            SaleControlError::Frozen(id) => (Kind::Conflict, format!("活动 {id} 已冻结；对账进程重建后恢复")),
            SaleControlError::NotFollowed(id, fault) => (
                Kind::Unavailable,
                format!("活动 {id} 已在数据库中修改，但未能告知 Redis（{fault}）；其恢复后数秒内自动跟上"),
            ),
            SaleControlError::Redis(fault) => (Kind::Unavailable, format!("Redis 没有完成：{fault}")),
            SaleControlError::Database(error) => return error.into(),
            SaleControlError::NotRecorded(error) => {
                (Kind::Unavailable, format!("已经完成，但未能写入操作记录：{error}；可再执行一次，不会有其他改变"))
            }
        };
        kind.because_both(english, chinese)
    }
}

impl From<ChangeRefusal> for Problem {
    fn from(refusal: ChangeRefusal) -> Self {
        let kind = match &refusal {
            ChangeRefusal::Value(bad) => return (*bad).into(),
            ChangeRefusal::Closed
            | ChangeRefusal::StartSettled(_)
            | ChangeRefusal::Ended(_)
            | ChangeRefusal::OnSale
            | ChangeRefusal::Overtaken(_) => Kind::Conflict,
        };
        kind.because_both(refusal.to_string(), refusal.chinese())
    }
}

impl From<ReconcileError> for Problem {
    fn from(error: ReconcileError) -> Self {
        let english = error.to_string();
        let (kind, chinese) = match error {
            ReconcileError::Redis(fault) => (Kind::Unavailable, format!("Redis 没有完成：{fault}")),
            ReconcileError::Database(error) => return error.into(),
            ReconcileError::OtherShards(theirs, ours) => (
                Kind::Conflict,
                format!("活动以 redis.shards = {theirs} 预热，本进程为 {ours}；活动存续期间不能更改，请改回"),
            ),
            ReconcileError::Moved => (Kind::Unavailable, "核对期间该活动的记录被清理，请再次核对".to_owned()),
        };
        kind.because_both(english, chinese)
    }
}

impl From<DlqError> for Problem {
    fn from(error: DlqError) -> Self {
        let english = error.to_string();
        let (kind, chinese) = match error {
            DlqError::Busy(why) => (Kind::Conflict, format!("现在无法处理，请稍后再试：{why}")),
            DlqError::Redis(fault) => (Kind::Unavailable, format!("Redis 没有完成：{fault}")),
            DlqError::Database(error) => return error.into(),
            DlqError::Rabbit(error) => (Kind::Unavailable, format!("RabbitMQ 没有完成：{error}")),
        };
        kind.because_both(english, chinese)
    }
}

impl From<CancelError> for Problem {
    fn from(error: CancelError) -> Self {
        let english = error.to_string();
        match error {
            CancelError::BeingRebuilt(id) => {
                let chinese = format!("活动 {id} 正在重建，完成之前不能取消订单；未做任何更改，请稍后重试");
                Kind::Unavailable.because_both(english, chinese)
            }
            CancelError::NoOrderYet(why) => why.into(),
            CancelError::Database(error) => error.into(),
        }
    }
}

impl From<PaymentError> for Problem {
    fn from(error: PaymentError) -> Self {
        match error {
            PaymentError::NoOrderYet(why) => why.into(),
            PaymentError::Database(error) => error.into(),
        }
    }
}

impl From<NoOrderYet> for Problem {
    fn from(why: NoOrderYet) -> Self {
        let english = why.to_string();
        let chinese = match why {
            NoOrderYet::ToCome(id) => format!("请求 {id} 已受理，订单尚未写入；未做任何记录，请数秒后重试"),
            NoOrderYet::Unread(id, why) => format!("暂时无法得知请求 {id} 是否已受理（{why}）；未做任何记录，请重试"),
        };
        Kind::OrderNotWritten.because_both(english, chinese)
    }
}

impl From<BadDrop> for Problem {
    fn from(bad: BadDrop) -> Self {
        let of_sale = bad.sale.as_ref().map_or_else(String::new, |sale| format!("活动 {sale}："));
        let chinese = of_sale + &bad.bad.in_chinese();
        Kind::Unprocessable.because_both(bad.to_string(), chinese).of_field(bad.bad.field, bad.sale)
    }
}

impl From<BadForm> for Problem {
    fn from(bad: BadForm) -> Self {
        Kind::Unprocessable.because_both(bad.to_string(), bad.in_chinese()).of_field(bad.field, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;
    use crate::store::redis::RedisFault;
    use actix_web::body::MessageBody;
    use actix_web::test::TestRequest;

    /// What a client reads that prefers this language.
    fn detail(problem: &Problem, language: &str) -> String {
        let request = TestRequest::default().insert_header(("Accept-Language", language)).to_http_request();
        let body = problem.respond(Language::of(request.headers())).into_body().try_into_bytes().unwrap();
        serde_json::from_slice::<serde_json::Value>(&body).unwrap()["detail"].as_str().unwrap().to_owned()
    }

    #[test]
    fn what_an_audit_the_dead_letter_queues_or_a_cancellation_met_is_said_in_the_callers_language() {
        let away = || RedisFault::Unknown("no answer".to_owned());
        let sale = crate::domain::ids::SaleId::parse("s").unwrap();
        let request = crate::domain::ids::RequestId::new(7).unwrap();
        let problems: [(Problem, u16); 9] = [
            (ReconcileError::Redis(away()).into(), 503),
            (ReconcileError::OtherShards(4, 2).into(), 409),
            (ReconcileError::Moved.into(), 503),
            (DlqError::Busy("another process works on it".to_owned()).into(), 409),
            (DlqError::Redis(away()).into(), 503),
            (DlqError::Database(DbError::Timeout("slow".to_owned())).into(), 503),
            (CancelError::BeingRebuilt(sale).into(), 503),
            (PaymentError::from(NoOrderYet::ToCome(request)).into(), 503),
            (CancelError::from(NoOrderYet::Unread(request, "no answer".to_owned())).into(), 503),
        ];
        for (problem, status) in problems {
            let (english, chinese) = (detail(&problem, "en"), detail(&problem, "zh-CN"));
            assert_eq!(problem.kind().status(), status, "{english}");
            assert!(english.is_ascii() && !chinese.is_ascii(), "{english} / {chinese}");
        }
    }
}
