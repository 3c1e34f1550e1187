//! Sales that somebody forgot to close.

use super::look::{Line, Verdict};
use crate::runtime::now_ms;
use crate::store::mysql::Db;
use crate::store::mysql::ended::ended_open;

const SERVER: &str = "mysql";

/// Of a database that answered and has its tables.
pub(super) async fn sales(db: &Db) -> Vec<Line> {
    let found = match ended_open(db, now_ms()).await {
        Ok(found) => found,
        Err(error) => return vec![Line::away(SERVER, &error)],
    };
    let named: Vec<&str> = found.named.iter().map(|id| id.as_str()).collect();
    let value = if found.count == 0 { "0".to_owned() } else { format!("{}: {}", found.count, named.join(", ")) };
    vec![Line::new(SERVER, "sales that ended and were not closed", value, "0").judged(
        found.count == 0,
        Verdict::Warning,
        "they ended more than an hour ago; their keys stay in Redis, and each audit walks them",
        "seckill sale close ID for each, when nothing of it is on its way",
    )]
}
