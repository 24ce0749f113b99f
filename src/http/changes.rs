//! What can be done with a request that has seats: confirm, cancel, extend. Each may be repeated freely, and
//! then answers the same.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::{Admin, Permit, Write};
use super::body::Body;
use super::fields::{flag, whole};
use super::path::{request, workshop};
use super::problem::Problem;
use super::{own, schema};
use crate::reservations::command::{Change, Changed, Confirm};
use crate::reservations::decide::Wrong;

/// A confirmation. Other fields are ignored; no body at all confirms everything.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct ConfirmBody<'a> {
    /// Fewer than are held: the rest gets free.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Seats>)]
    seats: Option<&'a RawValue>,
    /// If the hold has ended, take the seats again, provided that they are free.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    reacquire: Option<&'a RawValue>,
}

/// An extension. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ExtendBody<'a> {
    /// How long the hold lives, in ms from its beginning, so that repeating this changes nothing.
    #[serde(rename = "ttlMs", borrow)]
    #[schema(value_type = schema::TtlMs, required)]
    ttl_ms: Option<&'a RawValue>,
}

impl ExtendBody<'_> {
    pub(super) fn parse(body: &Body, app: &App) -> Result<i64, Problem> {
        const INVALID: &str = "invalid_extension";
        let invalid =
            || Problem::bad_request(INVALID, "an extension is an object with `ttlMs`").of_field("ttlMs");
        let asked: ExtendBody<'_> = body.object(invalid)?;
        whole(INVALID, "ttlMs", asked.ttl_ms, (1, app.limits.max_hold_ms))?.ok_or_else(invalid)
    }
}

/// Where a request is now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    #[schema(value_type = schema::RequestId)]
    request_id: String,
    /// Its seats.
    #[schema(minimum = 1)]
    seats: i64,
    #[schema(value_type = schema::BookingState)]
    state: &'static str,
    /// When its hold or offer ends; ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<i64>,
}

async fn change<S>(
    app: &App,
    permit: &Permit<S>,
    uri: &Uri,
    change: Change,
) -> Result<Json<ChangeAnswer>, Problem> {
    let (workshop, request) = (workshop(uri)?, request(uri)?);
    let of = own::only_of(permit, own::no_request)?;
    match app.workshops.change(workshop.clone(), request.clone(), change, of).await? {
        Changed::Done(life) => Ok(Json(ChangeAnswer {
            workshop: workshop.as_str().to_owned(),
            request_id: request.as_str().to_owned(),
            seats: life.seats,
            state: life.state.as_str(),
            expires_at: life.expires_at_ms,
        })),
        Changed::Refused(wrong) => Err(problem(wrong)),
    }
}

fn problem(wrong: Wrong) -> Problem {
    match wrong {
        Wrong::NotFound => own::no_request(),
        Wrong::HoldExpired => Problem::conflict("hold_expired", "the hold or the offer has ended"),
        Wrong::AlreadyConfirmed => {
            Problem::conflict("already_confirmed", "the seats are taken for good; cancelling gives them up")
        }
        Wrong::AlreadyCancelled => Problem::conflict("already_cancelled", "the request was cancelled"),
        Wrong::AlreadyRejected => Problem::conflict("already_rejected", "the request never got seats"),
        Wrong::StillWaiting => Problem::conflict("still_waiting", "the request has no offer yet"),
        Wrong::PartOfSet => {
            let detail =
                "the request is a line of a set of this id: `/reservations/{id}` acts on the whole set";
            Problem::conflict("part_of_set", detail)
        }
        Wrong::MoreThanHeld { held } => {
            let detail = format!("the request holds {held} seats; a new one may ask for more");
            Problem::conflict("more_than_held", detail).of_field("seats")
        }
    }
}

/// Make held or offered seats one's own.
#[utoipa::path(post, path = "/workshops/{workshop}/reservations/{requestId}/confirm", operation_id = "confirm_reservation", tag = "reservations",
    params(("workshop" = schema::Workshop, Path), ("requestId" = schema::RequestId, Path)),
    request_body = Option<ConfirmBody>,
    responses((status = 200, body = ChangeAnswer, description = "confirmed"),
        super::openapi::Wrongs, super::openapi::Gone,
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn confirm(
    permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
    body: Body,
) -> Result<Json<ChangeAnswer>, Problem> {
    const INVALID: &str = "invalid_confirmation";
    // The name is looked at before the body is.
    workshop(&uri)?;
    let asked = match body.is_nothing() {
        true => ConfirmBody::default(),
        false => body.object(|| Problem::bad_request(INVALID, "a confirmation is an object, or nothing"))?,
    };
    let seats = whole(INVALID, "seats", asked.seats, (1, app.limits.max_seats_per_request))?;
    let reacquire = flag(INVALID, "reacquire", asked.reacquire)?;
    change(&app, &permit, &uri, Change::Confirm(Confirm { seats, reacquire })).await
}

/// Give seats up, or a place on the waiting list.
#[utoipa::path(post, path = "/workshops/{workshop}/reservations/{requestId}/cancel", operation_id = "cancel_reservation", tag = "reservations",
    params(("workshop" = schema::Workshop, Path), ("requestId" = schema::RequestId, Path)),
    responses((status = 200, body = ChangeAnswer, description = "cancelled"),
        super::openapi::Wrongs, super::openapi::Gone,
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn cancel(
    permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ChangeAnswer>, Problem> {
    change(&app, &permit, &uri, Change::Cancel).await
}

/// The same, asked for by an operator: on the page every action takes the scope `admin`.
pub(super) async fn cancel_as_operator(
    permit: Permit<Admin>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ChangeAnswer>, Problem> {
    change(&app, &permit, &uri, Change::Cancel).await
}

/// Hold seats longer, up to `reservations.max_hold_ms` in all; never shorter.
#[utoipa::path(post, path = "/workshops/{workshop}/reservations/{requestId}/extend", operation_id = "extend_reservation", tag = "reservations",
    params(("workshop" = schema::Workshop, Path), ("requestId" = schema::RequestId, Path)),
    request_body = ExtendBody,
    responses((status = 200, body = ChangeAnswer, description = "held until `expiresAt`"),
        super::openapi::Wrongs, super::openapi::Gone,
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn extend(
    permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
    body: Body,
) -> Result<Json<ChangeAnswer>, Problem> {
    workshop(&uri)?;
    let ttl_ms = ExtendBody::parse(&body, &app)?;
    change(&app, &permit, &uri, Change::Extend { ttl_ms }).await
}
