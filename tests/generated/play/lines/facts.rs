//! What both sides say of a line: the model of its moment, the database and Redis of what is in them.

use super::LinesStage;
use crate::lines::state::{Bought, ENTRIES, Line, LineMoment, Place, REQUESTS, Sells};
use crate::play::facts::Facts;
use crate::support::basics::resp::Reply;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text, Unsigned};
use diesel_async::RunQueryDsl;
use seckill::domain::ids::{RequestId, UserId};
use seckill::domain::policy::Quantity;

#[derive(QueryableByName)]
struct LineRow {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Unsigned<BigInt>)]
    id: u64,
    #[diesel(sql_type = Text)]
    said: String,
    #[diesel(sql_type = BigInt)]
    flag: i64,
}

#[derive(QueryableByName)]
struct EntryRow {
    #[diesel(sql_type = Text)]
    user: String,
    #[diesel(sql_type = BigInt)]
    quantity: i64,
    #[diesel(sql_type = Unsigned<BigInt>)]
    request_id: u64,
}

impl LinesStage {
    async fn entry_row(&mut self, at: usize) -> EntryRow {
        let (sale, id) = (self.sale.clone(), self.entries[at].expect("an entry"));
        let query = format!(
            "SELECT CAST(user_id AS CHAR) AS user, CAST(quantity AS SIGNED) AS quantity, COALESCE(request_id, 0) AS request_id \
             FROM line_entries WHERE sale_id = '{sale}' AND entry_id = {id}"
        );
        diesel::sql_query(query).get_result(&mut self.database).await.expect("the entry")
    }

    /// The request of an entry.
    pub(super) async fn request_of(&mut self, at: usize) -> Option<RequestId> {
        RequestId::new(self.entry_row(at).await.request_id)
    }

    pub(super) async fn user_of(&mut self, at: usize) -> UserId {
        UserId::parse(&self.entry_row(at).await.user).expect("a user id")
    }

    pub(super) async fn quantity_of(&mut self, at: usize) -> Quantity {
        u32::try_from(self.entry_row(at).await.quantity).ok().and_then(Quantity::new).expect("units")
    }

    fn query(&self) -> String {
        let sale = &self.sale;
        format!(
            "SELECT 'row' AS kind, CAST(0 AS UNSIGNED) AS id, '' AS said, CAST(by_line AS SIGNED) AS flag FROM sales WHERE sale_id = '{sale}' \
             UNION ALL SELECT 'line', CAST(0 AS UNSIGNED), state, 0 FROM sale_lines WHERE sale_id = '{sale}' \
             UNION ALL SELECT 'entry', entry_id, state, request_id IS NOT NULL FROM line_entries WHERE sale_id = '{sale}' \
             UNION ALL SELECT 'order', o.request_id, o.state, EXISTS (SELECT 1 FROM stock_grants g WHERE g.sale_id = o.sale_id \
               AND g.grant_id = CONCAT('return-', o.request_id) AND g.applied_at IS NOT NULL) FROM orders o WHERE o.sale_id = '{sale}'"
        )
    }

    async fn read_redis(&mut self, facts: &mut Facts) {
        let keys = self.world.servers.redis.keys.clone();
        let meta = self.redis.hash(&keys.meta(0, &self.sale)).await;
        let script = self.world.servers.redis.boot_fence.was_passed(0).await.expect("redis");
        let state = meta.get("state").cloned().unwrap_or_else(|| "missing".to_owned());
        if let Some(door) = meta.get("door") {
            facts.insert("redis: door".to_owned(), door.clone());
        }
        if state == "open" {
            let stock = self.redis.call(&["GET", &keys.stock(0, &self.sale)]).await;
            facts.insert("redis: units".to_owned(), if stock == Reply::Nil { "-".to_owned() } else { stock.text() });
            facts.insert("redis: script".to_owned(), script.to_string());
        }
        facts.insert("redis: keys".to_owned(), state);
    }

    /// Reads the database and Redis.
    pub(super) async fn read_facts(&mut self) -> Facts {
        let (mut facts, query) = (Facts::new(), self.query());
        let rows: Vec<LineRow> = diesel::sql_query(query).load(&mut self.database).await.expect("rows of the line");
        for LineRow { kind, id, said, flag } in rows {
            let entry = self.entries.iter().position(|entry| entry.is_some_and(|entry| entry.get() == id));
            let request = self.requests.iter().position(|request| request.is_some_and(|request| request.get() == id));
            let (name, value) = match (kind.as_str(), entry, request) {
                ("row", ..) => ("database: by line".to_owned(), (flag != 0).to_string()),
                ("line", ..) => ("database: line".to_owned(), said),
                ("entry", Some(at), _) => {
                    facts.insert(format!("entry {at}: has a request"), (flag != 0).to_string());
                    (format!("entry {at}"), said)
                }
                ("order", _, Some(at)) => {
                    let came_back = if flag != 0 { ", came back" } else { "" };
                    (format!("request {at}"), format!("{said}{came_back}"))
                }
                (kind, ..) => (format!("{kind} without a place"), id.to_string()),
            };
            facts.insert(name, value);
        }
        for at in (0..REQUESTS).filter(|at| self.on_the_way[*at].is_some()) {
            facts.insert(format!("request {at}"), "ACCEPTED".to_owned());
        }
        self.read_redis(&mut facts).await;
        facts
    }
}

/// What the model says.
pub(super) fn of_line(moment: &LineMoment) -> Facts {
    let mut facts = Facts::new();
    let mut note = |name: String, value: String| {
        facts.insert(name, value);
    };
    note("database: by line".to_owned(), moment.row.by_line.to_string());
    note("database: line".to_owned(), line(moment.line).to_owned());
    let (keys, sells) = (moment.keys, moment.keys.sells);
    let state = match sells {
        Sells::Open | Sells::Restarted | Sells::Compared(_) => "open",
        Sells::Lost | Sells::Numbered(_) => "missing",
        Sells::Loaded | Sells::Read(_) => "frozen",
    };
    note("redis: keys".to_owned(), state.to_owned());
    if sells.has_keys() {
        note("redis: door".to_owned(), if keys.door.by_line { "line" } else { "open" }.to_owned());
    }
    if state == "open" {
        note("redis: units".to_owned(), keys.units.to_string());
        note("redis: script".to_owned(), (sells == Sells::Open).to_string());
    }
    for at in (0..ENTRIES).filter(|at| moment.entries[*at].place != Place::Absent) {
        let entry = moment.entries[at];
        note(format!("entry {at}"), format!("{:?}", entry.place).to_uppercase());
        note(format!("entry {at}: has a request"), entry.id.is_some().to_string());
    }
    for (at, bought) in moment.requests.iter().enumerate() {
        let said = match bought {
            Bought::Nowhere => continue,
            Bought::Accepted => "ACCEPTED",
            Bought::Unpaid => "UNPAID",
            Bought::Paid => "PAID",
            Bought::Returning => "EXPIRED",
            Bought::Returned => "EXPIRED, came back",
        };
        note(format!("request {at}"), said.to_owned());
    }
    facts
}

const fn line(line: Line) -> &'static str {
    match line {
        Line::Entering => "OPEN",
        Line::Drawn => "DRAWN",
        Line::Awaited => "AWAITED",
        Line::Open => "OPEN",
    }
}
