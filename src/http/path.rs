//! Names in paths and bodies, parsed once into types.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;

use super::App;
use super::problem::Problem;
use crate::likes::{ItemId, UserId};
use crate::names::decode_segment;
use crate::reservations::WorkshopName;

/// The workshop of a path. As an argument of a handler it is looked at before the body is.
#[derive(Debug)]
pub(super) struct Workshop(pub WorkshopName);

/// The item of a path, likewise.
#[derive(Debug)]
pub(super) struct Item(pub ItemId);

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

/// The n-th segment of a path, from 0, still encoded. The router has matched the path, so it is there.
fn segment(uri: &Uri, index: usize) -> &str {
    uri.path().split('/').nth(index + 1).unwrap_or_default()
}

pub(super) fn workshop(uri: &Uri) -> Result<WorkshopName, Problem> {
    let name = decode_segment(segment(uri, 1));
    name.and_then(|name| WorkshopName::parse(&name)).ok_or_else(|| {
        Problem::bad_request("invalid_workshop_name", "a workshop's name matches ^[a-z][a-z0-9-]{0,31}$")
    })
}

pub(super) fn item(uri: &Uri, app: &App) -> Result<ItemId, Problem> {
    let item = decode_segment(segment(uri, 1));
    item.and_then(|item| ItemId::parse(&item, app.limits.max_item_bytes)).ok_or_else(|| invalid_item(app))
}

pub(super) fn user(uri: &Uri, app: &App) -> Result<UserId, Problem> {
    let user = decode_segment(segment(uri, 3));
    user.and_then(|user| UserId::parse(&user, app.limits.max_user_bytes)).ok_or_else(|| invalid_user(app))
}

pub(super) fn invalid_item(app: &App) -> Problem {
    let max = app.limits.max_item_bytes;
    Problem::bad_request(
        "invalid_item",
        format!(
            "an item is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`, encoded once"
        ),
    )
}

pub(super) fn invalid_user(app: &App) -> Problem {
    let max = app.limits.max_user_bytes;
    Problem::bad_request(
        "invalid_user",
        format!(
            "a user is 1 to {max} bytes of UTF-8 without control characters, not `.` or `..`, encoded once"
        ),
    )
}
