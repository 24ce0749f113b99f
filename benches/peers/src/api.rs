//! headcount's routes, bodies and answers for the two jobs, over any store.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::store::Store;

/// The routes.
pub fn app<S: Store>(store: S) -> Router {
    Router::new()
        .route("/likes/{item}", post(like::<S>).get(total::<S>))
        .route("/workshops/{workshop}/reservations", post(reserve::<S>))
        .route("/workshops/{workshop}/status", get(status::<S>))
        .route("/ready", get(async || Json(serde_json::json!({}))))
        .with_state(store)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LikeBody {
    user_id: String,
}

#[derive(Serialize)]
struct LikeAnswer {
    item: String,
    user: String,
    liked: bool,
    changed: bool,
    shard: u32,
}

async fn like<S: Store>(
    State(store): State<S>,
    Path(item): Path<String>,
    Json(LikeBody { user_id: user }): Json<LikeBody>,
) -> Result<Json<LikeAnswer>, Refusal> {
    if user.is_empty() {
        return Err(Refusal(StatusCode::BAD_REQUEST, "invalid_user"));
    }
    let changed = store.like(item.clone(), user.clone()).await?;
    Ok(Json(LikeAnswer { item, user, liked: true, changed, shard: 0 }))
}

#[derive(Serialize)]
struct TotalAnswer {
    item: String,
    total: i64,
    exact: bool,
}

async fn total<S: Store>(
    State(store): State<S>,
    Path(item): Path<String>,
) -> Result<Json<TotalAnswer>, Refusal> {
    let total = store.total(item.clone()).await?;
    Ok(Json(TotalAnswer { item, total, exact: true }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReservationBody {
    request_id: String,
    seats: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReservationAnswer {
    workshop: String,
    request_id: String,
    seats: i32,
    status: &'static str,
    capacity: i32,
    reserved: i32,
    replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

async fn reserve<S: Store>(
    State(store): State<S>,
    Path(workshop): Path<String>,
    Json(ReservationBody { request_id, seats }): Json<ReservationBody>,
) -> Result<(StatusCode, Json<ReservationAnswer>), Refusal> {
    if request_id.is_empty() || seats < 1 {
        return Err(Refusal(StatusCode::BAD_REQUEST, "invalid_reservation"));
    }
    let decided = store.reserve(workshop.clone(), request_id.clone(), seats).await?;
    if decided.seats != seats {
        return Err(Refusal(StatusCode::UNPROCESSABLE_ENTITY, "request_id_reused"));
    }
    let (code, status, reason) = match decided.accepted {
        true => (StatusCode::CREATED, "accepted", None),
        false => (StatusCode::CONFLICT, "rejected", Some("not_enough_seats")),
    };
    let answer = ReservationAnswer {
        workshop,
        request_id,
        seats,
        status,
        capacity: decided.capacity,
        reserved: decided.reserved,
        replayed: decided.replayed,
        reason,
    };
    Ok((code, Json(answer)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusAnswer {
    workshop: String,
    capacity: i32,
    reserved: i32,
    accepted_requests: i64,
    rejected_requests: i64,
}

async fn status<S: Store>(
    State(store): State<S>,
    Path(workshop): Path<String>,
) -> Result<Json<StatusAnswer>, Refusal> {
    let status = store.status(workshop.clone()).await?;
    Ok(Json(StatusAnswer {
        workshop,
        capacity: status.capacity,
        reserved: status.reserved,
        accepted_requests: status.accepted_requests,
        rejected_requests: status.rejected_requests,
    }))
}

/// An answer that says no.
struct Refusal(StatusCode, &'static str);

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        eprintln!("peers: {failure}");
        Self(StatusCode::SERVICE_UNAVAILABLE, "store_failed")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(serde_json::json!({ "status": self.0.as_u16(), "error": self.1 }))).into_response()
    }
}
