//! Workshops: their configuration, their state, and their end.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::App;
use super::auth::{Admin, Permit, Read};
use super::body::Body;
use super::fields::{LATEST_MS, flag, text, whole};
use super::path::{Workshop, workshop};
use super::problem::Problem;
use super::query::Query;
use super::schema;
use crate::reservations::WorkshopName;
use crate::reservations::command::{Configure, IfMatch, Set, View};
use crate::store::reservations::{Policy, Rules, Waitlist};

const INVALID: &str = "invalid_workshop";

/// A workshop as its operator wants it. What is left out is not set any more. Other fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkshopBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::Capacity, required)]
    capacity: Option<&'a RawValue>,
    /// Most seats of one request.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Seats>)]
    max_seats_per_request: Option<&'a RawValue>,
    /// Most seats of one holder at a time; every request must then name its holder.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Capacity>, minimum = 1)]
    max_seats_per_holder: Option<&'a RawValue>,
    /// How long a hold lives that does not say so itself, in ms.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::TtlMs>)]
    hold_ttl_ms: Option<&'a RawValue>,
    /// Absent: nobody can wait.
    #[serde(borrow)]
    #[schema(value_type = Option<WaitlistBody>)]
    waitlist: Option<&'a RawValue>,
    /// Requests before this time are refused; ms since 1970.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Time>)]
    opens_at: Option<&'a RawValue>,
    /// Requests from this time on are refused; ms since 1970. After `opensAt`.
    #[serde(borrow)]
    #[schema(value_type = Option<schema::Time>)]
    closes_at: Option<&'a RawValue>,
    /// Let the capacity fall below what is taken. Nobody is thrown out.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    force: Option<&'a RawValue>,
}

/// How a waiting list is served.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitlistBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = schema::Policy, required)]
    policy: Option<&'a RawValue>,
    /// How long an offer lives, in ms; no extension makes it longer.
    #[serde(borrow)]
    #[schema(value_type = schema::OfferTtlMs, required)]
    offer_ttl_ms: Option<&'a RawValue>,
    /// Most requests that wait.
    #[serde(borrow)]
    #[schema(value_type = schema::WaitlistLength, required)]
    max_length: Option<&'a RawValue>,
}

impl WorkshopBody<'_> {
    fn parse(body: &Body, app: &App) -> Result<Configure, Problem> {
        let invalid = || {
            Problem::bad_request(INVALID, "a workshop is an object with the number `capacity`")
                .of_field("capacity")
        };
        let asked: WorkshopBody<'_> = body.object(invalid)?;
        let limits = &app.limits;
        let capacity = whole(INVALID, "capacity", asked.capacity, (0, limits.max_capacity))?;
        let seats = (1, limits.max_seats_per_request);
        let rules = Rules {
            max_seats_per_request: whole(INVALID, "maxSeatsPerRequest", asked.max_seats_per_request, seats)?,
            max_seats_per_holder: whole(
                INVALID,
                "maxSeatsPerHolder",
                asked.max_seats_per_holder,
                (1, limits.max_capacity),
            )?,
            hold_ttl_ms: whole(INVALID, "holdTtlMs", asked.hold_ttl_ms, (1, limits.max_hold_ms))?,
            waitlist: asked.waitlist.map(|json| waitlist(json, app)).transpose()?,
            opens_at_ms: whole(INVALID, "opensAt", asked.opens_at, (0, LATEST_MS))?,
            closes_at_ms: whole(INVALID, "closesAt", asked.closes_at, (0, LATEST_MS))?,
        };
        if let (Some(opens), Some(closes)) = (rules.opens_at_ms, rules.closes_at_ms)
            && closes <= opens
        {
            return Err(Problem::bad_request(INVALID, "`closesAt` is after `opensAt`").of_field("closesAt"));
        }
        let force = flag(INVALID, "force", asked.force)?;
        Ok(Configure { capacity: capacity.ok_or_else(invalid)?, rules, force })
    }
}

fn waitlist(json: &RawValue, app: &App) -> Result<Waitlist, Problem> {
    let invalid = || {
        let detail = "`waitlist` is an object with `policy` (\"strict\" or \"fit_first\"), `offerTtlMs` and \
                      `maxLength`";
        Problem::bad_request(INVALID, detail).of_field("waitlist")
    };
    // serde would take an array for a struct, field by field.
    if !json.get().starts_with('{') {
        return Err(invalid());
    }
    let asked: WaitlistBody<'_> = serde_json::from_str(json.get()).map_err(|_| invalid())?;
    let policy = asked.policy.and_then(text).and_then(|policy| Policy::parse(&policy)).ok_or_else(invalid)?;
    let lives = whole(INVALID, "offerTtlMs", asked.offer_ttl_ms, (1, app.limits.max_offer_ms))?;
    let length = whole(INVALID, "maxLength", asked.max_length, (0, app.limits.max_waitlist))?;
    let (offer_ttl_ms, max_length) = (lives.ok_or_else(invalid)?, length.ok_or_else(invalid)?);
    Ok(Waitlist { policy, offer_ttl_ms, max_length })
}

/// A workshop's configuration, and how full it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkshopAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    #[schema(minimum = 0)]
    capacity: i64,
    /// Seats taken: held, offered and confirmed.
    #[schema(minimum = 0)]
    reserved: i64,
    /// Of those, held or offered.
    #[schema(minimum = 0)]
    held: i64,
    /// Seats free. Those who wait come first.
    #[schema(minimum = 0)]
    remaining: i64,
    /// Requests on the waiting list.
    #[schema(minimum = 0)]
    waiting: i64,
    /// Seats taken beyond the capacity, after it was forced down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    overbooked_by: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_seats_per_request: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    max_seats_per_holder: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hold_ttl_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    waitlist: Option<WaitlistAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    opens_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    closes_at: Option<i64>,
}

/// How a waiting list is served.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitlistAnswer {
    #[schema(value_type = schema::Policy)]
    policy: &'static str,
    offer_ttl_ms: i64,
    max_length: i64,
}

impl WorkshopAnswer {
    pub(super) fn of(name: &str, view: &View) -> Self {
        let (workshop, rules) = (&view.workshop, &view.workshop.rules);
        Self {
            workshop: name.to_owned(),
            capacity: workshop.capacity,
            reserved: view.used,
            held: view.held,
            remaining: (workshop.capacity - view.used).max(0),
            waiting: workshop.waiting,
            overbooked_by: overbooked_by(view),
            max_seats_per_request: rules.max_seats_per_request,
            max_seats_per_holder: rules.max_seats_per_holder,
            hold_ttl_ms: rules.hold_ttl_ms,
            waitlist: rules.waitlist.map(|waitlist| WaitlistAnswer {
                policy: waitlist.policy.as_str(),
                offer_ttl_ms: waitlist.offer_ttl_ms,
                max_length: waitlist.max_length,
            }),
            opens_at: rules.opens_at_ms,
            closes_at: rules.closes_at_ms,
        }
    }
}

fn overbooked_by(view: &View) -> Option<i64> {
    Some(view.used - view.workshop.capacity).filter(|above| *above > 0)
}

/// A version of a workshop's configuration: which workshop of this name, and how often it was changed.
fn etag(view: &View) -> HeaderMap {
    let tag = format!("\"{}-{}\"", view.key.unwrap_or_default(), view.workshop.rules_version);
    let tag = HeaderValue::from_str(&tag).ok();
    tag.map(|tag| (header::ETAG, tag)).into_iter().collect()
}

/// What `If-Match` asks for, or without it `If-None-Match`; a tag that is none of ours matches nothing.
fn if_match(headers: &HeaderMap) -> Option<IfMatch> {
    let one_of = tags(headers, &header::IF_MATCH).map(|tags| tags.map_or(IfMatch::Any, IfMatch::OneOf));
    let none_of = || {
        let tags = tags(headers, &header::IF_NONE_MATCH);
        tags.map(|tags| tags.map_or(IfMatch::None, IfMatch::NoneOf))
    };
    one_of.or_else(none_of)
}

/// The versions that a header names, if it is there; without any for `*`.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Option<Option<Vec<(i64, i64)>>> {
    let mut tags = headers.get_all(name).iter().peekable();
    tags.peek()?;
    let tags: Vec<&str> =
        tags.filter_map(|tags| tags.to_str().ok()).flat_map(|tags| tags.split(',')).collect();
    if tags.iter().any(|tag| tag.trim() == "*") {
        return Some(None);
    }
    let version = |tag: &&str| {
        let (key, version) = tag.trim().strip_prefix('"')?.strip_suffix('"')?.split_once('-')?;
        Some((key.parse().ok()?, version.parse().ok()?))
    };
    Some(Some(tags.iter().filter_map(version).collect()))
}

/// Set a workshop's capacity and rules, whole.
///
/// Creates it if it is missing or deleted. New seats go first to those who wait.
#[utoipa::path(put, path = "/workshops/{workshop}", operation_id = "configure_workshop", tag = "workshops",
    params(("workshop" = schema::Workshop, Path),
        ("If-Match" = Option<String>, Header, description = "change this version only: an ETag, or `*`"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: create it only, where there is none")),
    request_body = WorkshopBody,
    responses(
        (status = 200, body = WorkshopAnswer, description = "set", headers(("ETag" = String))),
        (status = 201, body = WorkshopAnswer, description = "created", headers(("ETag" = String))),
        (status = 409, body = Problem, content_type = "application/problem+json",
            description = "capacity_in_use: `minimum` seats are taken; `force` lets it fall below"),
        (status = 412, body = Problem, content_type = "application/problem+json",
            description = "version_mismatch: changed meanwhile, or there already"),
        super::openapi::Rejections, super::openapi::Refusals, super::openapi::BodyRejections))]
pub(super) async fn configure(
    _permit: Permit<Admin>,
    State(app): State<App>,
    Workshop(name): Workshop,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, HeaderMap, Json<WorkshopAnswer>), Problem> {
    let wanted = WorkshopBody::parse(&body, &app)?;
    match app.workshops.configure(name.clone(), Box::new(wanted), if_match(&headers)).await? {
        Set::Done { created, view } => {
            let code = if created { StatusCode::CREATED } else { StatusCode::OK };
            Ok((code, etag(&view), Json(WorkshopAnswer::of(name.as_str(), &view))))
        }
        Set::InUse { minimum } => {
            let detail = format!("{minimum} seats are taken; `force: true` lowers the capacity all the same");
            Err(Problem::conflict("capacity_in_use", detail).of_field("capacity").with_minimum(minimum))
        }
        Set::Mismatch => {
            let detail = "the workshop is not the version that If-Match names, or is there though If-None-Match says \
                          that it must not be: read it again";
            Err(Problem::new(StatusCode::PRECONDITION_FAILED, "version_mismatch", detail))
        }
    }
}

/// A workshop's configuration, and how full it is.
#[utoipa::path(get, path = "/workshops/{workshop}", operation_id = "show_workshop", tag = "workshops",
    params(("workshop" = schema::Workshop, Path)),
    responses((status = 200, body = WorkshopAnswer, description = "its configuration", headers(("ETag" = String))),
        super::openapi::Gone, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn configuration(
    _permit: Permit<Read>,
    State(app): State<App>,
    Workshop(name): Workshop,
) -> Result<(HeaderMap, Json<WorkshopAnswer>), Problem> {
    let view = app.workshops.status(name.clone()).await?;
    if view.key.is_none() {
        return Err(no_workshop());
    }
    Ok((etag(&view), Json(WorkshopAnswer::of(name.as_str(), &view))))
}

fn no_workshop() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "nothing is stored of such a workshop")
}

/// A workshop's end.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkshopDeletedAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    /// ms since 1970.
    deleted_at: i64,
}

/// Delete a workshop with everything in it. From then on it answers 410, until `PUT` creates it again.
#[utoipa::path(delete, path = "/workshops/{workshop}", operation_id = "delete_workshop", tag = "workshops",
    params(("workshop" = schema::Workshop, Path)),
    responses((status = 200, body = WorkshopDeletedAnswer, description = "it is gone"),
        super::openapi::Gone, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn delete(
    _permit: Permit<Admin>,
    State(app): State<App>,
    Workshop(name): Workshop,
) -> Result<Json<WorkshopDeletedAnswer>, Problem> {
    let deleted_at = app.workshops.delete(name.clone()).await?.ok_or_else(no_workshop)?;
    app.sets.a_workshop_is_gone();
    Ok(Json(WorkshopDeletedAnswer { workshop: name.as_str().to_owned(), deleted_at }))
}

/// A page of workshops.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WorkshopsAnswer {
    /// By name.
    workshops: Vec<WorkshopAnswer>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Workshop, required = false)]
    cursor: Option<String>,
}

/// The workshops that there are, by name, a page at a time.
#[utoipa::path(get, path = "/workshops", operation_id = "list_workshops", tag = "workshops",
    params(("cursor" = Option<schema::Workshop>, Query, description = "of the page before"),
        ("limit" = Option<schema::PageLimit>, Query, description = "entries of a page")),
    responses((status = 200, body = WorkshopsAnswer, description = "a page"),
        super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn list(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<WorkshopsAnswer>, Problem> {
    let query = Query::parse(uri.query())?;
    let limit = query.limit(app.limits.max_page)?;
    let invalid =
        || Problem::bad_request("invalid_query", "`cursor` is one that a page ended with").of_field("cursor");
    let after = match query.one("cursor")? {
        None => "".into(),
        Some(cursor) => WorkshopName::parse(cursor).ok_or_else(invalid)?.shared(),
    };
    let page = app.workshops.page(&after, limit).await?;
    let full = page.len() >= limit as usize;
    let cursor = page.last().filter(|_| full).map(|(name, _)| name.clone());
    let workshops = page.iter().map(|(name, view)| WorkshopAnswer::of(name, view)).collect();
    Ok(Json(WorkshopsAnswer { workshops, cursor }))
}

/// A workshop's state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusAnswer {
    #[schema(value_type = schema::Workshop)]
    workshop: String,
    #[schema(minimum = 0)]
    capacity: i64,
    /// Seats taken: held, offered and confirmed.
    #[schema(minimum = 0)]
    reserved: i64,
    /// First decisions that accepted or held.
    #[schema(minimum = 0)]
    accepted_requests: i64,
    /// First decisions that rejected, waiting ones included.
    #[schema(minimum = 0)]
    rejected_requests: i64,
    /// Seats of the accepted ones.
    #[schema(minimum = 0)]
    accepted_seats: i64,
    /// Of `reserved`, held or offered; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    held: Option<i64>,
    /// Requests on the waiting list; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    waiting: Option<i64>,
    /// Seats taken beyond the capacity, after it was forced down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    overbooked_by: Option<i64>,
}

/// A workshop's state now. One that nobody has reserved in shows the defaults, and nothing is stored.
#[utoipa::path(get, path = "/workshops/{workshop}/status", operation_id = "workshop_status", tag = "reservations",
    params(("workshop" = schema::Workshop, Path)),
    responses((status = 200, body = StatusAnswer, description = "its state"),
        super::openapi::Gone, super::openapi::Rejections, super::openapi::Refusals))]
pub(super) async fn status(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<StatusAnswer>, Problem> {
    let name = workshop(&uri)?;
    let view = app.workshops.status(name.clone()).await?;
    let workshop = view.workshop;
    let unless_none = |number| Some(number).filter(|number| *number > 0);
    Ok(Json(StatusAnswer {
        workshop: name.as_str().to_owned(),
        capacity: workshop.capacity,
        reserved: view.used,
        accepted_requests: workshop.accepted_requests,
        rejected_requests: workshop.rejected_requests,
        accepted_seats: workshop.accepted_seats,
        held: unless_none(view.held),
        waiting: unless_none(workshop.waiting),
        overbooked_by: overbooked_by(&view),
    }))
}
