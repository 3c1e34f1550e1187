//! `seckill sale list` and `seckill sale show`: sales as the database knows them, and what Redis holds of one.

use crate::cli::failure::Failure;
use crate::cli::output;
use crate::domain::currency::amount_text;
use crate::domain::ids::SaleId;
use crate::domain::needs::Needs;
use crate::domain::order_life::PaymentTerms;
use crate::domain::policy::LimitBy;
use crate::domain::sale::Sale;
use crate::http::times::shown_time;
use crate::roles::Servers;
use crate::sales::rows::archived::Archived;
use crate::sales::{SaleControl, SaleDetail};

pub(super) async fn list(servers: &Servers, json: bool) -> Result<(), Failure> {
    let (sales, kept) = (servers.rows.sales.list().await?, servers.rows.archived.list().await?);
    if json {
        output::json(&rows(&sales, &kept)?);
        return Ok(());
    }
    let archived = |sale: &Sale| kept.iter().any(|kept| kept.sums.sale_id == sale.sale_id);
    let limit = |sale: &Sale| sale.policy.limit().map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    output::table(
        ["sale", "title", "status", "granted", "unsold", "limit", "starts", "ends"],
        sales.iter().map(|sale| {
            [
                sale.sale_id.to_string(),
                sale.title.clone(),
                status(sale, archived(sale)),
                sale.granted.to_string(),
                sale.stock.to_string(),
                limit(sale),
                shown_time(sale.starts_at_ms),
                shown_time(sale.ends_at_ms),
            ]
        }),
    );
    let gone: Vec<&Archived> =
        kept.iter().filter(|kept| sales.iter().all(|sale| sale.sale_id != kept.sums.sale_id)).collect();
    if !gone.is_empty() {
        output::table(
            ["archived sale", "title", "granted", "unsold", "orders", "archived", "by"],
            gone.iter().map(|kept| {
                [
                    kept.sums.sale_id.to_string(),
                    kept.sums.title.clone(),
                    kept.sums.granted.to_string(),
                    kept.sums.stock.to_string(),
                    kept.sums.orders_count.to_string(),
                    shown_time(kept.archived_at_ms),
                    kept.archived_by.clone(),
                ]
            }),
        );
    }
    Ok(())
}

fn status(sale: &Sale, archived: bool) -> String {
    match (archived, sale.hidden) {
        (true, _) => "archived, being removed".to_owned(),
        (false, true) => format!("{}, hidden", sale.status.code()),
        (false, false) => sale.status.code().to_owned(),
    }
}

/// For programs: the sales, and in the same list those that were archived, with the status `archived` and their sums.
fn rows(sales: &[Sale], kept: &[Archived]) -> Result<Vec<serde_json::Value>, Failure> {
    let failed = |error: serde_json::Error| Failure::Failed(error.to_string());
    let there = sales.iter().filter(|sale| kept.iter().all(|kept| kept.sums.sale_id != sale.sale_id));
    let mut rows = there.map(serde_json::to_value).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    for kept in kept {
        let mut row = serde_json::to_value(kept).map_err(failed)?;
        row["status"] = "archived".into();
        rows.push(row);
    }
    Ok(rows)
}

/// What is kept of an archived sale.
fn archived(kept: &Archived, half: bool) {
    output::table(
        ["field", "value"],
        [
            ["sale".to_owned(), kept.sums.sale_id.to_string()],
            ["title".to_owned(), kept.sums.title.clone()],
            ["status".to_owned(), if half { "archived, being removed" } else { "archived" }.to_owned()],
            ["granted / unsold".to_owned(), format!("{} / {}", kept.sums.granted, kept.sums.stock)],
            ["orders".to_owned(), format!("{} of {} units", kept.sums.orders_count, kept.sums.ordered)],
            ["requests with an outcome".to_owned(), kept.sums.outcomes_count.to_string()],
            ["archived".to_owned(), format!("{} by {}", shown_time(kept.archived_at_ms), kept.archived_by)],
            ["SHA-256 of manifest.json".to_owned(), kept.manifest.clone()],
        ],
    );
}

pub(super) async fn show(sale_control: &SaleControl, id: &SaleId, json: bool) -> Result<(), Failure> {
    if let Some(kept) = sale_control.archived.get(id).await? {
        let half = sale_control.rows.sales.get(id).await?.is_some();
        if json {
            output::json(&serde_json::json!({ "archived": kept, "being_removed": half }));
        } else {
            archived(&kept, half);
        }
        return Ok(());
    }
    let shown = sale_control.detail(id).await?;
    if json {
        output::json(&shown);
    } else {
        tables(&shown);
    }
    Ok(())
}

fn payment(terms: Option<PaymentTerms>) -> String {
    let Some(PaymentTerms { pay_within_s, pay_grace_s, limit_returns }) = terms else { return "none".to_owned() };
    let limit = if limit_returns { ", an order that ends unpaid gives its buyer's limit back" } else { "" };
    format!("within {pay_within_s} s, {pay_grace_s} s of grace{limit}")
}

/// Most units of one buyer, and who counts as one.
fn limit(sale: &Sale) -> String {
    let units = sale.policy.limit().map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    match sale.limit_by {
        LimitBy::Account => units,
        LimitBy::Person => format!("{units}, by person"),
    }
}

/// What a sale needs of its buyers, in words.
pub(in crate::cli) fn needs(sale: &Sale) -> String {
    let english = |needs: &Needs| {
        let [english, _chinese] = needs.words();
        english
    };
    sale.needs.as_deref().map_or_else(|| "nothing".to_owned(), english)
}

/// A release in a few words.
pub(in crate::cli) fn release(units: u32, at: &str, given: bool) -> String {
    let given = if given { " (given)" } else { "" };
    format!("{units} at {at}{given}")
}

fn tables(shown: &SaleDetail) {
    let sale = &shown.sale;
    let releases: Vec<String> = shown.releases.iter().map(|of| release(of.units, &of.at, of.given)).collect();
    let rollover = shown.rollover_to.as_ref().map_or_else(|| "stays".to_owned(), |to| format!("goes to {to}"));
    output::table(
        ["field", "value"],
        [
            ["sale".to_owned(), sale.sale_id.to_string()],
            ["title".to_owned(), format!("{} ({})", sale.title, sale.product_id)],
            ["status".to_owned(), sale.status.code().to_owned()],
            ["window".to_owned(), format!("{} to {}", shown_time(sale.starts_at_ms), shown_time(sale.ends_at_ms))],
            ["price".to_owned(), amount_text(sale.price_cents, &sale.currency)],
            ["limit".to_owned(), limit(sale)],
            ["granted / unsold".to_owned(), format!("{} / {}", sale.granted, sale.stock)],
            ["in transit".to_owned(), shown.in_transit.map_or_else(|| "not in redis".to_owned(), |n| n.to_string())],
            ["version".to_owned(), sale.version.to_string()],
            ["buyers see it".to_owned(), if sale.hidden { "no, hidden" } else { "yes" }.to_owned()],
            ["token required".to_owned(), if sale.token_required { "yes" } else { "no" }.to_owned()],
            ["waiting room".to_owned(), if sale.waiting_room { "yes" } else { "no" }.to_owned()],
            ["a buyer needs".to_owned(), needs(sale)],
            ["challenge".to_owned(), sale.challenge.map_or_else(|| "none".to_owned(), |of| of.to_string())],
            ["payment".to_owned(), payment(sale.payment)],
            ["grants".to_owned(), shown.grants.join(", ")],
            ["releases".to_owned(), if shown.releases.is_empty() { "none".to_owned() } else { releases.join(", ") }],
            ["unsold at the end".to_owned(), rollover],
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
