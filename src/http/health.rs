//! Whether the process lives, and whether it serves.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::problem::Problem;
use super::schema;

/// A good state.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthAnswer {
    #[schema(schema_with = schema::healthy)]
    status: &'static str,
}

/// The process lives.
#[utoipa::path(get, path = "/health", tag = "service", security(()),
    responses((status = 200, body = HealthAnswer, description = "it lives")))]
pub(super) async fn health() -> Json<HealthAnswer> {
    Json(HealthAnswer { status: "ok" })
}

/// Every partition serves.
#[utoipa::path(get, path = "/ready", tag = "service", security(()),
    responses((status = 200, body = HealthAnswer, description = "it serves"),
        (status = 503, body = Problem, content_type = "application/problem+json",
            description = "not_ready: a partition is down, or the service is shutting down")))]
pub(super) async fn ready(State(app): State<App>) -> Result<Json<HealthAnswer>, Problem> {
    let down: Vec<String> = (0..)
        .zip(&app.partitions)
        .filter(|(_, up)| !up())
        .map(|(index, _): (u32, _)| index.to_string())
        .collect();
    if !app.draining.is_cancelled() && down.is_empty() {
        return Ok(Json(HealthAnswer { status: "ready" }));
    }
    let detail = match down.is_empty() {
        true => "shutting down".to_owned(),
        false => format!("partitions down: {}", down.join(", ")),
    };
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail))
}
