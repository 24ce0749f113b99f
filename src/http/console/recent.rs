//! The end of a workshop's log. The public stream begins at its beginning or at now, and is for programs that keep up.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::http::App;
use crate::http::auth::{Permit, Read};
use crate::http::events::EventAnswer;
use crate::http::path::Workshop;
use crate::http::problem::Problem;

/// Events that are shown.
const EVENTS: u32 = 50;

#[derive(Debug, Serialize)]
pub(super) struct RecentAnswer {
    /// The newest first.
    events: Vec<EventAnswer>,
}

pub(super) async fn recent(
    _permit: Permit<Read>,
    State(app): State<App>,
    Workshop(workshop): Workshop,
) -> Result<Json<RecentAnswer>, Problem> {
    // Nothing comes after the last one: the page says which that is.
    let end = app.workshops.events(workshop.clone(), i64::MAX, 1).await?;
    let after = end.map_or(0, |page| page.last_event).saturating_sub(i64::from(EVENTS)).max(0);
    let page = app.workshops.events(workshop, after, EVENTS).await?;
    let events = page.map(|page| page.events).unwrap_or_default();
    Ok(Json(RecentAnswer { events: events.iter().rev().map(EventAnswer::of).collect() }))
}
