//! Blocked buyers: list, add, lift. The api processes follow within two seconds.

use super::act_body::ActBody;
use super::calls::{OperateCall, ViewCall};
use super::json_api::{AdminAnswer, JsonBody, ReadProblems, WriteProblems, answer, unexpected_query};
use super::state::Admin;
use crate::buyers::forms::{self, BlockForm};
use crate::buyers::rows::{BlockDocument, PAGE_MAX};
use crate::domain::ids::UserId;
use crate::http::problem::Kind;
use actix_web::web;
use chrono::Utc;
use serde::{Deserialize, Serialize};

type BlockBody = ActBody<BlockForm>;
type UnblockBody = ActBody<UnblockForm>;

/// Blocks listed without `limit`.
const BLOCKS: i64 = 1_000;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct BlocksQuery {
    /// Only buyers behind this one, in the order of their ids.
    #[param(min_length = 1, max_length = 64)]
    after: Option<String>,
    /// How many; 1,000 when left out.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<i64>,
}

/// A page of blocks; one that is not full is the last.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct BlockList {
    /// In the order of the buyers' ids.
    blocks: Vec<BlockDocument>,
}

/// What an act on a block came to.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct BlockDone {
    buyer: String,
    /// false: it was so before, and nothing was changed.
    changed: bool,
}

/// A buyer who is to be blocked no more.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = UnblockBody)]
#[serde(deny_unknown_fields)]
pub(super) struct UnblockForm {
    #[schema(min_length = 1, max_length = 64)]
    buyer: String,
}

/// List blocked buyers.
#[utoipa::path(
    get, path = "/admin/v1/blocks", operation_id = "list_blocks", tag = "buyers", params(BlocksQuery),
    responses((status = 200, description = "Blocks that count now", body = BlockList), ReadProblems)
)]
pub(super) async fn list(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<BlocksQuery>) -> AdminAnswer {
    let BlocksQuery { after, limit } = query.into_inner();
    let limit = limit.unwrap_or(BLOCKS);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Kind::Unprocessable
            .because_both(format!("limit: expected 1 to {PAGE_MAX}"), format!("limit：应为 1 至 {PAGE_MAX}")));
    }
    let after = after.as_deref().map(UserId::parse).transpose().map_err(|error| unexpected_query(&error))?;
    let page = admin.servers.rows.blocks.page(after.as_ref(), limit).await?;
    answer(BlockList { blocks: page.into_iter().filter_map(BlockDocument::of).collect() })
}

/// Block a buyer: no purchase, no purchase token, no place in a waiting room. Orders that exist stay.
///
/// Repeating it with the same values changes nothing.
#[utoipa::path(
    post, path = "/admin/v1/blocks", operation_id = "block_buyer", tag = "buyers", request_body = BlockBody,
    responses((status = 200, description = "The buyer is blocked", body = BlockDone), WriteProblems)
)]
pub(super) async fn add(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<BlockBody>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let (actor, block) = (call.actor(by.as_deref())?, form.checked(Utc::now())?);
    let changed = admin.servers.rows.blocks.add(&actor, &block).await?;
    answer(BlockDone { buyer: block.buyer.as_str().to_owned(), changed })
}

/// Let a blocked buyer buy again.
#[utoipa::path(
    post, path = "/admin/v1/blocks/remove", operation_id = "unblock_buyer", tag = "buyers",
    request_body = UnblockBody,
    responses((status = 200, description = "The buyer is not blocked", body = BlockDone), WriteProblems)
)]
pub(super) async fn remove(
    call: OperateCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<UnblockBody>,
) -> AdminAnswer {
    let ActBody { form, by, .. } = body;
    let (actor, buyer) = (call.actor(by.as_deref())?, forms::buyer(&form.buyer)?);
    let changed = admin.servers.rows.blocks.remove(&actor, &buyer).await?;
    answer(BlockDone { buyer: buyer.as_str().to_owned(), changed })
}
