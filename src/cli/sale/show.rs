//! `seckill sale list` and `seckill sale show`: sales as the database knows them, and what Redis holds of one.

use crate::cli::{Failure, output};
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::p1_entry::look::SaleLook;
use crate::p1_entry::warm::Warmer;
use crate::roles::Servers;
use crate::store::mysql::sales;

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

pub(super) async fn show(warmer: &Warmer, id: &SaleId, json: bool) -> Result<(), Failure> {
    let shown = warmer.look(id).await?;
    if json {
        output::json(&shown);
    } else {
        tables(&shown);
    }
    Ok(())
}

fn tables(shown: &SaleLook) {
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
