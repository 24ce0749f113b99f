//! The stream of a room as server-sent events, for `curl -N`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::Frame;

use super::told::RoomEvent;
use super::{listener, room};
use crate::http::App;
use crate::http::auth::{Key, Read};
use crate::http::ending::Stay;
use crate::http::openapi::{Refusals, Rejections, TooMany};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::schema;
use crate::rooms::admission::Membership;
use crate::rooms::close::Close;
use crate::rooms::link::Next;
use crate::rooms::types::Position;

/// Listen to a room. A reader is a connection, but not online.
#[utoipa::path(get, path = "/rooms/{room}/events", operation_id = "room_events", tag = "rooms",
    params(("room" = schema::Room, Path),
        ("presence" = Option<bool>, Query, description = "`false`: not who comes and goes"),
        ("raw" = Option<bool>, Query, description = "just the text of messages"),
        ("since" = Option<schema::Position>, Query, description = "`epoch:offset`: where it left off"),
        ("Last-Event-ID" = Option<schema::Position>, Header, description = "the same, as browsers say it")),
    responses((status = 200, body = RoomEvent, content_type = "text/event-stream",
            description = "a stream; the `data` of events is of this shape, but for the last one, `close`, and with `raw` it is \
                           the text of messages"),
        Rejections, TooMany, Refusals))]
pub(in crate::http) async fn events(
    key: Key<Read>,
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let room = room(&uri, &app)?;
    let query = Query::parse(uri.query())?;
    let (wishes, asked) = listener(&query, false)?;
    // A browser that comes back says where it left off by itself.
    let last = headers.get("last-event-id").map(where_it_left_off);
    let stay = key.permit.stay(&app)?;
    let membership = app.rooms.connect(&room, None, wishes, key.name.as_deref(), last.or(asked)).await;
    let membership = membership.map_err(|denied| app.denied(denied))?;
    // When the stream breaks, each reader comes back at a time of its own.
    let retry = format!("retry: {}\n\n", app.rooms.retry_ms(membership.link.id.0));
    let stream = Events { membership, stay, waiting: VecDeque::from([Bytes::from(retry)]), ended: None };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(stream)).into_response())
}

/// A browser that is told 400 never comes back; what is no position is one that cannot be gone on from.
fn where_it_left_off(id: &HeaderValue) -> Position {
    let position = id.to_str().ok().and_then(Position::parse);
    position.unwrap_or_else(|| Position { epoch: "".into(), offset: 0 })
}

struct Events {
    membership: Membership,
    stay: Option<Stay>,
    waiting: VecDeque<Bytes>,
    /// Why it ended, if its room has ended it.
    ended: Option<&'static str>,
}

impl Drop for Events {
    fn drop(&mut self) {
        self.membership.count_end(self.ended.unwrap_or("client"));
    }
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.stay.as_mut().is_some_and(|stay| stay.poll_ended(context).is_ready()) {
            this.stay = None;
            this.membership.link.close(Close::TokenExpired);
        }
        loop {
            if let Some(event) = this.waiting.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
            if this.ended.is_some() {
                return Poll::Ready(None);
            }
            match this.membership.link.poll_take(context, &mut this.waiting, None) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::Frames { .. }) => {}
                Poll::Ready(Next::Close(close)) => {
                    this.ended = Some(close.word());
                    this.waiting.push_back(close.event().into());
                }
            }
        }
    }
}
