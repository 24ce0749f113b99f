//! Items' totals as they change, for whoever listens (server-sent events).
//!
//! The bytes of an event are made once, by the roll-up, and go to every listener as they are. A browser opens few
//! connections to a host, so the items of a page share one.

use std::convert::Infallible;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, SelectAll, Stream, StreamExt};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::auth::policy::Feature;
use super::auth::{Permit, Read};
use super::ending::{Stay, token_ended};
use super::likes::items;
use super::path::item;
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::likes::ItemId;
use crate::likes::rollup::live::Listener;
use crate::rooms::close::Close;

const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// An item's total, in an event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TotalEvent {
    #[schema(value_type = schema::Item)]
    item: String,
    total: i64,
    /// Everything acknowledged before this time is counted; ms since 1970.
    as_of: i64,
    /// The roll-up run that last changed the total; never falls.
    version: u64,
}

struct Stand {
    app: App,
    listeners: Listeners,
    /// Milliseconds after which this listener is to come back when its stream has ended.
    retry_ms: u64,
    stay: Option<Stay>,
    greeted: bool,
    ended: bool,
}

/// Whom a stream listens with.
enum Listeners {
    One(Listener),
    Many(SelectAll<Pin<Box<dyn Stream<Item = Bytes> + Send>>>),
}

impl Listeners {
    async fn next(&mut self) -> Bytes {
        match self {
            Self::One(listener) => listener.next().await,
            // None of them ends.
            Self::Many(listeners) => listeners.next().await.unwrap_or(KEEP_ALIVE),
        }
    }
}

/// An item's total: at once, and after each run of the roll-up that changed it.
///
/// A change is told as one event however many likes there were.
/// Totals are absolute, so whoever is slow gets the newest one alone, and whoever comes back begins with the present one.
/// Events are `total`, `deleted` (the item and its likes were deleted, and this is what it has now; the stream goes on),
/// `restart` (the service stops: come back after `retry`) and `close` (the token has ended: come back with a new one).
#[utoipa::path(get, path = "/likes/{item}/events", operation_id = "item_events", tag = "likes",
    params(("item" = schema::Item, Path)),
    responses((status = 200, body = TotalEvent, content_type = "text/event-stream",
            description = "a stream; the `data` of `total` and `deleted` is of this shape"),
        super::openapi::Rejections, super::openapi::TooManyStreams, super::openapi::Refusals))]
pub(super) async fn stream(
    permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let item = item(&uri, &app)?;
    let stay = permit.stay(&app)?;
    let listener = listen(&app, &item).await?;
    let retry_ms = app.rooms.retry_ms(listener.number());
    Ok(answer(app, stay, Listeners::One(listener), retry_ms))
}

/// The totals of many items in one stream: each at once, and then as in the stream of one.
///
/// Each counts as a stream in `likes.max_event_streams`.
#[utoipa::path(get, path = "/batch/likes/events", operation_id = "items_events", tag = "likes",
    params(("item" = schema::Items, Query, description = "repeated, up to likes.max_items_per_read times")),
    responses((status = 200, body = TotalEvent, content_type = "text/event-stream",
            description = "a stream; the `data` of `total` and `deleted` is of this shape"),
        super::openapi::Rejections, super::openapi::TooManyStreams, super::openapi::Refusals))]
pub(super) async fn many(
    permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let items = items(&Query::parse(uri.query())?, &app)?;
    items.iter().try_for_each(|item| permit.reaches(Feature::Likes, item.as_str()))?;
    let stay = permit.stay(&app)?;
    let mut listeners = SelectAll::new();
    let mut retry_ms = 0;
    for item in &items {
        let listener = listen(&app, item).await?;
        retry_ms = app.rooms.retry_ms(listener.number());
        let events = stream::unfold(listener, async |mut listener| Some((listener.next().await, listener)));
        listeners.push(Box::pin(events) as _);
    }
    Ok(answer(app, stay, Listeners::Many(listeners), retry_ms))
}

async fn listen(app: &App, item: &ItemId) -> Result<Listener, Problem> {
    let listener = app.summary.listen(item, app.limits.max_total_streams).await?;
    listener.ok_or_else(|| {
        let detail = "too many streams of live totals are open (likes.max_event_streams)";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
    })
}

/// A stream; each listener comes back at a time of its own.
fn answer(app: App, stay: Option<Stay>, listeners: Listeners, retry_ms: u64) -> Response {
    let stand = Stand { app, listeners, retry_ms, stay, greeted: false, ended: false };
    let stream = stream::unfold(stand, async |mut stand| {
        let bytes = stand.next().await?;
        Some((Ok::<_, Infallible>(bytes), stand))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(stream)).into_response()
}

impl Stand {
    /// What goes out next, once there is something; `None` when the stream has ended.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(format!("retry: {}\n\n", self.retry_ms).into());
        }
        tokio::select! {
            biased;
            () = self.app.draining.cancelled() => {
                self.ended = true;
                let retry_ms = self.retry_ms;
                let data = format!(r#"{{"retryMs":{retry_ms}}}"#);
                Some(format!("retry: {retry_ms}\nevent: restart\ndata: {data}\n\n").into())
            }
            () = token_ended(&mut self.stay) => {
                self.ended = true;
                Some(Close::TokenExpired.event().into())
            }
            event = self.listeners.next() => Some(event),
            () = tokio::time::sleep(self.app.limits.total_keepalive) => Some(KEEP_ALIVE),
        }
    }
}
