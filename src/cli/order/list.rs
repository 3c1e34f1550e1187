//! Orders listed and exported, and the money that has to go back.

use crate::cli::failure::Failure;
use crate::cli::{context, output};
use crate::config::Layers;
use crate::domain::currency::amount_text;
use crate::orders::document::{OrderDocument, OrdersPage, PaymentDocument};
use crate::orders::forms::{ExportForm, OrdersForm, RefundsForm};
use crate::orders::refunds::RefundsPage;
use crate::roles::Servers;
use std::path::Path;

pub(super) async fn list(layers: &Layers, data_dir: &Path, form: OrdersForm, json: bool) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let query = form.query(settings.p1_entry.token_ttl_s)?;
    let servers = Servers::new(&settings)?;
    let page = OrdersPage::with_buyers(servers.rows.orders.find(&query).await??);
    if json {
        output::json(&page);
    } else if page.orders.is_empty() && page.next.is_none() {
        output::line("no such order");
    } else {
        output::table(
            ["order", "sale", "buyer", "units", "amount", "state", "written", "pay by"],
            page.orders.iter().map(row),
        );
        output::more("cursor", page.next);
    }
    Ok(0)
}

fn row(order: &OrderDocument) -> [String; 8] {
    let dash = || "-".to_owned();
    [
        order.request_id.to_string(),
        order.sale_id.to_string(),
        order.user_id.as_ref().map_or_else(dash, ToString::to_string),
        order.quantity.to_string(),
        amount_text(order.amount, &order.currency),
        order.state.map_or_else(dash, str::to_owned),
        order.created_at.clone(),
        order.pay_by.clone().unwrap_or_else(dash),
    ]
}

/// Page by page; orders that are written meanwhile are newer than the first page and not in it.
pub(super) async fn export(layers: &Layers, data_dir: &Path, form: ExportForm) -> Result<u8, Failure> {
    let settings = context::settings(layers, data_dir)?;
    let mut query = form.query(settings.p1_entry.token_ttl_s)?;
    let servers = Servers::new(&settings)?;
    loop {
        let page = servers.rows.orders.find(&query).await??;
        for order in page.orders {
            let line = serde_json::to_string(&OrderDocument::with_buyer(order));
            output::line(&line.map_err(|error| Failure::Failed(error.to_string()))?);
        }
        if page.next.is_none() || output::is_lost() {
            return Ok(0);
        }
        query.before = page.next;
    }
}

pub(super) async fn refunds(layers: &Layers, data_dir: &Path, form: RefundsForm, json: bool) -> Result<u8, Failure> {
    let wanted = form.filter()?;
    let servers = Servers::new(&context::settings(layers, data_dir)?)?;
    let page = RefundsPage::read(&servers.rows.orders, &wanted).await?;
    if json {
        output::json(&page);
    } else if page.payments.is_empty() {
        output::line("no money has to go back");
    } else {
        output::table(["payment", "order", "amount", "reason", "told"], page.payments.iter().map(refund_row));
        output::line(&format!("{} of {}", page.payments.len(), page.count));
        output::more("cursor", page.next);
    }
    Ok(0)
}

fn refund_row(payment: &PaymentDocument) -> [String; 5] {
    [
        payment.payment_id.clone(),
        payment.request_id.to_string(),
        amount_text(payment.amount, &payment.currency),
        payment.reason.clone().unwrap_or_default(),
        payment.told_at.clone(),
    ]
}
