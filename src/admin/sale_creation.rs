//! A new sale over HTTP: a draft, or opened at once.

use super::calls::OperateCall;
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer, unexpected_body};
use super::state::Admin;
use crate::domain::new_sale::NewSale;
use crate::domain::operator::Operation;
use crate::sales::SaleAct;
use actix_web::web;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct CreateBody {
    #[serde(default)]
    warm: bool,
    by: Option<String>,
    #[serde(flatten)]
    sale: serde_json::Map<String, Value>,
}

/// A new sale.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes `CreateBody` with the fields of `NewSale`; a test compares them")]
pub(super) struct NewSaleBody {
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    id: String,
    /// What is sold.
    #[schema(min_length = 1, max_length = 64)]
    product: String,
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Units.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    stock: i64,
    /// Most units a buyer may have; no limit when left out.
    #[schema(minimum = 1)]
    limit: Option<u32>,
    /// In the currency's smallest unit; from 1 with `pay_within_s`.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    price_cents: i64,
    #[serde(default)]
    #[schema(default = "CNY", pattern = "^[A-Z]{3}$")]
    currency: String,
    /// RFC 3339.
    #[schema(format = DateTime)]
    starts_at: String,
    /// RFC 3339.
    #[schema(format = DateTime)]
    ends_at: String,
    #[serde(default)]
    token_required: bool,
    #[serde(default)]
    waiting_room: bool,
    /// Seconds that a buyer has to pay; no payment step when left out.
    #[schema(minimum = 1, maximum = 2_592_000)]
    pay_within_s: Option<u32>,
    /// Seconds between the deadline that buyers see and the one that is enforced; 30 when left out.
    #[schema(maximum = 86_400, default = 30)]
    pay_grace_s: Option<u32>,
    /// Whether an order that ends unpaid no longer counts against its buyer's limit.
    #[serde(default)]
    limit_returns: bool,
    /// Whether buyers do not see it until it is published.
    #[serde(default)]
    hidden: bool,
    /// Warm it up at once.
    #[serde(default)]
    warm: bool,
    /// The operator, for the record.
    #[schema(max_length = 48)]
    by: Option<String>,
}

/// Create a sale as a draft, with `warm` also open it.
#[utoipa::path(
    post, path = "/admin/v1/sales", operation_id = "create_sale", tag = "sales", request_body = NewSaleBody,
    responses((status = 200, description = "The sale", body = Value), WriteProblems)
)]
pub(super) async fn create(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<CreateBody>,
) -> AdminAnswer {
    let CreateBody { warm, by, sale } = body;
    let actor = call.actor(by.as_deref())?;
    let new: NewSale = serde_json::from_value(Value::Object(sale)).map_err(|error| unexpected_body(&error))?;
    let sale = new.draft()?;
    let (id, sale_control) = (&sale.sale_id, &admin.sale_control);
    let asked = json!({ "units": sale.granted, "title": sale.title, "price_cents": sale.price_cents });
    let act = |operation, asked| SaleAct { actor: &actor, operation, sale_id: id, asked };
    let creating = async { Ok(admin.servers.rows.sales.create(&sale).await?) };
    sale_control.on_record(act(Operation::SaleCreate, asked), creating).await?;
    if warm {
        sale_control.on_record(act(Operation::SaleWarm, Value::Null), sale_control.warm(id)).await?;
    }
    admin.changed(id, "created").await;
    answer(sale_control.detail(id).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use utoipa::PartialSchema;

    #[test]
    fn the_documented_body_of_a_new_sale_has_the_fields_that_are_read() {
        // serde lists the fields that it knows when it finds another one.
        let refusal = serde_json::from_value::<NewSale>(json!({ "?": 1 })).unwrap_err().to_string();
        let read: BTreeSet<&str> = refusal.split('`').skip(3).step_by(2).chain(["warm", "by"]).collect();
        let schema = serde_json::to_value(NewSaleBody::schema()).unwrap();
        let documented: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(documented, read);
    }
}
