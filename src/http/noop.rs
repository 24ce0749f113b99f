//! Routes that parse and answer like their namesakes and decide nothing: the ceiling that a benchmark
//! compares with. Mounted by `server.noop_routes`.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::routing::post;
use axum::{Json, Router};

use super::App;
use super::auth::{Permit, Read, Write};
use super::body::Body;
use super::likes::{LikeAnswer, LikeBody, TotalAnswer};
use super::path::segment;
use super::problem::Problem;
use super::query::Query;
use super::reservations::{ReservationAnswer, ReservationBody};
use crate::likes::ItemId;
use crate::reservations::WorkshopName;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/noop/likes/{item}", post(like).get(total))
        .route("/noop/workshops/{workshop}/reservations", post(reserve))
}

async fn like(
    _permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
    body: Body,
) -> Result<Json<LikeAnswer>, Problem> {
    let item = segment(&uri, 2)?.and_then(|item| ItemId::parse(&item, app.limits.max_item_bytes));
    let item = item.ok_or_else(Problem::not_found)?;
    let user = LikeBody::user(&body, &app)?;
    let shard = user.shard(app.shards.count());
    Ok(Json(LikeAnswer { item, user, liked: true, changed: true, shard, total: None }))
}

async fn total(
    _permit: Permit<Read>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TotalAnswer>, Problem> {
    let item = segment(&uri, 2)?.and_then(|item| ItemId::parse(&item, app.limits.max_item_bytes));
    let item = item.ok_or_else(Problem::not_found)?;
    let exact = Query::parse(uri.query())?.flag("exact")?;
    let as_of = app.clock.now_ms();
    let item = item.to_string();
    Ok(Json(TotalAnswer { item, total: 1_000_000, exact, as_of, age_ms: 500, version: Some(1), liked: None }))
}

async fn reserve(
    _permit: Permit<Write>,
    State(app): State<App>,
    uri: Uri,
    body: Body,
) -> Result<(StatusCode, Json<ReservationAnswer>), Problem> {
    let workshop = segment(&uri, 2)?.and_then(|name| WorkshopName::parse(&name));
    let workshop = workshop.ok_or_else(Problem::not_found)?;
    let (request, wanted, beyond) = ReservationBody::parse(&body, &app)?;
    if beyond.is_any() {
        return Err(beyond.problem(Problem::not_found));
    }
    let answer = ReservationAnswer {
        workshop: workshop.as_str().to_owned(),
        request_id: request.as_str().to_owned(),
        seats: wanted.seats.get(),
        status: "accepted",
        capacity: i64::from(u32::MAX),
        reserved: 1,
        replayed: false,
        reason: None,
        state: None,
        expires_at: None,
        position: None,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}
