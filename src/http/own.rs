//! Reservations of an end user: made for itself, and nobody else's seen or touched.
//!
//! What is another's is answered as if it were not there, so that nobody learns which ids there are. Asking whose it is
//! takes a question before the command; keys and open services ask none. Nothing comes in between that matters: a
//! request never changes its holder, but for one who is forgotten.

use axum::http::StatusCode;

use super::App;
use super::auth::Permit;
use super::auth::policy::Feature;
use super::auth::user::EndUser;
use super::fields::invalid_holder;
use super::problem::Problem;
use crate::reservations::sets::command::Told;
use crate::reservations::{HolderName, RequestId, WorkshopName};

/// For whom seats are: for an end user, whether it says so or not.
///
/// # Errors
/// `not_your_user` for anybody else; `word` if its name is no holder's here.
pub(super) fn holder(
    user: &EndUser,
    given: Option<&HolderName>,
    word: &'static str,
    app: &App,
) -> Result<HolderName, Problem> {
    if let Some(given) = given {
        user.is(given.as_str(), Some("holder"))?;
    }
    HolderName::parse(user.name(), app.limits.max_holder_bytes).ok_or_else(|| invalid_holder(word, app))
}

/// Whether a request is the asker's: always, unless that is an end user.
///
/// # Errors
/// The workshop's refusal.
pub(super) async fn is_own<S>(
    app: &App,
    permit: &Permit<S>,
    workshop: &WorkshopName,
    request: &RequestId,
) -> Result<bool, Problem> {
    let Some(user) = permit.user() else { return Ok(true) };
    let shown = app.workshops.show(workshop.clone(), request.clone()).await?;
    Ok(shown.is_some_and(|shown| shown.listed.holder.as_deref() == Some(user.name())))
}

/// Lets go on with a request that is the asker's.
///
/// # Errors
/// As if it were not there.
pub(super) async fn request<S>(
    app: &App,
    permit: &Permit<S>,
    workshop: &WorkshopName,
    request: &RequestId,
) -> Result<(), Problem> {
    is_own(app, permit, workshop, request).await?.then_some(()).ok_or_else(no_request)
}

/// The answer about a request that is not there.
pub(super) fn no_request() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such request")
}

/// Whether a set is the asker's.
///
/// # Errors
/// The home's refusal.
pub(super) async fn is_own_set<S>(
    app: &App,
    permit: &Permit<S>,
    request: &RequestId,
) -> Result<bool, Problem> {
    if permit.user().is_none() {
        return Ok(true);
    }
    let told = app.sets.show(request).await?;
    Ok(told.is_some_and(|told| owns(permit, &told)))
}

/// Lets go on with a set that is the asker's and reaches into no workshop that its token does not.
///
/// # Errors
/// As if it were not there; `beyond_token`.
pub(super) async fn set<S>(app: &App, permit: &Permit<S>, request: &RequestId) -> Result<(), Problem> {
    if permit.user().is_none() {
        return Ok(());
    }
    match app.sets.show(request).await? {
        Some(told) => shown_set(permit, &told),
        None => Err(no_set()),
    }
}

/// The same, of a set that was looked up.
///
/// # Errors
/// As if it were not there; `beyond_token`.
pub(super) fn shown_set<S>(permit: &Permit<S>, told: &Told) -> Result<(), Problem> {
    if !owns(permit, told) {
        return Err(no_set());
    }
    told.set.lines.iter().try_for_each(|line| permit.reaches(Feature::Reservations, &line.workshop))
}

/// The answer about a set that is not there.
pub(super) fn no_set() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such set")
}

fn owns<S>(permit: &Permit<S>, told: &Told) -> bool {
    let holder = told.holder.as_ref().map(HolderName::as_str);
    permit.user().is_none_or(|user| holder == Some(user.name()))
}

/// The answer to an id that somebody else has used: that it is taken, and nothing about what for.
pub(super) fn taken() -> Problem {
    let detail = "this requestId is taken: choose another one";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "request_id_reused", detail).of_field("requestId")
}
