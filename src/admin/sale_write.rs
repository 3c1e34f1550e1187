//! A write that needs nothing but its sale, or its drop: read from the request, done on the record, answered with the sale.
//!
//! Input: path, body with the operator's name, connection. Output: the act done and written down. A crash leaves what the act itself
//! leaves (`SaleControl`).

use super::calls::{JudgedCall, Needed, OperateCall};
use super::json_api::{AdminAnswer, JsonBody, answer};
use super::state::Admin;
use crate::domain::ids::SaleId;
use crate::domain::operator::{Actor, Operation};
use crate::http::extract::{DropInPath, SaleInPath};
use crate::http::problem::Problem;
use crate::sales::{SaleAct, SaleControl, SaleControlError};
use actix_web::dev::Payload;
use actix_web::{Error, FromRequest, HttpRequest, web};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;

/// The body of a write that needs the operator's name only.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OperatorBody {
    /// The operator, for the record.
    #[schema(max_length = 48)]
    by: Option<String>,
}

/// A write that needs nothing but what its path names.
pub(super) struct PathWrite<P> {
    pub(super) admin: web::Data<Admin>,
    pub(super) path: P,
    pub(super) actor: Actor,
}

/// Of a sale.
pub(super) type SaleWrite = PathWrite<SaleInPath>;
/// Of a drop.
pub(super) type DropWrite = PathWrite<DropInPath>;

impl<P: DeserializeOwned + 'static> FromRequest for PathWrite<P> {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let head = <(OperateCall, web::Data<Admin>, web::Path<P>)>::extract(request);
        let body = JsonBody::<OperatorBody>::from_request(request, payload);
        async move {
            let (call, admin, path) = head.await?;
            let JsonBody(OperatorBody { by }) = body.await?;
            Ok(Self { admin, path: path.into_inner(), actor: call.actor(by.as_deref())? })
        }
        .boxed_local()
    }
}

impl<P> JudgedCall for PathWrite<P> {
    const NEEDED: Needed = <OperateCall as JudgedCall>::NEEDED;
}

impl<P> PathWrite<P> {
    pub(super) fn control(&self) -> &SaleControl {
        &self.admin.sale_control
    }
}

impl SaleWrite {
    pub(super) fn sale_id(&self) -> &SaleId {
        &self.path.sale_id
    }

    /// Does `work` and writes it down; `what` is for the log.
    pub(super) async fn on_record<T>(
        &self,
        operation: Operation,
        what: &str,
        work: impl Future<Output = Result<T, SaleControlError>>,
    ) -> Result<T, Problem> {
        let act = SaleAct { actor: &self.actor, operation, sale_id: self.sale_id(), asked: Value::Null };
        let done = self.control().on_record(act, work).await?;
        self.admin.changed(self.sale_id(), what).await;
        Ok(done)
    }

    pub(super) async fn sale(&self) -> AdminAnswer {
        answer(self.control().detail(self.sale_id()).await?)
    }
}
