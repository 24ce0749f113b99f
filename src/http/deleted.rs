//! The routes of what is declared deleted in the settings: 410, whatever is asked, by whoever is known.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Router};

use super::App;
use super::auth::user::AllGone;
use super::auth::{Asks, Permit, Read, Write};
use super::problem::Problem;

/// `/name` and everything below it.
pub(super) fn routes(name: &str) -> Router<App> {
    let gone = || get(gone::<Read>).fallback(gone::<Write>);
    let routes =
        Router::new().route(&format!("/{name}"), gone()).route(&format!("/{name}/{{*rest}}"), gone());
    routes.layer(Extension(AllGone))
}

/// The likes of people, whose other routes stay.
pub(super) fn likes_of_people() -> Router<App> {
    let routes = Router::new().route("/users/{user}/likes", get(gone::<Read>).fallback(gone::<Write>));
    routes.layer(Extension(AllGone))
}

async fn gone<S: Asks + Send>(_permit: Permit<S>, State(_): State<App>) -> Problem {
    Problem::new(StatusCode::GONE, "gone", "the operator has declared all of this deleted")
}
