//! A workshop's log as it grows, for whoever listens (server-sent events).
//!
//! A stream reads the log page by page, after its own last event, and waits where there is no more: a slow
//! reader holds up nobody and costs no memory, and one that comes back goes on where it was.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::auth::{Permit, Read};
use super::path::Workshop;
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::partition::Refusal;
use crate::reservations::command::LogPage;
use crate::reservations::feeds::Listener;
use crate::reservations::{Refused, WorkshopName};
use crate::store::bookings::{Event, EventKind, Reason};

/// Events read from the log at a time.
const PAGE: u32 = 256;
/// Before a partition that refused is asked again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Something that happened.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventAnswer {
    /// Its number in the workshop's log; absent in a request's history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    seq: Option<i64>,
    /// When; ms since 1970.
    at: i64,
    /// What.
    #[schema(schema_with = schema::event)]
    event: &'static str,
    /// To which request; absent in a request's history, and where it is the workshop's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::RequestId, required = false)]
    request_id: Option<String>,
    /// The request's seats; of `configured`, the capacity; of `deleted`, none.
    #[schema(minimum = 0)]
    seats: i64,
    /// Seats taken just after.
    #[schema(minimum = 0)]
    reserved: i64,
    /// Why, of `rejected` and `skipped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Reason, required = false)]
    reason: Option<&'static str>,
    /// When the hold or offer ends; ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<i64>,
}

impl EventAnswer {
    /// As in a workshop's log.
    pub(super) fn of(event: &Event) -> Self {
        Self {
            seq: Some(event.seq),
            request_id: event.request.as_deref().map(str::to_owned),
            ..Self::of_a_request(event)
        }
    }

    /// As in the history of the request that it is about.
    pub(super) fn of_a_request(event: &Event) -> Self {
        Self {
            seq: None,
            at: event.at_ms,
            event: event.kind.as_str(),
            request_id: None,
            seats: event.seats,
            reserved: event.reserved,
            reason: event.reason.map(Reason::as_str),
            expires_at: event.expires_at_ms,
        }
    }
}

/// Where a stream is: which of the workshops that had this name, and its last event.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    key: i64,
    seq: i64,
}

impl Position {
    /// The `Last-Event-ID` of a client that comes back.
    fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let Some(id) = headers.get("last-event-id") else { return Ok(None) };
        let parse = |id: &str| {
            let (key, seq) = id.split_once('-')?;
            Some(Self { key: key.parse().ok()?, seq: seq.parse().ok()? })
        };
        let position = id.to_str().ok().and_then(parse).filter(|position| position.seq >= 0);
        position.map(Some).ok_or_else(invalid_event_id)
    }
}

fn invalid_event_id() -> Problem {
    Problem::bad_request("invalid_event_id", "Last-Event-ID is the id of an event of this stream")
}

struct Stand {
    app: App,
    workshop: WorkshopName,
    listener: Listener,
    position: Position,
    read: VecDeque<Event>,
    ended: bool,
}

/// Everything that happens in a workshop, in order, each after its commit.
///
/// From the beginning of its log, or after `Last-Event-ID`, or with `from=now` from now on. An `id` names its event for
/// `Last-Event-ID`. The last event of a workshop that is deleted is `deleted`.
#[utoipa::path(get, path = "/workshops/{workshop}/events", operation_id = "workshop_events", tag = "workshops",
    params(("workshop" = schema::Workshop, Path),
        ("from" = Option<schema::From>, Query, description = "where to begin without `Last-Event-ID`"),
        ("Last-Event-ID" = Option<schema::EventId>, Header, description = "the last event that was seen")),
    responses((status = 200, body = EventAnswer, content_type = "text/event-stream",
            description = "a stream; each event's `data` is of this shape"),
        super::openapi::Gone, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn stream(
    _permit: Permit<Read>,
    State(app): State<App>,
    Workshop(workshop): Workshop,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Problem> {
    let query = Query::parse(uri.query())?;
    let from_now = match query.one("from")? {
        None | Some("start") => false,
        Some("now") => true,
        Some(_) => {
            let detail = "`from` is start or now";
            return Err(Problem::bad_request("invalid_query", detail).of_field("from"));
        }
    };
    let resumed = Position::of(&headers)?;
    // Before the log is read: what happens in between is heard of.
    let listener = app.workshops.feeds().listen(workshop.shared(), app.limits.max_event_streams);
    let listener = listener.ok_or_else(|| {
        let detail = "too many event streams are open (reservations.max_event_streams)";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
    })?;
    let page = app.workshops.events(workshop.clone(), i64::MAX, 1).await?;
    let now = page.map_or_else(Position::default, |page| Position { key: page.key, seq: page.last_event });
    let position = match resumed {
        // Of this log, and not yet written: whoever saw that event saw another log.
        Some(position) if position.key == now.key && position.seq > now.seq => return Err(invalid_event_id()),
        Some(position) => position,
        None if from_now => now,
        None => Position { seq: 0, ..now },
    };
    let keep_alive = KeepAlive::new().interval(app.limits.event_keepalive);
    let stand = Stand { app, workshop, listener, position, read: VecDeque::new(), ended: false };
    let stream = stream::unfold(stand, async |mut stand| {
        let event = stand.next().await?;
        Some((Ok(event), stand))
    });
    Ok(Sse::new(stream).keep_alive(keep_alive))
}

impl Stand {
    /// The next event, once there is one; `None` when the stream ends.
    async fn next(&mut self) -> Option<sse::Event> {
        let draining = self.app.draining.clone();
        while !self.ended {
            if let Some(event) = self.read.pop_front() {
                self.position.seq = event.seq;
                return Some(self.word(&event));
            }
            match self.app.workshops.events(self.workshop.clone(), self.position.seq, PAGE).await {
                Ok(Some(page)) if page.key != self.position.key => {
                    // Another workshop of this name: its log begins anew.
                    self.position = Position { key: page.key, seq: 0 };
                    continue;
                }
                Ok(Some(LogPage { events, .. })) if !events.is_empty() => {
                    self.read = events.into();
                    continue;
                }
                Ok(_) => {}
                Err(Refused::Gone(gone)) => {
                    self.ended = true;
                    // No seats are left of it, and none are taken.
                    let at = gone.deleted_at_ms;
                    let data = format!(r#"{{"at":{at},"event":"deleted","seats":0,"reserved":0}}"#);
                    return Some(sse::Event::default().event("deleted").data(data));
                }
                Err(Refused::Refusal(Refusal::Unavailable)) if draining.is_cancelled() => return None,
                Err(Refused::Refusal(_)) => {
                    tokio::select! {
                        () = tokio::time::sleep(PAUSE) => continue,
                        () = draining.cancelled() => return None,
                    }
                }
            }
            tokio::select! {
                () = self.listener.heard() => {}
                () = draining.cancelled() => return None,
            }
        }
        None
    }

    fn word(&self, event: &Event) -> sse::Event {
        let Position { key, seq } = self.position;
        let data = serde_json::to_string(&EventAnswer::of(event)).unwrap_or_default();
        sse::Event::default().id(format!("{key}-{seq}")).event(event.kind.as_str()).data(data)
    }
}

/// Every word that an event's name can be.
pub(super) fn words() -> Vec<&'static str> {
    EventKind::ALL.into_iter().map(EventKind::as_str).chain(["deleted"]).collect()
}
