//! What of a buyer is on its way: whatever will still be written, sent or decided under the buyer's id. Reads only.
//!
//! The ledger says which requests have no outcome, wherever their messages are: no queue has to be searched for those. A message that the
//! broker delivers once more finds its outcome, and leaves nothing.

use super::redis_side::Places;
use super::{BuyerForget, ForgetError};
use crate::buyers::rows::under_way::RowUnderWay;
use crate::buyers::spelling::{Names, Spelling};
use crate::domain::ids::{RequestId, UserId};
use crate::domain::message;
use crate::store::rabbit::browse_dlq;
use crate::store::redis::{OutboxEntry, RenamedBuyer};

/// Messages of the MQ DLQ that are read. With more in it nothing is forgotten.
const MQ_DLQ_MAX: usize = 5_000;
/// Entries of one page of an outbox or a relay DLQ.
const PAGE: usize = 1_000;

/// Something of a buyer that is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnItsWay {
    /// A row of the database.
    Row(RowUnderWay),
    /// Requests of a sale that have no outcome yet.
    Queued(String, u64),
    /// The keys of a sale are frozen or not whole: its rebuild comes first.
    Frozen(String),
    /// An entry of an outbox.
    Outbox(String),
    /// An entry of the relay DLQ.
    RelayDlq(String),
    /// A message of the MQ DLQ.
    MqDlq(String),
    /// The MQ DLQ is too long to be searched.
    MqDlqTooLong,
}

impl OnItsWay {
    /// For people; names no buyer.
    pub(crate) fn english(&self) -> String {
        match self {
            Self::Row(row) => row_in_english(row),
            Self::Queued(sale, count) => format!("{count} requests of sale {sale} have no outcome yet"),
            Self::Frozen(sale) => format!("sale {sale} is frozen, its rebuild comes first"),
            Self::Outbox(entry) => format!("the outbox has entry {entry}"),
            Self::RelayDlq(entry) => format!("the relay DLQ has entry {entry}"),
            Self::MqDlq(message) => format!("the MQ DLQ has message {message}"),
            Self::MqDlqTooLong => format!("the MQ DLQ has more than {MQ_DLQ_MAX} messages and cannot be searched"),
        }
    }

    /// The same in Chinese.
    pub(crate) fn chinese(&self) -> String {
        match self {
            Self::Row(row) => row_in_chinese(row),
            Self::Queued(sale, count) => format!("活动 {sale} 有 {count} 个请求尚无结果"),
            Self::Frozen(sale) => format!("活动 {sale} 已冻结，须先重建"),
            Self::Outbox(entry) => format!("发件箱中有条目 {entry}"),
            Self::RelayDlq(entry) => format!("中继死信队列中有条目 {entry}"),
            Self::MqDlq(message) => format!("MQ 死信队列中有消息 {message}"),
            Self::MqDlqTooLong => format!("MQ 死信队列中的消息超过 {MQ_DLQ_MAX} 条，无法查找"),
        }
    }
}

fn row_in_english(row: &RowUnderWay) -> String {
    match row {
        RowUnderWay::Unpaid(id) => format!("order {id} is not paid"),
        RowUnderWay::Refund(id) => format!("money of order {id} has to go back"),
        RowUnderWay::Failed(id) => format!("failed request {id} is open"),
        RowUnderWay::OutcomeEvent(id) => format!("the event of the outcome of {id} is not published"),
        RowUnderWay::OrderEvent(id) => format!("an event of order {id} is not published"),
        RowUnderWay::Delivery(webhook, id) => format!("delivery {id} waits for webhook {webhook}"),
        RowUnderWay::Grant(sale, grant) => format!("grant {grant} of sale {sale} is not in Redis"),
    }
}

fn row_in_chinese(row: &RowUnderWay) -> String {
    match row {
        RowUnderWay::Unpaid(id) => format!("订单 {id} 尚未支付"),
        RowUnderWay::Refund(id) => format!("订单 {id} 有待退款项"),
        RowUnderWay::Failed(id) => format!("失败请求 {id} 尚未处理"),
        RowUnderWay::OutcomeEvent(id) => format!("请求 {id} 的结果事件尚未发布"),
        RowUnderWay::OrderEvent(id) => format!("订单 {id} 的事件尚未发布"),
        RowUnderWay::Delivery(webhook, id) => format!("投递 {id} 在等待 webhook {webhook}"),
        RowUnderWay::Grant(sale, grant) => format!("活动 {sale} 的授量 {grant} 尚未写入 Redis"),
    }
}

/// Whether a message, or the orders of an outbox entry, are the buyer's. What cannot be read is searched as words.
fn is_of(buyer: &UserId, names: &Names, payload: &[u8]) -> bool {
    if !names.may_be_in(payload) {
        return false;
    }
    if let Ok(accepted) = message::decode(payload) {
        return accepted.purchase.user_id == *buyer;
    }
    let text = String::from_utf8_lossy(payload);
    let user_of = |line: &str| line.splitn(3, ' ').nth(2).map(str::to_owned);
    let is_number = |line: &str| line.split(' ').take(2).all(|part| part.parse::<u64>().is_ok());
    if text.lines().all(|line| is_number(line) && user_of(line).is_some()) {
        return text.lines().any(|line| user_of(line).as_deref() == Some(buyer.as_str()));
    }
    names.renamed(Spelling::Words, payload).is_some()
}

impl BuyerForget {
    /// Everything of the buyer that is on its way, of each kind and place one thing at most.
    pub(super) async fn on_its_way(&self, buyer: &UserId, places: &Places) -> Result<Vec<OnItsWay>, ForgetError> {
        let names = Names::new(buyer.as_str(), "");
        let mut found: Vec<OnItsWay> = Vec::new();
        for (sale, home) in &places.sales {
            match self.keys.of_sale(sale, *home, RenamedBuyer { buyer, pseudonym: None }).await? {
                Some(traces) if traces.queued > 0 => found.push(OnItsWay::Queued(sale.to_string(), traces.queued)),
                Some(_) => {}
                None => found.push(OnItsWay::Frozen(sale.to_string())),
            }
        }
        found.extend(self.rows.under_way(buyer, &names).await?.into_iter().map(OnItsWay::Row));
        found.extend(self.in_outboxes(buyer, places).await?);
        found.extend(self.in_mq_dlq(buyer, &names).await?);
        Ok(found)
    }

    /// The buyer's entries in outboxes and relay DLQs of the home shards, the first of each.
    pub(super) async fn in_outboxes(&self, buyer: &UserId, places: &Places) -> Result<Vec<OnItsWay>, ForgetError> {
        let (names, mut found) = (Names::new(buyer.as_str(), ""), Vec::new());
        for home in places.homes.iter().filter(|home| **home < self.shards) {
            let mut next = Some("-".to_owned());
            while let Some(start) = next {
                let page = self.outbox.scan(*home, &start, PAGE).await?;
                let entries: Vec<&OutboxEntry> = page.entries.iter().map(|located| &located.entry).collect();
                if let Some(entry) = self.named_entry(buyer, &names, &entries).await? {
                    found.push(OnItsWay::Outbox(format!("{home}/{entry}")));
                    break;
                }
                next = page.next;
            }
            let mut start = "-".to_owned();
            loop {
                let page = self.relay_dlq.page(*home, &start, PAGE).await?;
                if let Some(parked) = page.iter().find(|parked| is_of(buyer, &names, &parked.payload)) {
                    found.push(OnItsWay::RelayDlq(format!("relay/{home}/{}", parked.id)));
                    break;
                }
                let Some(last) = page.last().filter(|_| page.len() == PAGE) else { break };
                start = format!("({}", last.id);
            }
        }
        Ok(found)
    }

    /// The first of these entries that is the buyer's. What a relay has taken out of a list shows its request only.
    async fn named_entry(
        &self,
        buyer: &UserId,
        names: &Names,
        entries: &[&OutboxEntry],
    ) -> Result<Option<String>, ForgetError> {
        let payload = |entry: &OutboxEntry| entry.field("o").or_else(|| entry.field("p")).map(<[u8]>::to_vec);
        let is_named = |entry: &OutboxEntry| payload(entry).is_some_and(|payload| is_of(buyer, names, &payload));
        if let Some(entry) = entries.iter().find(|entry| is_named(entry)) {
            return Ok(Some(entry.id.clone()));
        }
        let without = entries.iter().filter(|entry| entry.field("o").is_none() && entry.field("p").is_none());
        let ids: Vec<RequestId> = without.flat_map(|entry| entry.request_ids()).collect();
        Ok(self.rows.own_requests(buyer, &ids).await?.map(|id| format!("request {id}")))
    }

    async fn in_mq_dlq(&self, buyer: &UserId, names: &Names) -> Result<Option<OnItsWay>, ForgetError> {
        let messages = browse_dlq(&self.rabbit, MQ_DLQ_MAX).await?;
        if let Some(message) = messages.iter().find(|message| is_of(buyer, names, &message.body)) {
            return Ok(Some(OnItsWay::MqDlq(message.message_id.clone().unwrap_or_else(|| "without an id".to_owned()))));
        }
        Ok((messages.len() == MQ_DLQ_MAX).then_some(OnItsWay::MqDlqTooLong))
    }
}
