//! The table of problems. One row a problem: code, status, title in both languages. The code is a state code where a state is the
//! reason. Values only.

use crate::domain::states::{P1Entry, P2Reserve};
use actix_web::http::StatusCode;
use std::sync::LazyLock;

macro_rules! problems {
    ($($kind:ident = $code:expr, $status:literal, $en:literal, $zh:literal;)*) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each row of the table below says what it is")]
        pub enum Kind { $($kind,)* }

        impl Kind {
            /// Every problem of the API.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];
            /// The stable code.
            #[must_use]
            pub const fn code(self) -> &'static str { match self { $(Self::$kind => $code,)* } }
            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 { match self { $(Self::$kind => $status,)* } }
            /// The title in English.
            #[must_use]
            pub const fn english(self) -> &'static str { match self { $(Self::$kind => $en,)* } }
            /// The title in Chinese.
            #[must_use]
            pub const fn chinese(self) -> &'static str { match self { $(Self::$kind => $zh,)* } }
        }
    };
}

problems! {
    BadRequest = "BAD_REQUEST", 400, "The request is malformed", "请求格式错误";
    Unauthorized = "UNAUTHORIZED", 401, "A valid access token is needed", "需要有效的访问令牌";
    Forbidden = "FORBIDDEN", 403, "Your token may not do this", "该令牌没有此权限";
    TokenInvalid = "TOKEN_INVALID", 403, "The purchase token is not valid for this purchase", "购买令牌无效";
    TokenExpired = "TOKEN_EXPIRED", 403, "The purchase token has expired", "购买令牌已过期";
    PlaceInvalid = "PLACE_INVALID", 403, "This place in the waiting room is not yours", "排队凭证无效";
    NotEntitled = P1Entry::NotEntitled.code(), 403, "This sale is for certain buyers only", "该活动仅限符合条件的买家";
    PassInvalid = "PASS_INVALID", 403, "The pass is not valid for this purchase", "通行证无效";
    Blocked = P1Entry::Blocked.code(), 403, "You may not buy here", "您已被限制购买";
    RiskRefused = P1Entry::RiskRefused.code(), 403, "The shop does not let you buy here", "商店未允许您购买";
    NoSuchRoute = "NO_SUCH_ROUTE", 404, "There is nothing at this address", "该地址不存在";
    SaleNotFound = P1Entry::NotFound.code(), 404, "There is no such sale", "活动不存在";
    NoWaitingRoom = "NO_WAITING_ROOM", 404, "This sale has no waiting room; buy at once", "该活动无需排队，可直接购买";
    NoLine = "NO_LINE", 404, "This sale has no line", "该活动没有抽签";
    EntryNotFound = "ENTRY_NOT_FOUND", 404, "You have no such entry in this line", "您在该抽签中没有此登记";
    DropNotFound = "DROP_NOT_FOUND", 404, "There is no such drop", "没有该组合活动";
    OrderNotFound = "ORDER_NOT_FOUND", 404, "There is no such order", "没有该订单";
    BuyerNotFound = "BUYER_NOT_FOUND", 404, "Nothing is on record of this buyer", "没有该买家的记录";
    DeliveryNotFound = "DELIVERY_NOT_FOUND", 404, "There is no such delivery", "没有该投递";
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "This method is not offered here", "不支持该请求方法";
    RequestTimeout = "REQUEST_TIMEOUT", 408, "The request took too long to arrive", "请求接收超时";
    Duplicate = P2Reserve::Duplicate.code(), 409, "You already bought in this sale", "您已购买过该商品";
    LimitExceeded = P2Reserve::LimitExceeded.code(), 409, "This would exceed the purchase limit", "超出限购数量";
    AlreadyEntered = "ALREADY_ENTERED", 409, "You are in this line", "您已登记抽签";
    OnlyByLine = "ONLY_BY_LINE", 409, "The units of this sale go to its line", "该活动的商品仅按登记顺序分配";
    LineAwaited = "LINE_AWAITED", 409, "The waiting list opens when the sale is sold out", "售罄后才开放候补登记";
    EntryOffered = "ENTRY_OFFERED", 409, "This entry has got its offer", "该登记已获得分配";
    OrderQueued = "ORDER_QUEUED", 409, "The order is not written yet; ask the status of the request", "订单尚未写入，请查询该请求的状态";
    Conflict = "CONFLICT", 409, "This is not possible as things stand", "当前状态下无法执行该操作";
    NotEnough = P2Reserve::NotEnough.code(), 409, "Fewer units are left than you want", "库存不足所需数量";
    EntrySoldOut = P1Entry::SoldOut.code(), 410, "Sold out", "已售罄";
    SoldOut = P2Reserve::SoldOut.code(), 410, "Sold out", "已售罄";
    AllEmpty = P2Reserve::BucketAllEmpty.code(), 410, "Sold out", "已售罄";
    Ended = P1Entry::Ended.code(), 410, "The sale is over", "活动已结束";
    LineClosed = "LINE_CLOSED", 410, "The line takes no entries any more", "抽签登记已截止";
    BodyTooLarge = "BODY_TOO_LARGE", 413, "The body is too large", "请求体过大";
    WrongMediaType = "WRONG_MEDIA_TYPE", 415, "The body must be application/json", "请求体必须为 application/json";
    Unprocessable = "UNPROCESSABLE", 422, "A value is out of range", "参数取值无效";
    TokenReused = "TOKEN_REUSED", 422, "This purchase token was used for another quantity", "购买令牌已用于其他数量";
    Paused = P1Entry::Paused.code(), 423, "The sale is paused", "活动已暂停";
    NotStarted = P1Entry::NotStarted.code(), 425, "The sale has not started", "活动尚未开始";
    LineNotSealed = "LINE_NOT_SEALED", 425, "The line is not drawn yet", "抽签尚未进行";
    PlaceWaiting = "PLACE_WAITING", 425, "It is not your turn yet", "尚未轮到您，请继续排队";
    PlaceRequired = "PLACE_REQUIRED", 428, "This sale has a waiting room; take a place first", "该活动需要先排队";
    TokenRequired = "TOKEN_REQUIRED", 428, "This sale needs a purchase token", "该活动需要购买令牌";
    Challenge = P1Entry::Challenge.code(), 428, "Solve the challenge, then ask for the token again", "请先完成验证，再重新领取令牌";
    RateLimited = "RATE_LIMITED", 429, "Too many requests, slow down", "请求过于频繁，请稍后再试";
    Internal = "INTERNAL", 500, "Something went wrong on our side", "服务内部错误";
    Loading = P1Entry::Loading.code(), 503, "Busy, try again", "系统繁忙，请重试";
    BucketEmpty = P2Reserve::BucketEmpty.code(), 503, "Stock is on its way; nothing was bought, try again", "库存调拨中，未产生购买，请重试";
    Overloaded = P1Entry::Overloaded.code(), 503, "Too busy, try again shortly", "系统繁忙，请稍后再试";
    RoomFull = "ROOM_FULL", 503, "The waiting room is full", "排队人数已满，请稍后再试";
    LineFull = "LINE_FULL", 503, "The line is full", "抽签登记人数已满";
    OrderNotWritten = "ORDER_NOT_WRITTEN", 503, "The order is not written yet; nothing was recorded, repeat it", "订单尚未写入，未做任何记录，请重试";
    Unavailable = "UNAVAILABLE", 503, "Temporarily unavailable; nothing was bought", "暂时不可用，未产生购买";
    Unknown = "OUTCOME_UNKNOWN", 504, "No answer in time; ask by request id, or repeat with the same token", "结果未知，请用请求号查询，或用同一令牌重试";
}

/// The `type` of each kind.
static URNS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let urn = |kind: &Kind| format!("urn:seckill:problem:{}", kind.code().to_ascii_lowercase().replace('_', "-"));
    Kind::ALL.iter().map(urn).collect()
});

impl Kind {
    /// The media type of every problem document.
    pub(super) const MEDIA_TYPE: &'static str = "application/problem+json";

    /// The `type` of its documents.
    pub(super) fn urn(self) -> &'static str {
        // `ALL` is in the order of declaration.
        URNS.get(self as usize).map_or("about:blank", String::as_str)
    }

    /// The same status as a value of the framework.
    pub(super) fn http_status(self) -> StatusCode {
        StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}
