//! Reads what the servers have of one path's sale, past the product: Redis by one script, the database by one query, the broker's
//! queues by their counts.

use super::facts::{COUNTED, Facts, grant_said};
use super::stage::Stage;
use crate::books::Refusal;
use crate::state::REQUESTS;
use amqprs::channel::{BasicGetArguments, BasicNackArguments, Channel, QueueDeclareArguments};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use diesel_async::RunQueryDsl;
use seckill::domain::message::{OrderMessage, decode, decode_lines};
use serde_json::Value;

/// Everything of a sale on one shard, as JSON.
const SCRIPT: &str = "local out = {}
local function hash(key)
  local all, flat = {}, redis.call('HGETALL', key)
  for i = 1, #flat, 2 do all[#all + 1] = {flat[i], flat[i + 1]} end
  return all
end
out.meta, out.stock, out.ledger, out.grants = hash(KEYS[1]), redis.call('GET', KEYS[2]), hash(KEYS[3]), hash(KEYS[4])
out.entries, out.attempts, out.parked = redis.call('XRANGE', KEYS[5], '-', '+'), hash(KEYS[6]), redis.call('XRANGE', KEYS[7], '-', '+')
local pending = redis.pcall('XPENDING', KEYS[5], ARGV[1], '-', '+', 100)
out.pending = pending.err and {} or pending
return cjson.encode(out)";

/// An outbox entry as it is read past the product.
#[derive(Clone, Debug)]
pub struct SeenEntry {
    /// Its id in the stream.
    pub id: String,
    /// The requests of its orders, by their places in the path.
    pub requests: Vec<usize>,
    /// The relay that has read it.
    pub owner: Option<String>,
}

#[derive(QueryableByName)]
struct SeenRow {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    a: i64,
    #[diesel(sql_type = BigInt)]
    b: i64,
    #[diesel(sql_type = BigInt)]
    c: i64,
    #[diesel(sql_type = Text)]
    said: String,
}

fn query(sale: &str) -> String {
    format!(
        "SELECT 'sale' AS kind, '' AS name, stock AS a, CAST(epoch AS SIGNED) AS b, granted AS c, '' AS said \
           FROM sales WHERE sale_id = '{sale}' \
         UNION ALL SELECT 'outcome', CAST(request_id AS CHAR), CAST(epoch AS SIGNED), \
           CAST(COALESCE(number, 0) AS SIGNED), 0, COALESCE(reason, '') FROM request_outcome WHERE sale_id = '{sale}' \
         UNION ALL SELECT 'order', CAST(request_id AS CHAR), cancelled_at IS NOT NULL, 0, 0, '' \
           FROM orders WHERE sale_id = '{sale}' \
         UNION ALL SELECT 'grant', CAST(grant_id AS CHAR), quantity, CAST(epoch AS SIGNED), applied_at IS NOT NULL, '' \
           FROM stock_grants WHERE sale_id = '{sale}' \
         UNION ALL SELECT 'failed', CAST(request_id AS CHAR), reclaimed_by IS NOT NULL, 0, 0, status \
           FROM failed_request WHERE sale_id = '{sale}'"
    )
}

impl Stage {
    /// Reads all three servers.
    pub async fn read_facts(&mut self) -> Facts {
        let mut facts = self.read_redis().await;
        self.read_the_database(&mut facts).await;
        self.read_the_broker(&mut facts).await;
        facts
    }

    async fn read_redis(&mut self) -> Facts {
        let keys = &self.world.servers.redis.keys;
        let sale = &self.scene.sale;
        let keys = [
            keys.meta(0, sale),
            keys.stock(0, sale),
            keys.ledger(0, sale),
            keys.grants(0, sale),
            keys.outbox(0),
            keys.attempts(0),
            keys.relay_dlq(0),
        ];
        let parts: Vec<&str> = ["EVAL", SCRIPT, "7"]
            .into_iter()
            .chain(keys.iter().map(String::as_str))
            .chain([seckill::store::redis::GROUP])
            .collect();
        let read = self.redis.call(&parts).await.text();
        let read: Value = serde_json::from_str(&read).expect("JSON of the script");
        let loaded = self.world.servers.redis.boot_fence.was_passed(0).await.expect("redis");
        self.seen_in_redis(&read, loaded)
    }

    fn seen_in_redis(&mut self, read: &Value, loaded: bool) -> Facts {
        let mut facts = Facts::new();
        let mut note = |name: &str, value: String| {
            facts.insert(name.to_owned(), value);
        };
        let meta = pairs(&read["meta"]);
        let of = |name: &str| meta.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
        note("redis: script", loaded.to_string());
        note("redis: sale", of("state").unwrap_or_else(|| "missing".to_owned()));
        if !meta.is_empty() {
            let grants = pairs(&read["grants"]);
            note("redis: epoch", of("epoch").unwrap_or_default());
            note("redis: number", of("number").unwrap_or_default());
            note("redis: stock", text(&read["stock"]));
            note("redis: granted", grants.iter().map(|(_, units)| units.parse().unwrap_or(0)).sum::<i64>().to_string());
            note("redis: building", of("page").is_some().to_string());
            for (at, id) in self.scene.grants.iter().enumerate() {
                let units = grants.iter().find(|(known, _)| known == id).map(|(_, units)| units.as_str());
                let said = units.map_or("false", |units| if units == "0" { COUNTED } else { "true" });
                note(&format!("redis: has grant {at}"), said.to_owned());
            }
        }
        let (pending, attempts) = (list(&read["pending"]), pairs(&read["attempts"]));
        let mut entries = Vec::new();
        for entry in list(&read["entries"]) {
            let (id, requests) = (text(&entry[0]), self.requests_of(&entry[1]));
            let owner = pending.iter().find(|of| text(&of[0]) == id).map(|of| text(&of[1]));
            let tried = attempts.iter().find(|(of, _)| *of == id).map(|(_, count)| count.clone());
            for at in &requests {
                let said = owner.as_ref().map_or("new".to_owned(), |owner| format!("of {}", owner.replace('-', " ")));
                note(&format!("request {at}: entry"), said);
                if let Some(tried) = tried.as_ref().filter(|tried| *tried != "0") {
                    note(&format!("request {at}: attempts"), tried.clone());
                }
            }
            let owner = owner.filter(|owner| owner.starts_with("relay"));
            entries.push(SeenEntry { id, requests, owner });
        }
        for parked in list(&read["parked"]) {
            for at in self.requests_of(&parked[1]) {
                note(&format!("request {at}: relay dlq"), "yes".to_owned());
            }
        }
        for (id, record) in pairs(&read["ledger"]).iter().filter(|(id, _)| !id.is_empty()) {
            let parts: Vec<&str> = record.split(' ').collect();
            if let Some(at) = self.scene.place_of(id) {
                note(&format!("request {at}: ledger"), format!("epoch {}, number {}", parts[3], parts[1]));
            }
        }
        self.scene.redis_epoch = of("epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        self.scene.entries = entries;
        facts
    }

    /// The places of the requests of an entry, by its flat list of fields.
    fn requests_of(&self, fields: &Value) -> Vec<usize> {
        let fields = list(fields);
        let field = |name: &str| {
            let found = fields.chunks_exact(2).find(|pair| text(&pair[0]) == name);
            found.map(|pair| text(&pair[1]))
        };
        if let Some(id) = field("r") {
            return self.scene.place_of(&id).into_iter().collect();
        }
        let orders =
            field("o").map(|lines| decode_lines(lines.as_bytes()).expect("orders in lines")).unwrap_or_default();
        orders.iter().filter_map(|order| self.scene.place_of(&order.purchase.request_id.to_string())).collect()
    }

    async fn read_the_database(&mut self, facts: &mut Facts) {
        let rows: Vec<SeenRow> = diesel::sql_query(query(self.scene.sale.as_str()))
            .load(&mut self.database)
            .await
            .expect("rows of the sale");
        let mut note = |name: String, value: String| {
            facts.insert(name, value);
        };
        let (mut orders, mut open) = ([0; REQUESTS], Vec::new());
        for SeenRow { kind, name, a, b, c, said } in rows {
            let at = self.scene.place_of(&name);
            match (kind.as_str(), at) {
                ("sale", _) => {
                    note("database: stock".to_owned(), a.to_string());
                    note("database: epoch".to_owned(), b.to_string());
                    note("database: granted".to_owned(), c.to_string());
                }
                ("outcome", Some(at)) => {
                    let outcome = match said.as_str() {
                        "" => "order".to_owned(),
                        "SOLD_OUT" | "UNKNOWN_SALE" => format!("{:?}", Refusal::NoUnit),
                        "NUMBER_REUSED" => format!("{:?}", Refusal::NumberReused),
                        _ => format!("{:?}", Refusal::TookUnit),
                    };
                    note(format!("request {at}: outcome"), outcome);
                }
                ("order", Some(at)) => {
                    orders[at] += 1;
                    note(format!("request {at}: orders"), orders[at].to_string());
                    if a != 0 {
                        note(format!("request {at}: cancelled"), "yes".to_owned());
                    }
                }
                ("failed", Some(at)) if a != 0 => note(format!("request {at}: reclaimed"), "yes".to_owned()),
                ("grant", _) => {
                    if let Some(at) = self.scene.grants.iter().position(|id| *id == name) {
                        note(format!("database: grant {at}"), grant_said(a, b, c != 0));
                        open.extend((c == 0).then_some(at));
                    }
                }
                _ => {}
            }
        }
        // What a rebuild has counted and the database does not know as given is a fact.
        for at in open {
            if let Some(said) = facts.get_mut(&format!("redis: has grant {at}")).filter(|said| *said == COUNTED) {
                "true".clone_into(said);
            }
        }
    }

    async fn read_the_broker(&mut self, facts: &mut Facts) {
        let waiting = depth(&self.admin, &self.orders_queue).await;
        let retried = depth(&self.admin, &self.retry_queue).await;
        facts.insert("broker: waiting".to_owned(), waiting.to_string());
        facts.insert("broker: to be retried".to_owned(), retried.to_string());
        if depth(&self.admin, &self.dead_letters).await > 0 {
            for order in orders_in(&self.admin, &self.dead_letters).await {
                if let Some(at) = self.scene.place_of(&order.purchase.request_id.to_string()) {
                    facts.insert(format!("request {at}: mq dlq"), "yes".to_owned());
                }
            }
        }
    }

    /// What the MQ DLQ has of a request.
    pub async fn dead_letter_of(&self, at: usize) -> Option<OrderMessage> {
        let id = self.scene.request_id(at);
        let orders = orders_in(&self.admin, &self.dead_letters).await;
        orders.into_iter().find(|order| order.purchase.request_id == id)
    }
}

/// Messages that wait in a queue.
pub async fn depth(channel: &Channel, queue: &str) -> u32 {
    let mut ask = QueueDeclareArguments::new(queue);
    ask.passive(true);
    channel.queue_declare(ask).await.expect("a queue").map_or(0, |(_, count, _)| count)
}

/// What a queue holds; all of it is put back.
async fn orders_in(channel: &Channel, queue: &str) -> Vec<OrderMessage> {
    let mut read = Vec::new();
    let mut last = None;
    while let Some((got, _, body)) = channel.basic_get(BasicGetArguments::new(queue)).await.expect("a message") {
        last = Some(got.delivery_tag());
        read.extend(decode(&body).map_or_else(|_| decode_lines(&body).unwrap_or_default(), |order| vec![order]));
    }
    if let Some(tag) = last {
        channel.basic_nack(BasicNackArguments::new(tag, true, true)).await.expect("put back");
    }
    read
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn pairs(value: &Value) -> Vec<(String, String)> {
    list(value).iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}
