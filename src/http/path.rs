//! Names in paths and bodies, parsed once into types.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;

use super::App;
use super::problem::Problem;
use crate::likes::counters::CounterName;
use crate::likes::{ItemId, UserId};
use crate::names::REQUEST_ID;
use crate::names::decode_segment;
use crate::people::Person;
use crate::reservations::{RequestId, WorkshopName};

/// The workshop of a path. As an argument of a handler it is looked at before the body is.
#[derive(Debug)]
pub(super) struct Workshop(pub WorkshopName);

/// The item of a path, likewise.
#[derive(Debug)]
pub(super) struct Item(pub ItemId);

/// The counter of a path, likewise.
#[derive(Debug)]
pub(super) struct Counter(pub CounterName);

impl FromRequestParts<App> for Counter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let max = app.limits.max_item_bytes;
        let counter = segment(&parts.uri, 1)?.and_then(|counter| CounterName::parse(&counter, max));
        counter.map(Self).ok_or_else(|| Problem::bad_request("invalid_counter", free_name("a counter", max)))
    }
}

impl FromRequestParts<App> for Workshop {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        workshop(&parts.uri).map(Self)
    }
}

impl FromRequestParts<App> for Item {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        item(&parts.uri, app).map(Self)
    }
}

/// The n-th segment of a path, from 0, decoded; `None` if it cannot be. The router lets an empty one
/// through in the middle of a path, but no path has one.
pub(super) fn segment(uri: &Uri, index: usize) -> Result<Option<Cow<'_, str>>, Problem> {
    let segment = uri.path().split('/').nth(index + 1).unwrap_or_default();
    if segment.is_empty() { Err(Problem::not_found()) } else { Ok(decode_segment(segment)) }
}

pub(super) fn workshop(uri: &Uri) -> Result<WorkshopName, Problem> {
    segment(uri, 1)?.and_then(|name| WorkshopName::parse(&name)).ok_or_else(|| {
        Problem::bad_request(
            "invalid_workshop_name",
            "a workshop's name is 1 to 32 of a-z, 0-9 and -, beginning with a letter",
        )
    })
}

/// The request id of a path below a workshop's reservations.
pub(super) fn request(uri: &Uri) -> Result<RequestId, Problem> {
    request_at(uri, 3)
}

/// The request id of a set's path.
pub(super) fn set(uri: &Uri) -> Result<RequestId, Problem> {
    request_at(uri, 1)
}

fn request_at(uri: &Uri, index: usize) -> Result<RequestId, Problem> {
    segment(uri, index)?
        .and_then(|id| RequestId::parse(&id))
        .ok_or_else(|| Problem::bad_request("invalid_request_id", format!("a request id is {REQUEST_ID}")))
}

pub(super) fn item(uri: &Uri, app: &App) -> Result<ItemId, Problem> {
    let item = segment(uri, 1)?.and_then(|item| ItemId::parse(&item, app.limits.max_item_bytes));
    item.ok_or_else(|| invalid_item(app))
}

pub(super) fn user(uri: &Uri, app: &App) -> Result<UserId, Problem> {
    let user = segment(uri, 3)?.and_then(|user| UserId::parse(&user, app.limits.max_user_bytes));
    user.ok_or_else(|| invalid_user(app))
}

/// The person of a path.
pub(super) fn person(uri: &Uri, app: &App) -> Result<Person, Problem> {
    let person = segment(uri, 1)?.and_then(|person| Person::parse(&person, app.limits.max_person_bytes));
    person.ok_or_else(|| {
        let max = app.limits.max_person_bytes;
        let detail = format!(
            "a person is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`, encoded once"
        );
        Problem::bad_request("invalid_user", detail)
    })
}

/// The user of a path that begins with it.
pub(super) fn first_user(uri: &Uri, app: &App) -> Result<UserId, Problem> {
    let user = segment(uri, 1)?.and_then(|user| UserId::parse(&user, app.limits.max_user_bytes));
    user.ok_or_else(|| invalid_user(app))
}

pub(super) fn invalid_item(app: &App) -> Problem {
    Problem::bad_request("invalid_item", free_name("an item", app.limits.max_item_bytes))
}

pub(super) fn invalid_user(app: &App) -> Problem {
    Problem::bad_request("invalid_user", free_name("a user", app.limits.max_user_bytes))
}

fn free_name(what: &str, max: usize) -> String {
    format!("{what} is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`, encoded once")
}
