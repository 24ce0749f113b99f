//! Requests looked up: one with its history, or a page of them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::auth::{Permit, Read};
use super::events::EventAnswer;
use super::fields::invalid_holder;
use super::own::no_request;
use super::path::{Workshop, request, workshop};
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::reservations::command::Question;
use crate::reservations::decide::request::{First, first_word};
use crate::reservations::{HolderName, RequestId};
use crate::store::bookings::{Event, EventKind, Listed, Reason, State as BookingState};
use crate::store::reservations::Status;

/// A request as it is now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookingAnswer {
    #[schema(value_type = schema::RequestId)]
    request_id: String,
    /// Seats that it takes, waits for, or had last.
    #[schema(minimum = 1)]
    seats: i64,
    /// The first decision.
    #[schema(value_type = schema::Decision)]
    status: &'static str,
    #[schema(value_type = schema::BookingState)]
    state: &'static str,
    /// Why it was rejected, or passed over when it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Reason, required = false)]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Holder, required = false)]
    holder: Option<String>,
    /// When its hold or offer ends; ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<i64>,
    /// Whether it is a line of a set, which alone decides for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    part_of_set: Option<bool>,
    /// When it was first decided; ms since 1970.
    decided_at: i64,
}

impl BookingAnswer {
    fn of(listed: &Listed, now_ms: i64) -> Self {
        let state = listed.state_at(now_ms);
        let live = matches!(state, BookingState::Held | BookingState::Offered);
        let booking = listed.booking.as_ref();
        let status = first_word(listed.attempt, booking);
        let refused_for = listed.attempt.reason.unwrap_or(Reason::NotEnoughSeats);
        let reason = Some(refused_for).filter(|_| status == First::Rejected).or(listed.skipped_for);
        Self {
            request_id: listed.request.to_string(),
            seats: booking.map_or(listed.attempt.seats, |booking| booking.seats),
            status: status.as_str(),
            state: state.as_str(),
            reason: reason.map(Reason::as_str),
            holder: listed.holder.clone(),
            expires_at: booking.and_then(|booking| booking.expires_at_ms).filter(|_| live),
            part_of_set: booking.is_some_and(|booking| booking.terms.of_set).then_some(true),
            decided_at: listed.attempt.decided_at_ms,
        }
    }
}

/// A page of requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BookingsAnswer {
    /// By id. There may be fewer than asked for, and still more to come.
    reservations: Vec<BookingAnswer>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::RequestId, required = false)]
    cursor: Option<String>,
}

/// A workshop's requests by id, a page at a time.
///
/// A request that comes while pages are read never moves another one out of them.
#[utoipa::path(get, path = "/workshops/{workshop}/reservations", operation_id = "list_reservations", tag = "reservations",
    params(("workshop" = schema::Workshop, Path),
        ("state" = Option<schema::BookingState>, Query, description = "those in this state"),
        ("holder" = Option<schema::Holder>, Query, description = "those of this holder"),
        ("cursor" = Option<schema::RequestId>, Query, description = "of the page before"),
        ("limit" = Option<schema::PageLimit>, Query, description = "requests that a page looks at")),
    responses((status = 200, body = BookingsAnswer, description = "a page"),
        super::openapi::Gone, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn list(
    _permit: Permit<Read>,
    State(app): State<App>,
    Workshop(workshop): Workshop,
    uri: Uri,
) -> Result<Json<BookingsAnswer>, Problem> {
    let query = Query::parse(uri.query())?;
    let invalid = |field: &'static str, detail: &str| {
        Problem::bad_request("invalid_query", format!("`{field}` is {detail}")).of_field(field)
    };
    let state = match query.one("state")? {
        None => None,
        Some(word) => {
            let state = BookingState::parse(word);
            Some(state.ok_or_else(|| invalid("state", "one of the states that reservations have"))?)
        }
    };
    let holder = match query.one("holder")? {
        None => None,
        Some(name) => {
            let holder = HolderName::parse(name, app.limits.max_holder_bytes);
            Some(holder.ok_or_else(|| invalid_holder("invalid_query", &app))?)
        }
    };
    let after = match query.one("cursor")? {
        None => String::new(),
        Some(cursor) => {
            let after = RequestId::parse(cursor);
            after.ok_or_else(|| invalid("cursor", "one that a page ended with"))?.as_str().to_owned()
        }
    };
    let limit = query.limit(app.limits.max_page)?;
    let (page, now_ms) = app.workshops.list(workshop, Question { state, holder, after, limit }).await?;
    let reservations = page.requests.iter().map(|listed| BookingAnswer::of(listed, now_ms)).collect();
    Ok(Json(BookingsAnswer { reservations, cursor: page.next }))
}

/// A request with everything that happened to it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ShownAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    #[serde(flatten)]
    booking: BookingAnswer,
    /// Its place on the waiting list; 1 is next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    position: Option<i64>,
    /// In order. The end of a hold comes in when it is written down, a little after it.
    history: Vec<EventAnswer>,
    /// Whether there is more than a thousand of it, and the oldest is left out; absent if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    truncated: Option<bool>,
}

/// A request as it is now, with its history.
#[utoipa::path(get, path = "/workshops/{workshop}/reservations/{requestId}", operation_id = "show_reservation", tag = "reservations",
    params(("workshop" = schema::Workshop, Path), ("requestId" = schema::RequestId, Path)),
    responses((status = 200, body = ShownAnswer, description = "the request"),
        super::openapi::Gone, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn show(
    permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ShownAnswer>, Problem> {
    let (name, request) = (workshop(&uri)?, request(&uri)?);
    let shown = app.workshops.show(name.clone(), request).await?.ok_or_else(no_request)?;
    if permit.user().is_some_and(|user| shown.listed.holder.as_deref() != Some(user.name())) {
        return Err(no_request());
    }
    let first = first_event(&shown.listed).filter(|_| !shown.truncated);
    let history = first.iter().chain(&shown.history).map(EventAnswer::of_a_request).collect();
    let booking = BookingAnswer::of(&shown.listed, shown.now_ms);
    Ok(Json(ShownAnswer {
        workshop: name.as_str().to_owned(),
        booking,
        position: shown.position,
        history,
        truncated: shown.truncated.then_some(true),
    }))
}

/// The event of a first decision that accepted or rejected: the log is not searched for it, because the
/// decision itself says the same.
fn first_event(listed: &Listed) -> Option<Event> {
    let attempt = listed.attempt;
    let kind = match first_word(attempt, listed.booking.as_ref()) {
        First::Accepted => EventKind::Accepted,
        First::Rejected => EventKind::Rejected,
        First::Held | First::Waiting => return None,
    };
    let rejected = attempt.status == Status::Rejected;
    Some(Event {
        seq: 0,
        at_ms: attempt.decided_at_ms,
        kind,
        request: None,
        seats: attempt.seats,
        reserved: attempt.reserved_after,
        reason: rejected.then(|| attempt.reason.unwrap_or(Reason::NotEnoughSeats)),
        expires_at_ms: None,
    })
}
