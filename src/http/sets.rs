//! Sets: seats of several workshops at once, all or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::policy::Feature;
use super::auth::{Permit, Read, Write};
use super::beyond::Beyond;
use super::body::Body;
use super::changes::ExtendBody;
use super::fields::{flag, hold_ms, holder, text};
use super::path::set;
use super::problem::Problem;
use super::{own, schema};
use crate::config::Reservations as Limits;
use crate::names::REQUEST_ID;
use crate::reservations::sets::command::{Told, Wanted};
use crate::reservations::sets::decide::{Change, Wrong};
use crate::reservations::sets::driver::Requested;
use crate::reservations::{RequestId, Seats, WorkshopName};
use crate::store::sets::SetState;

const INVALID: &str = "invalid_reservation";

/// A request for seats of several workshops. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct SetBody<'a> {
    #[serde(rename = "requestId", borrow)]
    #[schema(value_type = schema::RequestId, required)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = schema::Lines, required)]
    lines: Option<&'a RawValue>,
    /// Hold the seats, to confirm them later, instead of taking them for good.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    hold: Option<&'a RawValue>,
    /// How long a hold lives, in ms from this request; absent, the shortest that one of its
    /// workshops lets a hold live.
    #[serde(rename = "ttlMs", borrow)]
    #[schema(value_type = Option<schema::TtlMs>)]
    ttl_ms: Option<&'a RawValue>,
    /// For whom the seats are.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Holder>)]
    holder: Option<&'a RawValue>,
    /// Refused: a set never waits.
    #[serde(borrow)]
    #[schema(ignore)]
    waitlist: Option<&'a RawValue>,
    /// Refused: a set replaces nothing.
    #[serde(borrow)]
    #[schema(ignore)]
    replaces: Option<&'a RawValue>,
}

/// Seats of one workshop. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct LineBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::Workshop, required)]
    workshop: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = schema::Seats, required)]
    seats: Option<&'a RawValue>,
}

/// A confirmation of a set. Other fields are ignored.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct ConfirmSetBody<'a> {
    /// If the hold has ended, take all seats again, provided that they are free.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    reacquire: Option<&'a RawValue>,
    /// Refused: a set is confirmed as a whole.
    #[serde(borrow)]
    #[schema(ignore)]
    seats: Option<&'a RawValue>,
}

impl ConfirmSetBody<'_> {
    /// Whether seats are to be taken again.
    fn parse(body: &Body) -> Result<bool, Problem> {
        const INVALID: &str = "invalid_confirmation";
        if body.is_nothing() {
            return Ok(false);
        }
        let asked: ConfirmSetBody<'_> = body
            .object(|| Problem::bad_request(INVALID, "a confirmation of a set is an object, or nothing"))?;
        if asked.seats.is_some() {
            let detail = "a set is confirmed as a whole, with the seats that its lines ask for";
            return Err(Problem::bad_request(INVALID, detail).of_field("seats"));
        }
        flag(INVALID, "reacquire", asked.reacquire)
    }
}

impl SetBody<'_> {
    fn parse(body: &Body, app: &App) -> Result<(RequestId, Wanted, Beyond), Problem> {
        let invalid = || {
            let detail = format!("a set is an object with `requestId` ({REQUEST_ID}) and `lines`");
            Problem::bad_request(INVALID, detail)
        };
        let asked: SetBody<'_> = body.object(invalid)?;
        let request = asked.request_id.and_then(text).and_then(|request| RequestId::parse(&request));
        let request = request.ok_or_else(|| invalid().of_field("requestId"))?;
        if flag(INVALID, "waitlist", asked.waitlist)? {
            return Err(Problem::bad_request(INVALID, "a set never waits").of_field("waitlist"));
        }
        if asked.replaces.is_some() {
            return Err(Problem::bad_request(INVALID, "a set replaces nothing").of_field("replaces"));
        }
        let mut beyond = Beyond::default();
        let today = lines(asked.lines, app.limits.max_lines_per_set, app.limits.max_seats_per_request);
        let ever =
            || lines(asked.lines, usize::from(Limits::MOST_LINES_PER_SET), Limits::MOST_SEATS_PER_REQUEST);
        let wanted = Wanted {
            lines: beyond.allow(today, || ever().ok())?,
            hold: flag(INVALID, "hold", asked.hold)?,
            ttl_ms: hold_ms(INVALID, asked.ttl_ms, app, &mut beyond)?,
            holder: holder(INVALID, asked.holder, app, &mut beyond)?,
        };
        Ok((request, wanted, beyond))
    }
}

/// Seats by workshop, summed. One request asks no workshop for more than one request may.
fn lines(json: Option<&RawValue>, most: usize, max: u32) -> Result<Vec<(Arc<str>, i64)>, Problem> {
    let invalid = || {
        let detail = format!(
            "`lines` are 1 to {most} objects with `workshop` and `seats`, 1 to {max} seats of a workshop in all"
        );
        Problem::bad_request(INVALID, detail).of_field("lines")
    };
    let lines: Vec<&RawValue> =
        json.and_then(|json| serde_json::from_str(json.get()).ok()).ok_or_else(invalid)?;
    if !(1..=most).contains(&lines.len()) {
        return Err(invalid());
    }
    let mut summed = BTreeMap::new();
    for json in lines {
        // serde would take an array for a struct, field by field.
        let line = Some(json.get()).filter(|text| text.starts_with('{'));
        let line: Option<LineBody<'_>> = line.and_then(|text| serde_json::from_str(text).ok());
        let LineBody { workshop, seats } = line.ok_or_else(invalid)?;
        let workshop = workshop.and_then(text).and_then(|name| WorkshopName::parse(&name));
        let seats = seats.and_then(|json| Seats::parse(json.get(), max));
        let (workshop, seats) = workshop.zip(seats).ok_or_else(invalid)?;
        *summed.entry(workshop.shared()).or_insert(0) += i64::from(seats.get());
    }
    if summed.values().any(|seats| *seats > i64::from(max)) {
        return Err(invalid());
    }
    Ok(summed.into_iter().collect())
}

/// Seats of one workshop.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LineAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    #[schema(value_type = schema::Seats)]
    seats: i64,
}

/// A set as it is now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetAnswer {
    #[schema(value_type = schema::RequestId)]
    request_id: String,
    /// By workshop, each once.
    lines: Vec<LineAnswer>,
    /// The first decision.
    #[schema(schema_with = schema::set_decision)]
    status: &'static str,
    #[schema(schema_with = schema::set_state)]
    state: &'static str,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Reason, required = false)]
    reason: Option<&'static str>,
    /// Which workshop rejected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Workshop, required = false)]
    rejected_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Holder, required = false)]
    holder: Option<String>,
    /// When its hold ends; ms since 1970. From this very millisecond on it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<i64>,
    /// Whether this repeats an earlier decision; absent where nothing was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    replayed: Option<bool>,
}

impl SetAnswer {
    fn of(request: &RequestId, told: &Told, replayed: Option<bool>) -> Self {
        let set = &told.set;
        let status = match set.state {
            SetState::Pending => "pending",
            SetState::Refused => "rejected",
            _ if set.hold => "held",
            _ => "accepted",
        };
        let state = match set.state {
            SetState::Confirmed if !set.hold => "accepted",
            SetState::Refused => "rejected",
            SetState::Retaking => "pending",
            state => state.as_str(),
        };
        let line = |line: &crate::store::sets::SetLine| LineAnswer {
            workshop: line.workshop.to_string(),
            seats: line.seats,
        };
        Self {
            request_id: request.as_str().to_owned(),
            lines: set.lines.iter().map(line).collect(),
            status,
            state,
            reason: set.refusal.as_ref().map(|refusal| refusal.reason.as_str()),
            rejected_by: set.refusal.as_ref().map(|refusal| refusal.workshop.to_string()),
            holder: told.holder.as_ref().map(|holder| holder.as_str().to_owned()),
            expires_at: set.expires_at_ms,
            replayed,
        }
    }
}

/// Take or hold seats of several workshops, all of them or none.
///
/// The same `requestId` again gets the first answer and takes nothing.
#[utoipa::path(post, path = "/reservations", operation_id = "reserve_set", tag = "reservations",
    request_body = SetBody,
    responses(
        (status = 201, body = SetAnswer, description = "accepted, or held"),
        (status = 409, body = SetAnswer, description = "rejected"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "request_id_reused"),
        super::openapi::Gone,
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn reserve(
    permit: Permit<Write>,
    State(app): State<App>,
    body: Body,
) -> Result<(StatusCode, Json<SetAnswer>), Problem> {
    let (request, mut wanted, beyond) = SetBody::parse(&body, &app)?;
    if let Some(user) = permit.user() {
        wanted.holder = Some(own::holder(user, wanted.holder.as_ref(), INVALID, &app)?);
        wanted.lines.iter().try_for_each(|(workshop, _)| user.reaches(Feature::Reservations, workshop))?;
    }
    match app.sets.request(request.clone(), wanted, beyond.is_any()).await? {
        Requested::Decided(told) => {
            let code = match told.set.state {
                SetState::Refused => StatusCode::CONFLICT,
                _ => StatusCode::CREATED,
            };
            Ok((code, Json(SetAnswer::of(&request, &told, Some(!told.is_new)))))
        }
        Requested::Reused { is_own: false, .. } if permit.user().is_some() => Err(own::taken()),
        Requested::Reused { field, .. } => Err(reused(field)),
        Requested::HolderRequired => {
            let detail = "one of these workshops limits the seats of a holder: name the `holder`";
            Err(Problem::bad_request("holder_required", detail).of_field("holder"))
        }
        Requested::BeyondLimits => {
            Err(beyond.problem(|| Problem::bad_request(INVALID, "the settings do not allow that much")))
        }
        Requested::TooManySeats { workshop, max } => {
            let detail = format!("`seats` of {workshop} are a whole number from 1 to {max} in all");
            Err(Problem::bad_request(INVALID, detail).of_field("lines"))
        }
    }
}

fn reused(field: &'static str) -> Problem {
    let detail = format!("this requestId was first used with other `{field}`");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "request_id_reused", detail).of_field(field)
}

/// A set as it is now.
#[utoipa::path(get, path = "/reservations/{requestId}", operation_id = "show_set", tag = "reservations",
    params(("requestId" = schema::RequestId, Path)),
    responses((status = 200, body = SetAnswer, description = "the set"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn show(
    permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<SetAnswer>, Problem> {
    let request = set(&uri)?;
    let told = app.sets.show(&request).await?.ok_or_else(own::no_set)?;
    own::shown_set(&permit, &told)?;
    Ok(Json(SetAnswer::of(&request, &told, None)))
}

async fn change(
    app: &App,
    permit: &Permit<Write>,
    uri: &Uri,
    change: Change,
) -> Result<Json<SetAnswer>, Problem> {
    let request = set(uri)?;
    own::reaches_set(app, permit, &request).await?;
    let of = own::only_of(permit, own::no_set)?;
    let told = app.sets.change(&request, change, of).await?.map_err(|wrong| match wrong {
        Wrong::NotFound => own::no_set(),
        Wrong::HoldExpired => Problem::conflict("hold_expired", "the hold of the set has ended"),
        Wrong::AlreadyConfirmed => {
            Problem::conflict("already_confirmed", "the seats are taken for good; cancelling gives them up")
        }
        Wrong::AlreadyCancelled => Problem::conflict("already_cancelled", "the set was cancelled"),
        Wrong::AlreadyRejected => Problem::conflict("already_rejected", "the set never got seats"),
        Wrong::WorkshopGone => {
            let detail = "a workshop of the set was deleted, and its seats with it; the others are given up";
            Problem::conflict("workshop_gone", detail)
        }
        Wrong::StillPending => crate::partition::Refusal::Unavailable.into(),
        Wrong::Reused { field, .. } => reused(field),
    })?;
    Ok(Json(SetAnswer::of(&request, &told, None)))
}

/// Make all held seats of a set one's own; no body at all does not take any again.
#[utoipa::path(post, path = "/reservations/{requestId}/confirm", operation_id = "confirm_set", tag = "reservations",
    params(("requestId" = schema::RequestId, Path)),
    request_body = Option<ConfirmSetBody>,
    responses((status = 200, body = SetAnswer, description = "confirmed"),
        super::openapi::Wrongs, super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn confirm(
    permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
    body: Body,
) -> Result<Json<SetAnswer>, Problem> {
    // The id is looked at before the body is.
    set(&uri)?;
    let reacquire = ConfirmSetBody::parse(&body)?;
    change(&app, &permit, &uri, Change::Confirm { reacquire }).await
}

/// Give all seats of a set up.
#[utoipa::path(post, path = "/reservations/{requestId}/cancel", operation_id = "cancel_set", tag = "reservations",
    params(("requestId" = schema::RequestId, Path)),
    responses((status = 200, body = SetAnswer, description = "cancelled"),
        super::openapi::Wrongs, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn cancel(
    permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<SetAnswer>, Problem> {
    change(&app, &permit, &uri, Change::Cancel).await
}

/// Hold all seats of a set longer, up to `reservations.max_hold_ms` in all; never shorter.
#[utoipa::path(post, path = "/reservations/{requestId}/extend", operation_id = "extend_set", tag = "reservations",
    params(("requestId" = schema::RequestId, Path)),
    request_body = ExtendBody,
    responses((status = 200, body = SetAnswer, description = "held until `expiresAt`"),
        super::openapi::Wrongs, super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn extend(
    permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
    body: Body,
) -> Result<Json<SetAnswer>, Problem> {
    // The id is looked at before the body is.
    set(&uri)?;
    let ttl_ms = ExtendBody::parse(&body, &app)?;
    change(&app, &permit, &uri, Change::Extend { ttl_ms }).await
}
