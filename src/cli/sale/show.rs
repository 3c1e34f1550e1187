//! `seckill sale list` and `seckill sale show`: sales as the database knows them, and what Redis holds of one.

use crate::cli::{Failure, output};
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::roles::Servers;
use crate::store::mysql::{grants, sales};
use serde::Serialize;

/// One sale with what Redis holds.
#[derive(Serialize)]
struct Shown {
    sale: Sale,
    grants: Vec<String>,
    shards: Vec<ShownShard>,
    /// Units between two buckets; absent when a shard is not in Redis.
    in_transit: Option<i64>,
}

#[derive(Serialize)]
struct ShownShard {
    shard: u16,
    state: Option<&'static str>,
    remaining: Option<i64>,
    /// Units sent to other shards less units received from them; summed over the shards, what lies between two buckets.
    in_transit: Option<i64>,
    accepted_requests: Option<u64>,
}

pub(super) async fn list(servers: &Servers, json: bool) -> Result<(), Failure> {
    let sales = sales::list(&servers.db).await?;
    if json {
        output::json(&sales);
        return Ok(());
    }
    let limit = |sale: &Sale| sale.policy.limit().map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    output::table(
        ["sale", "title", "status", "granted", "unsold", "limit", "starts", "ends"],
        sales.iter().map(|sale| {
            [
                sale.sale_id.to_string(),
                sale.title.clone(),
                sale.status.code().to_owned(),
                sale.granted.to_string(),
                sale.stock.to_string(),
                limit(sale),
                output::time(sale.starts_at_ms),
                output::time(sale.ends_at_ms),
            ]
        }),
    );
    Ok(())
}

pub(super) async fn show(servers: &Servers, shards: u16, id: &SaleId, json: bool) -> Result<(), Failure> {
    let none = || Failure::Failed(format!("there is no sale {id}; see seckill sale list"));
    let sale = sales::get(&servers.db, id).await?.ok_or_else(none)?;
    let grants = grants::list(&servers.db, id).await?;
    let mut rows = Vec::new();
    for shard in 0..shards {
        let count = servers.redis.shard_count(id, shard).await?;
        rows.push(ShownShard {
            shard,
            state: count.as_ref().map(|count| count.meta.state.code()),
            remaining: count.as_ref().map(|count| count.stock),
            in_transit: count.as_ref().map(|count| count.in_transit),
            accepted_requests: count.as_ref().map(|count| count.meta.number),
        });
    }
    let grants = grants
        .iter()
        .map(|grant| {
            format!(
                "{} {}{}",
                grant.grant_id,
                grant.quantity,
                if grant.applied_at_ms.is_some() { "" } else { " (not in redis yet)" }
            )
        })
        .collect();
    let in_transit = rows.iter().map(|row| row.in_transit).sum();
    let shown = Shown { sale, grants, shards: rows, in_transit };
    if json {
        output::json(&shown);
    } else {
        tables(&shown);
    }
    Ok(())
}

fn tables(shown: &Shown) {
    let sale = &shown.sale;
    output::table(
        ["field", "value"],
        [
            ["sale".to_owned(), sale.sale_id.to_string()],
            ["title".to_owned(), format!("{} ({})", sale.title, sale.product_id)],
            ["status".to_owned(), sale.status.code().to_owned()],
            ["window".to_owned(), format!("{} to {}", output::time(sale.starts_at_ms), output::time(sale.ends_at_ms))],
            ["price".to_owned(), format!("{} {}", sale.price_cents, sale.currency)],
            ["limit".to_owned(), sale.policy.limit().map_or_else(|| "none".to_owned(), |limit| limit.to_string())],
            ["granted / unsold".to_owned(), format!("{} / {}", sale.granted, sale.stock)],
            ["in transit".to_owned(), shown.in_transit.map_or_else(|| "not in redis".to_owned(), |n| n.to_string())],
            ["waiting room".to_owned(), if sale.waiting_room { "yes" } else { "no" }.to_owned()],
            ["grants".to_owned(), shown.grants.join(", ")],
        ],
    );
    let text = |value: Option<String>| value.unwrap_or_else(|| "not in redis".to_owned());
    output::table(
        ["shard", "state", "remaining", "sent - received", "accepted requests"],
        shown.shards.iter().map(|row| {
            [
                row.shard.to_string(),
                text(row.state.map(str::to_owned)),
                text(row.remaining.map(|n| n.to_string())),
                text(row.in_transit.map(|n| n.to_string())),
                text(row.accepted_requests.map(|n| n.to_string())),
            ]
        }),
    );
}
