//! The routes of reservations.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::{Permit, Read, Write};
use super::body::Body;
use super::path::{Workshop, workshop};
use super::problem::Problem;
use super::schema;
use crate::reservations::command::Reserved;
use crate::reservations::{RequestId, Seats};
use crate::store::reservations::Status;

/// A request for seats. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ReservationBody<'a> {
    #[serde(rename = "requestId", borrow)]
    #[schema(value_type = schema::RequestId, required)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = schema::Seats, required)]
    seats: Option<&'a RawValue>,
}

impl ReservationBody<'_> {
    pub(super) fn parse(body: &Body, app: &App) -> Result<(RequestId, Seats), Problem> {
        let invalid = || {
            Problem::bad_request(
                "invalid_reservation",
                "a reservation is an object with `requestId` (^[a-z0-9][a-z0-9-]{2,47}$) and `seats`",
            )
        };
        let reservation: ReservationBody<'_> = body.object(invalid)?;
        let request = reservation.request_id.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        let request = request.and_then(|request| RequestId::parse(&request));
        let request = request.ok_or_else(|| invalid().of_field("requestId"))?;
        let max = app.limits.max_seats_per_request;
        let seats = reservation.seats.and_then(|json| Seats::parse(json.get(), max));
        let detail = || format!("`seats` is a whole number from 1 to {max}");
        let seats =
            seats.ok_or_else(|| Problem::bad_request("invalid_reservation", detail()).of_field("seats"))?;
        Ok((request, seats))
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
    #[schema(schema_with = schema::decision)]
    pub status: &'static str,
    /// The workshop's capacity now.
    #[schema(minimum = 0)]
    pub capacity: i64,
    /// Seats taken just after the first decision.
    #[schema(minimum = 0)]
    pub reserved: i64,
    /// Whether this repeats an earlier decision.
    pub replayed: bool,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schema::reason, required = false)]
    pub reason: Option<&'static str>,
}

/// A workshop's state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    #[schema(minimum = 0)]
    capacity: i64,
    #[schema(minimum = 0)]
    reserved: i64,
    #[schema(minimum = 0)]
    accepted_requests: i64,
    #[schema(minimum = 0)]
    rejected_requests: i64,
    #[schema(minimum = 0)]
    accepted_seats: i64,
}

/// Take seats, all of them or none. The same `requestId` again gets the first answer and takes nothing.
#[utoipa::path(post, path = "/workshops/{workshop}/reservations", tag = "reservations",
    params(("workshop" = schema::Workshop, Path)),
    request_body = ReservationBody,
    responses(
        (status = 201, body = ReservationAnswer, description = "accepted"),
        (status = 409, body = ReservationAnswer, description = "rejected"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "request_id_reused"),
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn reserve(
    _permit: Permit<Write>,
    State(app): State<App>,
    Workshop(workshop): Workshop,
    body: Body,
) -> Result<(StatusCode, Json<ReservationAnswer>), Problem> {
    let (request, seats) = ReservationBody::parse(&body, &app)?;
    match app.workshops.reserve(workshop.clone(), request.clone(), seats).await? {
        Reserved::Decided { status, capacity, reserved, replayed } => {
            let (code, reason) = match status {
                Status::Accepted => (StatusCode::CREATED, None),
                Status::Rejected => (StatusCode::CONFLICT, Some("not_enough_seats")),
            };
            let answer = ReservationAnswer {
                workshop: workshop.as_str().to_owned(),
                request_id: request.as_str().to_owned(),
                seats: seats.get(),
                status: status.as_str(),
                capacity,
                reserved,
                replayed,
                reason,
            };
            Ok((code, Json(answer)))
        }
        Reserved::Reused { first_seats } => {
            let detail = format!("this requestId was first used with {first_seats} seats");
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "request_id_reused", detail).of_field("seats"))
        }
    }
}

/// A workshop's state now. One that nobody has reserved in shows the defaults, and nothing is stored.
#[utoipa::path(get, path = "/workshops/{workshop}/status", tag = "reservations",
    params(("workshop" = schema::Workshop, Path)),
    responses((status = 200, body = StatusAnswer, description = "its state"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn status(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<StatusAnswer>, Problem> {
    let name = workshop(&uri)?;
    let workshop = app.workshops.status(name.clone()).await?;
    Ok(Json(StatusAnswer {
        workshop: name.as_str().to_owned(),
        capacity: workshop.capacity,
        reserved: workshop.reserved,
        accepted_requests: workshop.accepted_requests,
        rejected_requests: workshop.rejected_requests,
        accepted_seats: workshop.accepted_seats,
    }))
}
