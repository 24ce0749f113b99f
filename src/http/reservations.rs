//! Asking for seats.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::{Permit, Write};
use super::beyond::Beyond;
use super::body::Body;
use super::fields::{flag, hold_ms, holder, text};
use super::path::Workshop;
use super::problem::Problem;
use super::{own, schema};
use crate::config::Reservations as Limits;
use crate::names::REQUEST_ID;
use crate::reservations::command::{First, Reserved, Wanted, WantedTerms};
use crate::reservations::{RequestId, Seats, WorkshopName};
use crate::store::bookings::Reason;

const INVALID: &str = "invalid_reservation";

/// A request for seats. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReservationBody<'a> {
    #[serde(rename = "requestId", borrow)]
    #[schema(value_type = schema::RequestId, required)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = schema::Seats, required)]
    seats: Option<&'a RawValue>,
    /// Hold the seats, to confirm them later, instead of taking them for good.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    hold: Option<&'a RawValue>,
    /// How long a hold lives, in ms from this request; absent, the workshop's `holdTtlMs`. Without `hold` it has no effect.
    /// What replaces a hold goes on with its time, which has an end.
    #[serde(rename = "ttlMs", borrow)]
    #[schema(value_type = Option<schema::TtlMs>)]
    ttl_ms: Option<&'a RawValue>,
    /// For whom the seats are.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Holder>)]
    holder: Option<&'a RawValue>,
    /// Wait if there are not enough seats and the workshop has a waiting list.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    waitlist: Option<&'a RawValue>,
    /// A request of this workshop whose seats are given up for these, in one step. Refused, it keeps them; what
    /// replaces something never waits. While others wait, only a holder may exchange its own seats, for no more.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::RequestId>)]
    replaces: Option<&'a RawValue>,
}

impl ReservationBody<'_> {
    pub(super) fn parse(body: &Body, app: &App) -> Result<(RequestId, Wanted, Beyond), Problem> {
        let invalid = || {
            let detail = format!("a reservation is an object with `requestId` ({REQUEST_ID}) and `seats`");
            Problem::bad_request(INVALID, detail)
        };
        let reservation: ReservationBody<'_> = body.object(invalid)?;
        let request = reservation.request_id.and_then(text).and_then(|request| RequestId::parse(&request));
        let request = request.ok_or_else(|| invalid().of_field("requestId"))?;
        let mut beyond = Beyond::default();
        let max = app.limits.max_seats_per_request;
        let seats = |max| reservation.seats.and_then(|json| Seats::parse(json.get(), max));
        let detail =
            || format!("`seats` is a whole number from 1 to {max} (reservations.max_seats_per_request)");
        let today = seats(max).ok_or_else(|| Problem::bad_request(INVALID, detail()).of_field("seats"));
        let seats = beyond.allow(today, || seats(Limits::MOST_SEATS_PER_REQUEST))?;
        let replaces = match reservation.replaces {
            None => None,
            Some(json) => {
                let replaced = text(json).and_then(|request| RequestId::parse(&request));
                Some(replaced.ok_or_else(|| invalid().of_field("replaces"))?)
            }
        };
        let terms = WantedTerms {
            hold: flag(INVALID, "hold", reservation.hold)?,
            ttl_ms: hold_ms(INVALID, reservation.ttl_ms, app, &mut beyond)?,
            holder: holder(INVALID, reservation.holder, app, &mut beyond)?,
            waitlist: flag(INVALID, "waitlist", reservation.waitlist)?,
            replaces,
            replaces_own: false,
            of_set: false,
            set_ends_at_ms: None,
        };
        let terms = (terms != WantedTerms::default()).then(|| Box::new(terms));
        let wanted = Wanted { seats, terms, beyond_limits: beyond.is_any() };
        Ok((request, wanted, beyond))
    }
}

/// A decision, first or repeated.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReservationAnswer {
    #[schema(value_type = schema::Workshop)]
    pub workshop: String,
    #[schema(value_type = schema::RequestId)]
    pub request_id: String,
    #[schema(value_type = schema::Seats)]
    pub seats: u32,
    /// The first decision.
    #[schema(value_type = schema::Decision)]
    pub status: &'static str,
    /// The workshop's capacity now.
    #[schema(minimum = 0)]
    pub capacity: i64,
    /// Seats taken just after the first decision.
    #[schema(minimum = 0)]
    pub reserved: i64,
    /// Whether this repeats an earlier decision.
    pub replayed: bool,
    /// Why it was rejected, or passed over when it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Reason, required = false)]
    pub reason: Option<&'static str>,
    /// Where the request is now; absent if it was accepted or rejected and that is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::BookingState, required = false)]
    pub state: Option<&'static str>,
    /// When its hold or offer ends; ms since 1970. From this very millisecond on it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expires_at: Option<i64>,
    /// Its place on the waiting list; 1 is next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub position: Option<i64>,
}

/// Take or hold seats, all of them or none. The same `requestId` again gets the first answer and takes nothing.
#[utoipa::path(post, path = "/workshops/{workshop}/reservations", tag = "reservations",
    params(("workshop" = schema::Workshop, Path)),
    request_body = ReservationBody,
    responses(
        (status = 201, body = ReservationAnswer, description = "accepted, or held"),
        (status = 202, body = ReservationAnswer, description = "waiting"),
        (status = 409, body = ReservationAnswer, description = "rejected"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "request_id_reused"),
        super::openapi::Gone,
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn reserve(
    permit: Permit<Write>,
    State(app): State<App>,
    Workshop(workshop): Workshop,
    body: Body,
) -> Result<(StatusCode, Json<ReservationAnswer>), Problem> {
    let (request, mut wanted, beyond) = ReservationBody::parse(&body, &app)?;
    if let Some(user) = permit.user() {
        let terms = wanted.terms.get_or_insert_default();
        terms.holder = Some(own::holder(user, terms.holder.as_ref(), INVALID, &app)?);
        terms.replaces_own = true;
    }
    let seats = wanted.seats.get();
    let reserved = app.workshops.request(workshop.clone(), request.clone(), wanted).await?;
    if permit.user().is_some() && matches!(reserved, Reserved::Reused { is_own: false, .. }) {
        return Err(own::taken());
    }
    answer(&workshop, &request, seats, reserved, beyond)
}

fn answer(
    workshop: &WorkshopName,
    request: &RequestId,
    seats: u32,
    reserved: Reserved,
    beyond: Beyond,
) -> Result<(StatusCode, Json<ReservationAnswer>), Problem> {
    match reserved {
        Reserved::Decided { status, reason, capacity, reserved, replayed, life } => {
            let code = match status {
                First::Accepted | First::Held => StatusCode::CREATED,
                First::Waiting => StatusCode::ACCEPTED,
                First::Rejected => StatusCode::CONFLICT,
            };
            let answer = ReservationAnswer {
                workshop: workshop.as_str().to_owned(),
                request_id: request.as_str().to_owned(),
                seats,
                status: status.as_str(),
                capacity,
                reserved,
                replayed,
                reason: reason.map(Reason::as_str),
                state: life.map(|life| life.state.as_str()),
                expires_at: life.and_then(|life| life.expires_at_ms),
                position: life.and_then(|life| life.position),
            };
            Ok((code, Json(answer)))
        }
        Reserved::Reused { field, first_seats, .. } => {
            let detail = match field {
                "seats" => format!("this requestId was first used with {first_seats} seats"),
                _ => format!("this requestId was first used with another `{field}`"),
            };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "request_id_reused", detail).of_field(field))
        }
        Reserved::HolderRequired => {
            let detail = "this workshop limits the seats of a holder: name the `holder`";
            Err(Problem::bad_request("holder_required", detail).of_field("holder"))
        }
        Reserved::TooManySeats { max } => {
            let detail = format!("`seats` is a whole number from 1 to {max} in this workshop");
            Err(Problem::bad_request(INVALID, detail).of_field("seats"))
        }
        Reserved::BeyondLimits => {
            Err(beyond.problem(|| Problem::bad_request(INVALID, "the settings do not allow that much")))
        }
        Reserved::ReplacesPartOfSet => {
            let detail = "a line of a set is not exchanged alone: cancel the set";
            Err(Problem::conflict("part_of_set", detail).of_field("replaces"))
        }
        Reserved::NothingToReplace => {
            let detail = "there is no such request to replace";
            Err(Problem::new(StatusCode::NOT_FOUND, "not_found", detail).of_field("replaces"))
        }
    }
}
