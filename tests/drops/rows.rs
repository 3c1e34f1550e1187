//! The books of a drop by plain queries, and whether it is at rest.

use crate::checker::{Books, DropTerms, EntryRow, LineRow, OrderRow, Withdrawal};
use crate::raw_commands::try_redis;
use crate::target::Target;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// Rows as texts; the marks of their columns and of NULL.
const COLUMN: char = '\u{1}';
const NULL: &str = "\u{2}";

/// Unix milliseconds of a column with a time in UTC.
fn ms(column: &str) -> String {
    format!("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column}) DIV 1000")
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn known(text: &str) -> Option<String> {
    (text != NULL).then(|| text.to_owned())
}

/// A drop on a system.
pub struct Rows<'a> {
    pub target: &'a Target,
    pub terms: &'a DropTerms,
}

impl Rows<'_> {
    async fn lines(&self, columns: &[&str], rest: &str) -> Vec<Vec<String>> {
        let columns = columns.iter().map(|column| format!("COALESCE({column}, CHAR(2))"));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let query = format!("SELECT CAST(CONCAT_WS(CHAR(1), {columns}) AS CHAR) AS line FROM {rest}");
        let mut session = AsyncMysqlConnection::establish(&self.target.mysql).await.expect("the database");
        let lines: Vec<Line> = diesel::sql_query(&query).load(&mut session).await.expect(&query);
        lines.into_iter().map(|line| line.line.split(COLUMN).map(str::to_owned).collect()).collect()
    }

    /// `column IN (the sales)`.
    fn of_sales(&self, column: &str) -> String {
        let ids: Vec<String> = self.terms.sales.iter().map(|sale| format!("'{}'", sale.sale_id)).collect();
        format!("{column} IN ({})", ids.join(", "))
    }

    async fn count(&self, rest: &str) -> i64 {
        number(&self.lines(&["COUNT(*)"], rest).await[0][0])
    }

    async fn redis(&self, command: &[&str]) -> Value {
        try_redis(&self.target.redis, command).await.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    fn keys<'k>(&'k self, name: &'k str, sale: &'k str) -> impl Iterator<Item = String> + 'k {
        (0..self.target.shards).map(move |shard| format!("{}:{{{shard}}}:{name}:{sale}", self.target.prefix))
    }

    /// Units left in Redis; none when a bucket is not there.
    async fn unsold(&self, sale: &str) -> Option<i64> {
        let mut sum = 0;
        for key in self.keys("stock", sale) {
            sum += number(self.redis(&["GET", &key]).await.as_str()?);
        }
        Some(sum)
    }

    /// What still moves; nothing at rest. `accepted`: requests that have to have their outcome.
    pub async fn unrest(&self, accepted: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        let open = [
            ("unpaid orders", format!("orders WHERE state = 'UNPAID' AND {}", self.of_sales("sale_id"))),
            ("open grants", format!("stock_grants WHERE applied_at IS NULL AND {}", self.of_sales("sale_id"))),
            ("lines that are not done", format!("sale_lines WHERE state <> 'DONE' AND {}", self.of_sales("sale_id"))),
            ("open withdrawals", format!("stock_withdrawals WHERE taken IS NULL AND {}", self.of_sales("sale_id"))),
        ];
        for (what, rest) in open {
            match self.count(&rest).await {
                0 => {}
                count => found.push(format!("{count} {what}")),
            }
        }
        let outcomes = format!("request_outcome WHERE {}", self.of_sales("sale_id"));
        let outcomes: Vec<String> = self.lines(&["request_id"], &outcomes).await.into_iter().flatten().collect();
        let missing = accepted.iter().filter(|rid| !outcomes.contains(rid)).count();
        found.extend((missing > 0).then(|| format!("{missing} accepted requests without an outcome")));
        for sale in self.terms.sales.iter().filter(|sale| sale.rollover_to.is_some()) {
            let left = self.unsold(&sale.sale_id).await;
            found.extend((left != Some(0)).then(|| format!("{left:?} units of {} to roll over", sale.sale_id)));
        }
        let given = format!("stock_grants WHERE grant_id LIKE 'release-%' AND {}", self.of_sales("sale_id"));
        let planned: usize = self.terms.sales.iter().map(|sale| sale.releases.len()).sum();
        let given = self.count(&given).await;
        found.extend((given != i64::try_from(planned).expect("few")).then(|| format!("{given} of {planned} releases")));
        found
    }

    /// What the product's own audit says, now, of each sale of the drop; its complaints.
    pub fn audit(&self) -> Vec<String> {
        let (code, out, err) = self.target.call(&["audit", "--now", "--json"]);
        let audit: Value = serde_json::from_str(&out).unwrap_or_default();
        let audits = audit["sales"].as_array().cloned().unwrap_or_default();
        let of = |id: &str| audits.iter().find(|audit| audit["sale_id"] == id);
        let complaint = |id: &str| match of(id) {
            Some(audit) if audit["consistent"] == true => None,
            Some(audit) => Some(format!("{id}: {}", audit["findings"])),
            None => Some(format!("{id}: no audit, exit code {code:?}: {err}")),
        };
        self.terms.sales.iter().filter_map(|sale| complaint(&sale.sale_id)).collect()
    }

    /// All of it.
    pub async fn books(&self, audit: Vec<String>) -> Books {
        let columns = ["request_id", "sale_id", "user_id", "person", "quantity", "amount_cents", "state"];
        let (accepted, changed) = (ms("accepted_at"), ms("state_at"));
        let columns: Vec<&str> = columns.into_iter().chain([accepted.as_str(), changed.as_str()]).collect();
        let orders = self.lines(&columns, &format!("orders WHERE {}", self.of_sales("sale_id"))).await;
        let order = |row: &Vec<String>| OrderRow {
            rid: row[0].clone(),
            sale: row[1].clone(),
            buyer: row[2].clone(),
            person: known(&row[3]),
            quantity: number(&row[4]),
            amount_cents: number(&row[5]),
            state: known(&row[6]),
            accepted_ms: number(&row[7]),
            state_ms: known(&row[8]).map(|text| number(&text)),
        };
        let of_sales = self.of_sales("sale_id");
        let failed =
            self.lines(&["request_id", "sale_id", "quantity"], &format!("failed_request WHERE {of_sales}")).await;
        let grants = self.lines(&["sale_id", "grant_id", "quantity"], &format!("stock_grants WHERE {of_sales}")).await;
        let columns = ["sale_id", "name", "taken", "moves_to"];
        let withdrawals = self.lines(&columns, &format!("stock_withdrawals WHERE {of_sales}")).await;
        let applied = format!("payments WHERE state = 'APPLIED' AND {of_sales}");
        let payments = self.lines(&["request_id", "amount_cents"], &applied).await;
        let (mut unsold, mut held) = (BTreeMap::new(), BTreeMap::new());
        for sale in &self.terms.sales {
            let id = sale.sale_id.clone();
            unsold.extend(self.unsold(&id).await.map(|units| (id.clone(), units)));
            for (buyer, units) in self.buyers(&id).await {
                *held.entry((id.clone(), buyer)).or_default() += units;
            }
        }
        held.retain(|_, units| *units != 0);
        Books {
            orders: orders.iter().map(order).collect(),
            failed: failed.into_iter().map(|row| (row[0].clone(), (row[1].clone(), number(&row[2])))).collect(),
            grants: grants.into_iter().map(|row| ((row[0].clone(), row[1].clone()), number(&row[2]))).collect(),
            withdrawals: withdrawals
                .into_iter()
                .map(|row| Withdrawal {
                    sale: row[0].clone(),
                    name: row[1].clone(),
                    taken: known(&row[2]).map(|text| number(&text)),
                    moves_to: known(&row[3]),
                })
                .collect(),
            payments: payments.into_iter().map(|row| (row[0].clone(), number(&row[1]))).collect(),
            unsold,
            held,
            entries: self.entries().await,
            lines: self.of_lines().await,
            audit,
        }
    }

    async fn entries(&self) -> Vec<EntryRow> {
        let columns = ["entry_id", "sale_id", "user_id", "person", "quantity", "entry_rank", "state", "listed"];
        let (entered, changed) = (ms("entered_at"), ms("state_at"));
        let more = ["request_id", entered.as_str(), changed.as_str(), "lapse_reason"];
        let columns: Vec<&str> = columns.into_iter().chain(more).collect();
        let rows = self.lines(&columns, &format!("line_entries WHERE {}", self.of_sales("sale_id"))).await;
        let entry = |row: &Vec<String>| EntryRow {
            id: row[0].clone(),
            sale: row[1].clone(),
            buyer: row[2].clone(),
            person: known(&row[3]),
            quantity: number(&row[4]),
            rank: known(&row[5]).map(|text| number(&text)),
            state: row[6].clone(),
            listed: row[7] == "1",
            rid: known(&row[8]),
            entered_ms: number(&row[9]),
            state_ms: number(&row[10]),
            reason: known(&row[11]),
        };
        rows.iter().map(entry).collect()
    }

    async fn of_lines(&self) -> BTreeMap<String, LineRow> {
        let columns = ["l.sale_id", "LOWER(HEX(l.seed))", "LOWER(HEX(l.digest))", "s.by_line"];
        let joined = "sale_lines l JOIN sales s ON s.sale_id = l.sale_id";
        let rows = self.lines(&columns, &format!("{joined} WHERE {}", self.of_sales("l.sale_id"))).await;
        let line = |row: Vec<String>| {
            let (seed, digest, by_line) = (row[1].clone(), known(&row[2]), row[3] == "1");
            (row[0].clone(), LineRow { seed, digest, by_line })
        };
        rows.into_iter().map(line).collect()
    }

    /// Buyers, or persons, and their units, as Redis knows them.
    async fn buyers(&self, sale: &str) -> Vec<(String, i64)> {
        let mut found = Vec::new();
        for key in self.keys("buyers", sale) {
            let fields = self.redis(&["HGETALL", &key]).await;
            let fields: Vec<&str> = fields.as_array().expect("a hash").iter().filter_map(Value::as_str).collect();
            for pair in fields.chunks(2).filter(|pair| !pair[0].is_empty()) {
                found.push((pair[0].to_owned(), number(pair[1].split(' ').next().expect("units"))));
            }
        }
        found
    }
}
