//! Many totals, asked for in a body: for lists that are too long for an address.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::App;
use crate::http::auth::{Permit, Read};
use crate::http::body::Body;
use crate::http::fields::{flag, text};
use crate::http::likes::{TotalsAnswer, feed};
use crate::http::path::{invalid_item, invalid_user};
use crate::http::problem::Problem;
use crate::http::schema;
use crate::likes::{ItemId, UserId};

const INVALID: &str = "invalid_query";

/// What is asked. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::http) struct QueryBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::QueryItems, required)]
    items: Option<&'a RawValue>,
    /// Say of each item whether this user likes it.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::User>)]
    user: Option<&'a RawValue>,
    /// Ask every shard.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    exact: Option<&'a RawValue>,
}

/// Many totals, and whether a user likes each, in one call: as `GET /likes`, for long lists. It changes nothing.
#[utoipa::path(post, path = "/batch/likes/query", operation_id = "query_likes", tag = "likes",
    request_body = QueryBody,
    responses((status = 200, body = TotalsAnswer, description = "the totals, in the order of the question"),
        crate::http::openapi::Rejections, crate::http::openapi::Refusals, crate::http::openapi::BodyRejections))]
pub(in crate::http) async fn query(
    permit: Permit<Read>,
    State(app): State<App>,
    body: Body,
) -> Result<Json<TotalsAnswer>, Problem> {
    let query: QueryBody<'_> = body.object(|| {
        let detail = "a query is an object with `items`, a list of texts";
        Problem::bad_request(INVALID, detail).of_field("items")
    })?;
    let max = app.limits.max_items_per_query;
    let invalid =
        || Problem::bad_request(INVALID, format!("`items` is a list of 1 to {max} texts")).of_field("items");
    let items = query.items.and_then(|json| serde_json::from_str::<Vec<String>>(json.get()).ok());
    let items = items.filter(|items| (1..=max).contains(&items.len())).ok_or_else(invalid)?;
    let item = |item: &String| {
        let item = ItemId::parse(item, app.limits.max_item_bytes);
        item.ok_or_else(|| invalid_item(&app).of_field("items"))
    };
    let items = items.iter().map(item).collect::<Result<Vec<_>, _>>()?;
    let user = match query.user {
        None => None,
        Some(json) => {
            let user = text(json).and_then(|user| UserId::parse(&user, app.limits.max_user_bytes));
            Some(user.ok_or_else(|| invalid_user(&app).of_field("user"))?)
        }
    };
    feed(&app, &permit, &items, user, flag(INVALID, "exact", query.exact)?).await
}
