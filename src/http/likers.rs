//! Who likes an item, a page at a time.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use super::App;
use super::auth::{Permit, Read};
use super::path::{invalid_user, item};
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::likes::UserId;
use crate::store::likers::Likers;

/// A page of the users who like an item.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LikersAnswer {
    #[schema(value_type = schema::Item)]
    item: String,
    /// By the bytes of their ids.
    #[schema(value_type = Vec<schema::User>)]
    users: Vec<String>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::User, required = false)]
    cursor: Option<String>,
}

/// Why it cannot be said who likes an item.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum NotIndexed {
    /// `not_indexed`: `likes.index_by_item` is off.
    #[response(status = 409, content_type = "application/problem+json")]
    NotIndexed(Problem),
}

/// Who likes an item: the owners' word, by user, a page at a time.
///
/// Needs `likes.index_by_item`. A like that comes or goes while pages are read moves no other one out of them.
#[utoipa::path(get, path = "/likes/{item}/users", tag = "likes",
    params(("item" = schema::Item, Path),
        ("cursor" = Option<schema::User>, Query, description = "of the page before"),
        ("limit" = Option<schema::LikesPageLimit>, Query, description = "users in a page")),
    responses((status = 200, body = LikersAnswer, description = "a page"),
        NotIndexed, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn likers(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<LikersAnswer>, Problem> {
    let item = item(&uri, &app)?;
    let query = Query::parse(uri.query())?;
    let limit = query.limit(app.limits.max_likes_page)?;
    let after = match query.one("cursor")? {
        None => String::new(),
        Some(cursor) => {
            let user = UserId::parse(cursor, app.limits.max_user_bytes);
            user.ok_or_else(|| invalid_user(&app).of_field("cursor"))?.as_str().to_owned()
        }
    };
    match app.shards.likers(&item, &after, limit).await? {
        Likers::Users(users) => {
            let cursor = users.last().filter(|_| users.len() >= limit as usize).cloned();
            Ok(Json(LikersAnswer { item: item.to_string(), users, cursor }))
        }
        Likers::Off => Err(Problem::conflict(
            "not_indexed",
            "who likes an item is only known with likes.index_by_item = true",
        )),
        Likers::Building => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "index_building",
            "likes.index_by_item was switched on lately, and the index is not whole yet: come back",
        )),
    }
}
