//! `GET /v1/drops/{drop_id}`: a drop as buyers see it, made of the list of sales. No server is asked for it.

use super::sales::{SaleInfo, json_text, of_list};
use super::state::PublicApi;
use crate::domain::drops::SalesDrop;
use crate::domain::ids::DropId;
use crate::http::extract::DropInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::sale_list::ListedSale;
use crate::runtime::now_ms;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A drop as a buyer sees it.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DropInfo {
    #[schema(example = "sneaker")]
    drop_id: String,
    title: String,
    /// Most units of one buyer over all its sales, beside the limit of each; null: no limit.
    limit: Option<u32>,
    /// Those of its sales that `GET /v1/sales` lists, in the drop's order.
    sales: Vec<SaleInfo>,
}

problem_responses! {
    DropProblems: 400, 404, 503;
}

/// Show a drop with its sales.
#[utoipa::path(
    get, path = "/v1/drops/{drop_id}", operation_id = "show_drop", tag = "sales",
    params(DropInPath),
    responses(
        (status = 200, description = "The drop. As old as the list of sales", body = DropInfo,
         headers(("Age" = u64, description = "How old it is, seconds"))),
        DropProblems,
    )
)]
pub(super) async fn show(public: web::Data<PublicApi>, drop: web::Path<DropInPath>) -> Result<HttpResponse, Problem> {
    let list = public.sales.get().await?;
    let bodies = match list.drop_bodies.get() {
        Some(bodies) => bodies,
        None => {
            let made = bodies(&list.sales)?;
            list.drop_bodies.get_or_init(|| made)
        }
    };
    let body = bodies.get(&drop.drop_id).cloned().ok_or(Kind::DropNotFound)?;
    Ok(of_list(&list, body))
}

fn bodies(listed: &[ListedSale]) -> Result<HashMap<DropId, Arc<str>>, Problem> {
    let now = now_ms();
    let mut drops: HashMap<&DropId, (&SalesDrop, Vec<&ListedSale>)> = HashMap::new();
    for sale in listed {
        let Some(drop) = &sale.sale.in_drop else { continue };
        drops.entry(&drop.drop_id).or_insert_with(|| (drop, Vec::new())).1.push(sale);
    }
    let body = |(drop_id, (drop, mut sales)): (&DropId, (&SalesDrop, Vec<&ListedSale>))| {
        let place = |listed: &&ListedSale| drop.sale_ids.iter().position(|id| *id == listed.sale.sale_id);
        sales.sort_by_key(place);
        let info = DropInfo {
            drop_id: drop_id.to_string(),
            title: drop.title.clone(),
            limit: drop.limit.map(NonZeroU32::get),
            sales: sales.into_iter().map(|listed| SaleInfo::of_listed(listed, now)).collect(),
        };
        Ok((drop_id.clone(), json_text(&info)?))
    };
    drops.into_iter().map(body).collect()
}
