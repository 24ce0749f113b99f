//! What became of totals: an item's history, and what gains most.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::auth::{Permit, Read};
use super::path::item;
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::likes::rollup::past::{NoHistory, Ranking};
use crate::store::history::{Bucket, Ranked, Step, Window};

/// An item's history: every bucket from `from` to before `to`, those without a change too.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistoryAnswer {
    #[schema(value_type = schema::Item)]
    item: String,
    #[schema(schema_with = schema::step)]
    step: &'static str,
    /// When the first bucket begins; ms since 1970.
    #[schema(minimum = 0)]
    from: i64,
    /// When the last one ends.
    #[schema(minimum = 0)]
    to: i64,
    /// Everything acknowledged before this time is counted; ms since 1970. The bucket that it lies in has not ended.
    as_of: i64,
    /// How long ago that was, in ms.
    #[schema(minimum = 0)]
    age_ms: i64,
    /// In order.
    buckets: Vec<BucketAnswer>,
}

/// A stretch of time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BucketAnswer {
    /// When it begins; ms since 1970.
    #[schema(minimum = 0)]
    at: i64,
    /// By how much the total changed in it; 0 if it did not.
    gained: i64,
    /// The total at its end.
    total: i64,
}

/// Items, the first first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrendingAnswer {
    #[schema(schema_with = schema::window)]
    window: &'static str,
    /// What was rolled up from this time on counts; ms since 1970. Not of `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    from: Option<i64>,
    /// Everything acknowledged before this time is counted; ms since 1970.
    as_of: i64,
    /// How long ago that was, in ms.
    #[schema(minimum = 0)]
    age_ms: i64,
    /// No item that is left out for want of places has gained more than this: 0 where all are ranked, which they are
    /// as long as no more than `rollup.trending_items` changed in the window. Not of `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    missed: Option<i64>,
    /// By `gained`, or of `all` by `total`; equal ones by name, byte by byte.
    items: Vec<RankedAnswer>,
}

/// An item in a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RankedAnswer {
    #[schema(value_type = schema::Item)]
    item: String,
    /// By how much its total grew in the window, at least 1. Not of `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    gained: Option<i64>,
    total: i64,
}

/// An item's history, in buckets of a minute, an hour or a day (UTC).
///
/// Rolled up: a like counts in the bucket in which the roll-up carried it. Without `from` and `to`: the last 60 minutes, 24
/// hours or 30 days. What is older than is kept (`rollup.history_minutes`, `…_hours`, `…_days`), and what has not begun, is
/// left out.
#[utoipa::path(get, path = "/likes/{item}/history", operation_id = "item_history", tag = "likes",
    params(("item" = schema::Item, Path),
        ("step" = schema::Step, Query, description = "the length of a bucket"),
        ("from" = Option<schema::Time>, Query, description = "the first bucket is the one that this lies in"),
        ("to" = Option<schema::Time>, Query, description = "the last bucket begins before this")),
    responses((status = 200, body = HistoryAnswer, description = "the buckets"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn history(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<HistoryAnswer>, Problem> {
    let item = item(&uri, &app)?;
    let query = Query::parse(uri.query())?;
    let step = query.one("step")?.and_then(Step::parse).ok_or_else(|| {
        Problem::bad_request("invalid_query", "`step` is minute, hour or day").of_field("step")
    })?;
    let (from, to) = (query.time("from")?, query.time("to")?);
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
    {
        return Err(Problem::bad_request("invalid_query", "`from` is before `to`").of_field("from"));
    }
    let most = app.limits.max_history_buckets;
    let history =
        app.past.history(item.clone(), step, (from, to), most).await.map_err(|none| match none {
            NoHistory::TooManyBuckets(asked) => {
                let detail =
                    format!("that is {asked} buckets, and an answer has at most {most}: ask for less time");
                Problem::bad_request("too_many_buckets", detail).of_field("from")
            }
            NoHistory::Refusal(refusal) => refusal.into(),
        })?;
    let word = |Bucket { at_ms, gained, total }| BucketAnswer { at: at_ms, gained, total };
    Ok(Json(HistoryAnswer {
        item: item.to_string(),
        step: step.word(),
        from: history.from_ms,
        to: history.to_ms,
        as_of: history.as_of_ms,
        age_ms: (app.clock.now_ms() - history.as_of_ms).max(0),
        buckets: history.buckets.into_iter().map(word).collect(),
    }))
}

/// The items that gained most in an hour, a day or a week, or ever.
///
/// In the last hour (whole minutes), in the last 24 hours or 7 days (whole hours), or ever, which are those with the largest
/// totals. Exact as of `asOf` down to gains above `missed`; items that gained nothing are left out.
#[utoipa::path(get, path = "/trending", tag = "likes",
    params(("window" = Option<schema::Window>, Query, description = "`24h` if it is not said"),
        ("limit" = Option<schema::TrendingLimit>, Query, description = "how many items")),
    responses((status = 200, body = TrendingAnswer, description = "the items"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn trending(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TrendingAnswer>, Problem> {
    let query = Query::parse(uri.query())?;
    let ranking = match query.one("window")? {
        None => Some(Ranking::Gains(Window::Day)),
        Some(ALL) => Some(Ranking::Totals),
        Some(word) => Window::parse(word).map(Ranking::Gains),
    };
    let ranking = ranking.ok_or_else(|| {
        Problem::bad_request("invalid_query", "`window` is 1h, 24h, 7d or all").of_field("window")
    })?;
    let top = app.past.top(ranking, query.limit(app.limits.max_trending)?).await?;
    let gains = matches!(ranking, Ranking::Gains(_));
    let word = |Ranked { item, gained, total }| RankedAnswer { item, gained: gains.then_some(gained), total };
    Ok(Json(TrendingAnswer {
        window: match ranking {
            Ranking::Gains(window) => window.word(),
            Ranking::Totals => ALL,
        },
        from: top.from_ms,
        as_of: top.as_of_ms,
        age_ms: (app.clock.now_ms() - top.as_of_ms).max(0),
        missed: gains.then_some(top.missed),
        items: top.items.into_iter().map(word).collect(),
    }))
}

/// The window that has no beginning.
const ALL: &str = "all";

/// Every word that a window can be.
pub(super) fn windows() -> Vec<&'static str> {
    Window::ALL.into_iter().map(Window::word).chain([ALL]).collect()
}
