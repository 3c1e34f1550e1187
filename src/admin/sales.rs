//! Sales: list, show, create, and everything an operator does to one. `SaleControl` does the work, as for the command line.

use super::json_api::{JsonBody, actor, answer, read, sale_id_in};
use super::state::Admin;
use crate::domain::new_sale::NewSale;
use crate::domain::operator::Operation;
use crate::http::problem::{Kind, Problem};
use crate::sales::SaleAct;
use crate::store::mysql::sales;
use actix_web::{Handler, HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest name of a grant, characters.
const GRANT_CHARS_MAX: usize = 64;

pub(super) async fn list(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let sales = admin.sales.get(async { sales::list(&admin.servers.db).await.map_err(Problem::from) }).await;
    answer(&request, sales.map(|sales| json!({ "sales": *sales })))
}

pub(super) async fn show(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    let work = async { Ok(admin.sale_control.detail(&sale_id_in(&path)?).await?) };
    answer(&request, work.await)
}

#[derive(Deserialize)]
struct CreateBody {
    /// Warm it up at once.
    #[serde(default)]
    warm: bool,
    /// Who acts, for the record.
    by: Option<String>,
    #[serde(flatten)]
    sale: serde_json::Map<String, Value>,
}

pub(super) async fn create(admin: web::Data<Admin>, request: HttpRequest, body: JsonBody) -> HttpResponse {
    let work = async {
        let CreateBody { warm, by, sale } = read(&request, body)?;
        let actor = actor(&request, by.as_deref())?;
        let new: NewSale = serde_json::from_value(Value::Object(sale))
            .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))?;
        let sale = new.draft()?;
        let (id, sale_control) = (&sale.sale_id, &admin.sale_control);
        let asked = json!({ "units": sale.granted, "title": sale.title, "price_cents": sale.price_cents });
        let act = |operation, asked| SaleAct { actor: &actor, operation, sale_id: id, asked };
        let creating = async { Ok(sales::create(&admin.servers.db, &sale).await?) };
        sale_control.on_record(act(Operation::SaleCreate, asked), creating).await?;
        if warm {
            sale_control.on_record(act(Operation::SaleWarm, Value::Null), sale_control.warm(id)).await?;
        }
        admin.changed(&sale.sale_id, "created").await;
        Ok(admin.sale_control.detail(&sale.sale_id).await?)
    };
    answer(&request, work.await)
}

/// The body of a write that needs the operator's name only.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperatorBody {
    by: Option<String>,
}

/// Writes that need nothing but the sale.
#[derive(Clone, Copy)]
pub(super) enum SaleChange {
    Warm,
    Pause,
    Resume,
    Close,
    Rebuild,
}

/// What a change takes of its request.
type ChangeRequest = (web::Data<Admin>, HttpRequest, web::Path<String>, JsonBody);

/// The handler of a change.
pub(super) fn change(change: SaleChange) -> impl Handler<ChangeRequest, Output = HttpResponse> {
    move |admin, request, path, body| apply(admin, request, path, body, change)
}

async fn apply(
    admin: web::Data<Admin>,
    request: HttpRequest,
    path: web::Path<String>,
    body: JsonBody,
    change: SaleChange,
) -> HttpResponse {
    let work = async {
        let OperatorBody { by } = read(&request, body)?;
        let (id, sale_control, actor) = (sale_id_in(&path)?, &admin.sale_control, actor(&request, by.as_deref())?);
        let (operation, what) = match change {
            SaleChange::Warm => (Operation::SaleWarm, "warmed"),
            SaleChange::Pause => (Operation::SalePause, "paused"),
            SaleChange::Resume => (Operation::SaleResume, "resumed"),
            SaleChange::Close => (Operation::SaleClose, "closed"),
            SaleChange::Rebuild => (Operation::SaleRebuild, "frozen"),
        };
        let changing = async {
            match change {
                SaleChange::Warm => sale_control.warm(&id).await,
                SaleChange::Pause => sale_control.pause(&id).await,
                SaleChange::Resume => sale_control.resume(&id).await,
                SaleChange::Close => sale_control.close(&id).await,
                SaleChange::Rebuild => sale_control.freeze(&id).await,
            }
        };
        let act = SaleAct { actor: &actor, operation, sale_id: &id, asked: Value::Null };
        sale_control.on_record(act, changing).await?;
        admin.changed(&id, what).await;
        Ok(sale_control.detail(&id).await?)
    };
    answer(&request, work.await)
}

/// The answer has the sale, and in `reclaimed` the units that this call offers again; null when there were none.
pub(super) async fn reclaim(
    admin: web::Data<Admin>,
    request: HttpRequest,
    path: web::Path<String>,
    body: JsonBody,
) -> HttpResponse {
    let work = async {
        let OperatorBody { by } = read(&request, body)?;
        let (id, sale_control, actor) = (sale_id_in(&path)?, &admin.sale_control, actor(&request, by.as_deref())?);
        let act = SaleAct { actor: &actor, operation: Operation::SaleReclaim, sale_id: &id, asked: Value::Null };
        let made = sale_control.on_record(act, sale_control.reclaim(&id)).await?;
        admin.changed(&id, "reclaimed").await;
        let made = made.map(|made| json!({ "grant": made.grant_id, "requests": made.requests, "units": made.units }));
        let mut answer = json!(sale_control.detail(&id).await?);
        answer["reclaimed"] = json!(made);
        Ok(answer)
    };
    answer(&request, work.await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopUpBody {
    units: u32,
    /// Name of this grant: a repeated call with the same name adds nothing. Required, because a browser may repeat a call.
    grant: String,
    /// Who acts, for the record.
    by: Option<String>,
}

pub(super) async fn top_up(
    admin: web::Data<Admin>,
    request: HttpRequest,
    path: web::Path<String>,
    body: JsonBody,
) -> HttpResponse {
    let work = async {
        let TopUpBody { units, grant, by } = read(&request, body)?;
        let id = sale_id_in(&path)?;
        if units == 0 {
            return Err(Kind::Unprocessable.because("units: expected a whole number from 1"));
        }
        if grant.trim().is_empty() || grant.chars().count() > GRANT_CHARS_MAX {
            return Err(Kind::Unprocessable.because("grant: expected 1 to 64 characters"));
        }
        let (sale_control, actor) = (&admin.sale_control, actor(&request, by.as_deref())?);
        let asked = json!({ "units": units, "grant": grant });
        let act = SaleAct { actor: &actor, operation: Operation::SaleTopUp, sale_id: &id, asked };
        sale_control.on_record(act, sale_control.top_up(&id, &grant, units)).await?;
        admin.changed(&id, "topped up").await;
        Ok(admin.sale_control.detail(&id).await?)
    };
    answer(&request, work.await)
}
