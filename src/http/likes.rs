//! The routes of likes.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::policy::Feature;
use super::auth::{Admin, Permit, Read, Write};
use super::body::Body;
use super::path::{Item, invalid_item, invalid_user, item, user};
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::likes::rollup::RolledUp;
use crate::likes::{ItemId, UserId};
use crate::partition::Refusal;

/// A like or an unlike, decided.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LikeAnswer {
    #[schema(value_type = schema::Item)]
    pub item: ItemId,
    #[schema(value_type = schema::User)]
    pub user: UserId,
    /// Whether the user likes the item now.
    pub liked: bool,
    /// Whether it was different before.
    pub changed: bool,
    /// The shard that owns the user.
    pub shard: u32,
    /// With `?exact=true`: the item's total, this like or unlike included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    pub total: Option<i64>,
}

/// The body of a posted like. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct LikeBody<'a> {
    #[serde(rename = "userId", borrow)]
    #[schema(value_type = schema::User, required)]
    user_id: Option<&'a RawValue>,
}

impl LikeBody<'_> {
    pub(super) fn user(body: &Body, app: &App) -> Result<UserId, Problem> {
        let like: LikeBody<'_> = body.object(|| {
            Problem::bad_request("invalid_like", "a like is an object with the text `userId`")
                .of_field("userId")
        })?;
        if like.user_id.is_none() {
            let detail = "`userId` is missing: a like is an object with the text `userId`";
            return Err(Problem::bad_request("invalid_user", detail).of_field("userId"));
        }
        let user = like.user_id.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        user.and_then(|user| UserId::parse(&user, app.limits.max_user_bytes))
            .ok_or_else(|| invalid_user(app).of_field("userId"))
    }
}

/// An item's total.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TotalAnswer {
    #[schema(value_type = schema::Item)]
    pub item: String,
    #[schema(minimum = 0)]
    pub total: i64,
    /// False: rolled up, as of `asOf`. True: every shard was asked.
    pub exact: bool,
    /// Everything acknowledged before this time is counted; ms since 1970.
    pub as_of: i64,
    /// How long ago that was, in ms.
    #[schema(minimum = 0)]
    pub age_ms: i64,
    /// The roll-up run that last changed the total; never falls. Not of an exact total.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub version: Option<u64>,
    /// Whether the user that was asked about likes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub liked: Option<bool>,
}

/// Many totals.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TotalsAnswer {
    /// In the order of the question.
    items: Vec<TotalAnswer>,
}

/// Whether a user likes an item.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LikedAnswer {
    #[schema(value_type = schema::Item)]
    item: String,
    #[schema(value_type = schema::User)]
    user: String,
    liked: bool,
}

/// An item's end.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedAnswer {
    #[schema(value_type = schema::Item)]
    item: String,
    /// Whether it was there.
    deleted: bool,
}

async fn set(
    app: &App,
    uri: &Uri,
    item: ItemId,
    user: UserId,
    liked: bool,
) -> Result<Json<LikeAnswer>, Problem> {
    let exact = Query::parse(uri.query())?.flag("exact")?;
    let set = app.shards.set(user.clone(), item.clone(), liked).await?;
    let total = match exact {
        // The like is durable by now: whatever refuses the total, "surely not done" would be wrong.
        true => {
            let totals = app.shards.totals(std::slice::from_ref(&item)).await;
            totals.map_err(|_| Refusal::OutcomeUnknown)?.first().copied()
        }
        false => None,
    };
    Ok(Json(LikeAnswer { item, user, liked, changed: set.changed, shard: set.shard, total }))
}

/// Like an item. Idempotent.
#[utoipa::path(put, path = "/likes/{item}/users/{user}", tag = "likes",
    params(("item" = schema::Item, Path), ("user" = schema::User, Path),
        ("exact" = Option<bool>, Query, description = "answer with the total, this like included")),
    responses((status = 200, body = LikeAnswer, description = "decided"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn like(
    _permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<LikeAnswer>, Problem> {
    set(&app, &uri, item(&uri, &app)?, user(&uri, &app)?, true).await
}

/// Unlike an item. Idempotent.
#[utoipa::path(delete, path = "/likes/{item}/users/{user}", tag = "likes",
    params(("item" = schema::Item, Path), ("user" = schema::User, Path),
        ("exact" = Option<bool>, Query, description = "answer with the total, this unlike included")),
    responses((status = 200, body = LikeAnswer, description = "decided"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn unlike(
    _permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<LikeAnswer>, Problem> {
    set(&app, &uri, item(&uri, &app)?, user(&uri, &app)?, false).await
}

/// Like an item, for clients that post. The same as `PUT`.
#[utoipa::path(post, path = "/likes/{item}", tag = "likes",
    params(("item" = schema::Item, Path),
        ("exact" = Option<bool>, Query, description = "answer with the total, this like included")),
    request_body = LikeBody,
    responses((status = 200, body = LikeAnswer, description = "decided"),
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn post_like(
    permit: Permit<Write>,
    State(app): State<App>,
    Item(item): Item,
    uri: Uri,
    body: Body,
) -> Result<Json<LikeAnswer>, Problem> {
    let user = LikeBody::user(&body, &app)?;
    permit.is(user.as_str(), "userId")?;
    set(&app, &uri, item, user, true).await
}

/// Whether a user likes an item: the owner's word.
#[utoipa::path(get, path = "/likes/{item}/users/{user}", tag = "likes",
    params(("item" = schema::Item, Path), ("user" = schema::User, Path)),
    responses((status = 200, body = LikedAnswer, description = "the owner's word"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn liked(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<LikedAnswer>, Problem> {
    let (item, user) = (item(&uri, &app)?, user(&uri, &app)?);
    let liked = app.shards.liked(user.clone(), vec![item.clone()]).await?.contains(&true);
    Ok(Json(LikedAnswer { item: item.to_string(), user: user.to_string(), liked }))
}

/// An item's total: rolled up with its age, or exact.
#[utoipa::path(get, path = "/likes/{item}", operation_id = "item_total", tag = "likes",
    params(("item" = schema::Item, Path), ("exact" = Option<bool>, Query, description = "ask every shard")),
    responses((status = 200, body = TotalAnswer, description = "the total"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn total(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TotalAnswer>, Problem> {
    let items = [item(&uri, &app)?];
    let exact = Query::parse(uri.query())?.flag("exact")?;
    let answer = totals_of(&app, &items, exact).await?.pop();
    answer.map(Json).ok_or_else(Problem::not_found)
}

/// Many totals, and whether a user likes each, in one call.
#[utoipa::path(get, path = "/likes", operation_id = "item_totals", tag = "likes",
    params(("item" = schema::Items, Query, description = "repeated, up to likes.max_items_per_read times"),
        ("user" = Option<schema::User>, Query, description = "say of each item whether this user likes it"),
        ("exact" = Option<bool>, Query, description = "ask every shard")),
    responses((status = 200, body = TotalsAnswer, description = "the totals, in the order of the question"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn totals(
    permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TotalsAnswer>, Problem> {
    let query = Query::parse(uri.query())?;
    let exact = query.flag("exact")?;
    let user = query.one("user")?.map(|user| UserId::parse(user, app.limits.max_user_bytes));
    let user = user.map(|user| user.ok_or_else(|| invalid_user(&app))).transpose()?;
    let items = items(&query, &app)?;
    feed(&app, &permit, &items, user, exact).await
}

/// The items of a query, at least one.
pub(super) fn items(query: &Query<'_>, app: &App) -> Result<Vec<ItemId>, Problem> {
    let parse = |item| ItemId::parse(item, app.limits.max_item_bytes).ok_or_else(|| invalid_item(app));
    let max = app.limits.max_items_per_read;
    let items = query.all("item").take(max + 1).map(parse).collect::<Result<Vec<_>, _>>()?;
    if items.is_empty() || items.len() > max {
        return Err(
            Problem::bad_request("invalid_query", format!("give `item` 1 to {max} times")).of_field("item")
        );
    }
    Ok(items)
}

/// Totals, and whether a user likes each: a part of a long list at a time, so that it holds up no partition.
pub(super) async fn feed(
    app: &App,
    permit: &Permit<Read>,
    items: &[ItemId],
    user: Option<UserId>,
    exact: bool,
) -> Result<Json<TotalsAnswer>, Problem> {
    if let Some(asker) = permit.user() {
        user.iter().try_for_each(|user| asker.is(user.as_str(), Some("user")))?;
        items.iter().try_for_each(|item| asker.reaches(Feature::Likes, item.as_str()))?;
    }
    let mut answers = Vec::with_capacity(items.len());
    for part in items.chunks(app.limits.max_items_per_read) {
        let mut totals = totals_of(app, part, exact).await?;
        if let Some(user) = &user {
            let liked = app.shards.liked(user.clone(), part.to_vec()).await?;
            totals.iter_mut().zip(liked).for_each(|(total, liked)| total.liked = Some(liked));
        }
        answers.append(&mut totals);
    }
    Ok(Json(TotalsAnswer { items: answers }))
}

pub(super) async fn totals_of(app: &App, items: &[ItemId], exact: bool) -> Result<Vec<TotalAnswer>, Problem> {
    let answer = |item: &ItemId, total, as_of, version| TotalAnswer {
        item: item.to_string(),
        total,
        exact,
        as_of,
        age_ms: (app.clock.now_ms() - as_of).max(0),
        version,
        liked: None,
    };
    if exact {
        let as_of_ms = app.clock.now_ms();
        let totals = app.shards.totals(items).await?;
        return Ok(items
            .iter()
            .zip(totals)
            .map(|(item, total)| answer(item, total, as_of_ms, None))
            .collect());
    }
    let rolled_up = app.summary.get(items).await?;
    let word = |(item, of): (&ItemId, RolledUp)| answer(item, of.total, of.as_of_ms, Some(of.version));
    Ok(items.iter().zip(rolled_up).map(word).collect())
}

/// Delete an item and its likes. Idempotent.
#[utoipa::path(delete, path = "/likes/{item}", operation_id = "delete_item", tag = "likes",
    params(("item" = schema::Item, Path)),
    responses((status = 200, body = DeletedAnswer, description = "deleted, or it was not there"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn delete(
    _permit: Permit<Admin>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<DeletedAnswer>, Problem> {
    let item = item(&uri, &app)?;
    let deleted = app.rollup.delete(item.clone()).await?;
    Ok(Json(DeletedAnswer { item: item.to_string(), deleted }))
}
