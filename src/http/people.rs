//! What a person likes, and forgetting a person.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use super::App;
use super::auth::{Admin, Permit, Read};
use super::path::{first_user, person};
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::people::NotForgotten;
use crate::store::likes::ItemKey;
use crate::store::people::Policy;

/// One of a user's likes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LikedItemAnswer {
    #[schema(value_type = schema::Item)]
    item: String,
    /// When, to the second; ms since 1970.
    liked_at: i64,
}

/// A page of a user's likes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LikesAnswer {
    #[schema(value_type = schema::User)]
    user: String,
    /// In the order in which the items were first liked by anybody of the same partition. There may be fewer than asked for, and
    /// still more to come.
    likes: Vec<LikedItemAnswer>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::LikesCursor, required = false)]
    cursor: Option<String>,
}

/// A person that was forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ForgottenAnswer {
    #[schema(value_type = schema::Person)]
    user: String,
    #[schema(value_type = schema::ForgetPolicy)]
    policy: &'static str,
    /// Likes that were removed, or that nobody's name is on any more.
    #[schema(minimum = 0)]
    likes: u64,
    /// Partitions on which reservations were for this person.
    #[schema(minimum = 0)]
    holders: u64,
    /// Messages that lost their sender's name.
    #[schema(minimum = 0)]
    messages: u64,
    /// Rooms in memory that knew the person; it was online there no more from then on.
    #[schema(minimum = 0)]
    rooms: u64,
}

/// Why a person cannot be forgotten this way.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documentation: only its shape is used")]
pub(super) enum UnderWay {
    /// `forgetting_under_way`: with the other policy.
    #[response(status = 409, content_type = "application/problem+json")]
    UnderWay(Problem),
}

/// What a user likes, by item, a page at a time: the owner's word.
///
/// A like that comes or goes while pages are read moves no other one out of them.
#[utoipa::path(get, path = "/users/{user}/likes", operation_id = "likes_of_user", tag = "likes",
    params(("user" = schema::User, Path),
        ("cursor" = Option<schema::LikesCursor>, Query, description = "of the page before"),
        ("limit" = Option<schema::LikesPageLimit>, Query, description = "likes that a page looks at")),
    responses((status = 200, body = LikesAnswer, description = "a page"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn likes(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<LikesAnswer>, Problem> {
    let user = first_user(&uri, &app)?;
    let query = Query::parse(uri.query())?;
    let limit = query.limit(app.limits.max_likes_page)?;
    let after = match query.one("cursor")? {
        None => ItemKey(0),
        Some(cursor) => parse_cursor(cursor, app.layout)?,
    };
    let page = app.shards.likes_of(user.clone(), after, limit).await?;
    let last = page.last().filter(|_| page.len() >= limit as usize);
    let cursor = last.map(|last| format!("{}-{}-{}", app.layout.0, app.layout.1, last.item.0));
    let likes = page.into_iter().filter_map(|liked| {
        Some(LikedItemAnswer { item: liked.name?, liked_at: liked.liked_at_s.saturating_mul(1_000) })
    });
    Ok(Json(LikesAnswer { user: user.to_string(), likes: likes.collect(), cursor }))
}

/// `shards-partitions-item`: items have other keys where the data has moved.
fn parse_cursor(text: &str, layout: (u32, u32)) -> Result<ItemKey, Problem> {
    let invalid = |detail: &str| Problem::bad_request("invalid_query", detail).of_field("cursor");
    let numbers: Vec<i64> = text
        .split('-')
        .filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|number| number.parse().ok())
        .collect();
    let is_plain = text.split('-').count() == numbers.len();
    match (&numbers[..], is_plain) {
        ([shards, partitions, item], true) if *item > 0 => {
            if (*shards, *partitions) == (i64::from(layout.0), i64::from(layout.1)) {
                return Ok(ItemKey(*item));
            }
            Err(invalid("the data has moved since this page: begin again without `cursor`"))
        }
        _ => Err(invalid("`cursor` is one that a page ended with")),
    }
}

/// Forget a person everywhere.
///
/// Its likes, its name behind reservations, its presence in rooms and its name on what it said there. Idempotent: again, it
/// finds nothing.
#[utoipa::path(delete, path = "/users/{user}", operation_id = "forget_person", tag = "people",
    params(("user" = schema::Person, Path),
        ("policy" = schema::ForgetPolicy, Query, description = "what becomes of the likes")),
    responses((status = 200, body = ForgottenAnswer, description = "forgotten, or there was nothing"),
        UnderWay, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn forget(
    _permit: Permit<Admin>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ForgottenAnswer>, Problem> {
    let person = person(&uri, &app)?;
    let query = Query::parse(uri.query())?;
    let policy = query.one("policy")?.and_then(Policy::parse).ok_or_else(|| {
        Problem::bad_request("invalid_query", "`policy` is remove or anonymise").of_field("policy")
    })?;
    let done = app.forgetter.forget(person.clone(), policy).await.map_err(|error| match error {
        NotForgotten::UnderWay(_) => Problem::conflict(
            "forgetting_under_way",
            "this person is being forgotten with the other policy: ask again once that is done",
        ),
        NotForgotten::Refused(refusal) => refusal.into(),
    })?;
    Ok(Json(ForgottenAnswer {
        user: person.to_string(),
        policy: policy.as_str(),
        likes: done.stored.likes,
        holders: done.stored.holders,
        messages: done.stored.messages + done.messages_in_memory,
        rooms: done.rooms,
    }))
}
