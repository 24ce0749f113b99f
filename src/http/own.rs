//! Reservations of an end user: made for itself, and nobody else's seen or touched.
//!
//! What is another's is answered as if it were not there, so that nobody learns which ids there are. Whose it is has to
//! be decided with the command: the workshop may be deleted and created again at any moment, and its ids be others'. So a
//! command carries whose it is only to act on, and the actor that decides it looks. Only which workshops a set reaches into
//! is asked before, where a token is narrowed to some; whatever comes in between, the set is its user's own.

use axum::http::StatusCode;

use super::App;
use super::auth::Permit;
use super::auth::policy::Feature;
use super::auth::user::EndUser;
use super::fields::invalid_holder;
use super::problem::Problem;
use crate::reservations::sets::command::Told;
use crate::reservations::{HolderName, RequestId};

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

/// Whose a request or a set has to be: an end user's own. Of everybody else, anybody's.
///
/// # Errors
/// `missing`, as if it were not there, where the user's name is no holder's.
pub(super) fn only_of<S>(
    permit: &Permit<S>,
    missing: impl FnOnce() -> Problem,
) -> Result<Option<HolderName>, Problem> {
    let Some(user) = permit.user() else { return Ok(None) };
    // What was made while names could be longer is its own still.
    HolderName::parse(user.name(), usize::MAX).map(Some).ok_or_else(missing)
}

/// The answer about a request that is not there.
pub(super) fn no_request() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such request")
}

/// Lets go on with a set that reaches into no workshop that the token does not, if that is narrowed to some.
///
/// # Errors
/// As if it were not there, `beyond_token`, and the home's refusal.
pub(super) async fn reaches_set<S>(
    app: &App,
    permit: &Permit<S>,
    request: &RequestId,
) -> Result<(), Problem> {
    if !permit.user().is_some_and(|user| user.is_narrowed(Feature::Reservations)) {
        return Ok(());
    }
    let told = app.sets.show(request).await?.ok_or_else(no_set)?;
    shown_set(permit, &told)
}

/// Lets a set be seen that is the asker's and reaches into no workshop that its token does not.
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
