//! Errors as clients see them: `application/problem+json` (RFC 9457), with one word for one cause.

use std::num::NonZeroU32;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::schema;
use crate::partition::Refusal;
use crate::reservations::Refused;

/// A problem document. `error` is the word to program against; `detail` is for people.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `urn:headcount:problem:` and the word.
    #[serde(rename = "type")]
    #[schema(value_type = String, pattern = "^urn:headcount:problem:[a-z_]+$")]
    kind: Box<str>,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// One word for one cause.
    #[schema(schema_with = schema::error)]
    error: &'static str,
    /// What to do about it.
    #[schema(value_type = String)]
    detail: Box<str>,
    /// The field that is wrong, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    field: Option<&'static str>,
    /// The lowest capacity that needs no force.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    minimum: Option<i64>,
    /// When the workshop was deleted; ms since 1970.
    #[serde(rename = "deletedAt", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deleted_at: Option<i64>,
    /// Seconds to wait, where the answer knows better than `server.retry_after_s`.
    #[serde(skip)]
    #[schema(ignore)]
    retry_after_s: Option<NonZeroU32>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: &'static str, detail: impl Into<String>) -> Self {
        // A generated client refuses a word that the document does not list.
        debug_assert!(schema::is_error(error), "{error} is no word of schema.rs");
        Self {
            kind: format!("urn:headcount:problem:{error}").into(),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            error,
            detail: detail.into().into(),
            field: None,
            minimum: None,
            deleted_at: None,
            retry_after_s: None,
        }
    }

    pub(super) fn bad_request(error: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, detail)
    }

    pub(super) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "no such path; the API is at /openapi.json of the public listener",
        )
    }

    pub(super) fn conflict(error: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error, detail)
    }

    pub(super) fn with_minimum(mut self, minimum: i64) -> Self {
        self.minimum = Some(minimum);
        self
    }

    pub(super) fn of_field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = u32::try_from(seconds).ok().and_then(NonZeroU32::new);
        self
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Refusal(refusal) => refusal.into(),
            Refused::Gone(gone) => {
                let detail = "this workshop was deleted; `PUT` creates it again, with nothing in it";
                let mut problem = Self::new(StatusCode::GONE, "gone", detail);
                problem.deleted_at = Some(gone.deleted_at_ms);
                problem
            }
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        match refusal {
            Refusal::Overloaded => Self::new(
                unavailable,
                "overloaded",
                "too many requests are waiting; surely not done, try again",
            ),
            Refusal::Unavailable => Self::new(
                unavailable,
                "unavailable",
                "this part of the service is down; surely not done, try again",
            ),
            Refusal::OutcomeUnknown => Self::new(
                unavailable,
                "outcome_unknown",
                "perhaps done; repeat with the same id to learn the outcome",
            ),
            Refusal::DiskFull => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "disk_full",
                "the disk is full; surely not done, and nothing stored is lost",
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after_s = self.retry_after_s;
        let mut response = (status, axum::Json(self)).into_response();
        if let Some(seconds) = retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.get()));
        }
        let problem_json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, problem_json);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
