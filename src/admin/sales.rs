//! Sales: list, look, create, and everything an operator does to one. The work is done by [`SaleControl`], as on the command line.

use super::Admin;
use super::acts::actor;
use super::api::{Body, answer, read};
use crate::domain::ids::SaleId;
use crate::domain::new_sale::{BadSale, NewSale};
use crate::domain::operator::Operation;
use crate::http::problem::{Kind, Problem};
use crate::sales::SaleAct;
use crate::sales::SaleControl;
use crate::store::mysql::sales;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest name of a grant, characters.
const GRANT_CHARS_MAX: usize = 64;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/sales", web::get().to(list))
        .route("/sales", web::post().to(create))
        .route("/sales/{sale_id}", web::get().to(show))
        .route("/sales/{sale_id}/warm", web::post().to(warm))
        .route("/sales/{sale_id}/pause", web::post().to(pause))
        .route("/sales/{sale_id}/resume", web::post().to(resume))
        .route("/sales/{sale_id}/top-up", web::post().to(top_up))
        .route("/sales/{sale_id}/reclaim", web::post().to(reclaim))
        .route("/sales/{sale_id}/rebuild", web::post().to(rebuild))
        .route("/sales/{sale_id}/close", web::post().to(close));
}

/// The sale an address names.
pub(super) fn named(path: &str) -> Result<SaleId, Problem> {
    SaleId::parse(path).map_err(|error| Kind::BadRequest.because(error.to_string()))
}

impl From<BadSale> for Problem {
    fn from(bad: BadSale) -> Self {
        Kind::Unprocessable.because(bad.to_string())
    }
}

impl Admin {
    pub(super) fn sale_control(&self) -> SaleControl {
        let (redis, db) = (self.servers.redis.clone(), self.servers.db.clone());
        SaleControl { redis, db, shards: self.context.shards, backlog_max: self.backlog_max }
    }
}

async fn list(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let sales = admin.sales.get(async { sales::list(&admin.servers.db).await.map_err(Problem::from) }).await;
    answer(&request, sales.map(|sales| json!({ "sales": *sales })))
}

async fn show(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>) -> HttpResponse {
    let work = async { Ok(admin.sale_control().detail(&named(&path)?).await?) };
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

async fn create(admin: web::Data<Admin>, request: HttpRequest, body: Body) -> HttpResponse {
    let work = async {
        let CreateBody { warm, by, sale } = read(&request, body)?;
        let actor = actor(&request, by.as_deref())?;
        let new: NewSale = serde_json::from_value(Value::Object(sale))
            .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))?;
        let sale = new.draft()?;
        let (id, sale_control) = (&sale.sale_id, admin.sale_control());
        let asked = json!({ "units": sale.granted, "title": sale.title, "price_cents": sale.price_cents });
        let act = |operation, asked| SaleAct { actor: &actor, operation, sale_id: id, asked };
        let creating = async { Ok(sales::create(&admin.servers.db, &sale).await?) };
        sale_control.on_record(act(Operation::SaleCreate, asked), creating).await?;
        if warm {
            sale_control.on_record(act(Operation::SaleWarm, Value::Null), sale_control.warm(id)).await?;
        }
        admin.changed(&sale.sale_id, "created").await;
        Ok(admin.sale_control().detail(&sale.sale_id).await?)
    };
    answer(&request, work.await)
}

/// A write that says nothing but its address, and who acts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {
    by: Option<String>,
}

/// What the buttons of a sale do.
#[derive(Clone, Copy)]
enum Steer {
    Warm,
    Pause,
    Resume,
    Close,
    Rebuild,
}

async fn steer(
    admin: web::Data<Admin>,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body,
    how: Steer,
) -> HttpResponse {
    let work = async {
        let Nothing { by } = read(&request, body)?;
        let (id, sale_control, actor) = (named(&path)?, admin.sale_control(), actor(&request, by.as_deref())?);
        let act = |operation| SaleAct { actor: &actor, operation, sale_id: &id, asked: Value::Null };
        let what = match how {
            Steer::Warm => {
                sale_control.on_record(act(Operation::SaleWarm), sale_control.warm(&id)).await.map(|()| "warmed")?
            }
            Steer::Pause => {
                sale_control.on_record(act(Operation::SalePause), sale_control.pause(&id)).await.map(|()| "paused")?
            }
            Steer::Resume => sale_control
                .on_record(act(Operation::SaleResume), sale_control.resume(&id))
                .await
                .map(|()| "resumed")?,
            Steer::Close => {
                sale_control.on_record(act(Operation::SaleClose), sale_control.close(&id)).await.map(|()| "closed")?
            }
            Steer::Rebuild => sale_control
                .on_record(act(Operation::SaleRebuild), sale_control.freeze(&id))
                .await
                .map(|()| "frozen")?,
        };
        admin.changed(&id, what).await;
        Ok(sale_control.detail(&id).await?)
    };
    answer(&request, work.await)
}

async fn warm(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    steer(admin, request, path, body, Steer::Warm).await
}

async fn pause(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    steer(admin, request, path, body, Steer::Pause).await
}

async fn resume(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    steer(admin, request, path, body, Steer::Resume).await
}

async fn rebuild(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    steer(admin, request, path, body, Steer::Rebuild).await
}

/// The answer has the sale, and in `reclaimed` what is offered again by this call; null when there was nothing.
async fn reclaim(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    let work = async {
        let Nothing { by } = read(&request, body)?;
        let (id, sale_control, actor) = (named(&path)?, admin.sale_control(), actor(&request, by.as_deref())?);
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

async fn close(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    steer(admin, request, path, body, Steer::Close).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopUp {
    units: u32,
    /// Name of this grant: repeating a call with the same one adds nothing. Required: a browser may repeat a call.
    grant: String,
    /// Who acts, for the record.
    by: Option<String>,
}

async fn top_up(admin: web::Data<Admin>, request: HttpRequest, path: web::Path<String>, body: Body) -> HttpResponse {
    let work = async {
        let TopUp { units, grant, by } = read(&request, body)?;
        let id = named(&path)?;
        if units == 0 {
            return Err(Kind::Unprocessable.because("units: expected a whole number from 1"));
        }
        if grant.trim().is_empty() || grant.chars().count() > GRANT_CHARS_MAX {
            return Err(Kind::Unprocessable.because("grant: expected 1 to 64 characters"));
        }
        let (sale_control, actor) = (admin.sale_control(), actor(&request, by.as_deref())?);
        let asked = json!({ "units": units, "grant": grant });
        let act = SaleAct { actor: &actor, operation: Operation::SaleTopUp, sale_id: &id, asked };
        sale_control.on_record(act, sale_control.top_up(&id, &grant, units)).await?;
        admin.changed(&id, "topped up").await;
        Ok(admin.sale_control().detail(&id).await?)
    };
    answer(&request, work.await)
}

impl Admin {
    /// After a write: the next look is a new one, and the log says who did what.
    async fn changed(&self, sale: &SaleId, what: &str) {
        tracing::info!(phase = "admin", sale = %sale, what, "sale changed through the admin API");
        self.sales.forget().await;
        self.snapshot.forget().await;
    }
}
